// Bulk copies from global to shared memory that an mbarrier waits for (sm_90 and later).
#pragma once

#include <cstdint>

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ std::uint32_t dynamic_shared_bytes() {
  std::uint32_t bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  return bytes;
}

// Lies in shared memory. One thread initializes it and asks for copies; any thread waits.
class BulkBarrier {
 public:
  __device__ __forceinline__ void initialize() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(this)) : "memory");
  }

  // `bytes` to shared memory; addresses and size are multiples of 16. Completes the current phase.
  __device__ __forceinline__ void expect_bulk(void* to, const void* from, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(this))
                 : "memory");
  }

  // Phases are 0 and 1 in turn.
  __device__ __forceinline__ void wait(std::uint32_t phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again_%=:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again_%=;\n"
        "}" ::"r"(shared_address(this)),
        "r"(phase)
        : "memory");
  }

 private:
  std::uint64_t state_;
};

// After initialize, before the first copy.
__device__ __forceinline__ void make_barriers_visible() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#endif

}  // namespace cgrt::kernels
