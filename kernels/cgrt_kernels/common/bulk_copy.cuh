// What an mbarrier waits for (sm_90 and later): bulk copies from global to shared memory, and words from
// other blocks of the cluster.
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

// Lies in shared memory. One thread initializes it and says what to expect; any thread waits.
class BulkBarrier {
 public:
  __device__ __forceinline__ void initialize() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(this)) : "memory");
  }

  // The current phase ends when that many bytes have come, some of them perhaps before this.
  __device__ __forceinline__ void expect(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }

  // `bytes` to shared memory; addresses and size are multiples of 16. Completes the current phase.
  __device__ __forceinline__ void expect_bulk(void* to, const void* from, std::uint32_t bytes) {
    expect(bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(this))
                 : "memory");
  }

  // A word to the same place in another block of the cluster, whose barrier like this one counts it. Unlike
  // a barrier of the cluster this does not wait until what was written to global memory has arrived.
  __device__ __forceinline__ void send(std::uint32_t block, const void* place, std::uint32_t word) {
    std::uint32_t there, barrier;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(place)), "r"(block));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(shared_address(this)), "r"(block));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there), "r"(word),
                 "r"(barrier)
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

  // The same, and what other blocks have sent is there.
  __device__ __forceinline__ void wait_for_cluster(std::uint32_t phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again_%=:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
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

// The same for other blocks, which this meets before they send.
__device__ __forceinline__ void make_barriers_visible_to_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

#endif

}  // namespace cgrt::kernels
