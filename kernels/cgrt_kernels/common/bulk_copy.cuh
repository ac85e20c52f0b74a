// Bulk copies from global to shared memory, and values from other blocks of the cluster, which mbarriers wait for
// (sm_90 and later); bulk prefetches.
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

  // `bytes` of those expected, to shared memory; addresses and size are multiples of 16.
  __device__ __forceinline__ void copy(void* to, const void* from, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(this))
                 : "memory");
  }

  // A value to the same place in another block of the cluster, whose barrier like this one counts its bytes. Unlike
  // a barrier of the cluster this does not wait until what was written to global memory has arrived.
  template <class Value>
  __device__ __forceinline__ void send(std::uint32_t block, const Value* place, const Value& value) {
    std::uint32_t there, barrier;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(place)), "r"(block));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(shared_address(this)), "r"(block));
    static_assert(alignof(Value) >= 4 && alignof(Value) <= 16);
    const auto* const words = reinterpret_cast<const std::uint32_t*>(&value);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Value) / 4); i += alignof(Value) / 4) {
      if constexpr (alignof(Value) == 16) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                         there + 4 * i),
                     "r"(words[i]), "r"(words[i + 1]), "r"(words[i + 2]), "r"(words[i + 3]), "r"(barrier)
                     : "memory");
      } else if constexpr (alignof(Value) == 8) {
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0], {%1, %2}, [%3];" ::"r"(there + 4 * i),
            "r"(words[i]), "r"(words[i + 1]), "r"(barrier)
            : "memory");
      } else {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there + 4 * i),
                     "r"(words[i]), "r"(barrier)
                     : "memory");
      }
    }
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

// Asks for bytes to be brought into the L2 cache, but for those before and after the whole 16 among them. Only a
// hint: nothing before sm_90.
__device__ __forceinline__ void prefetch_to_l2(const void* from, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  const auto begin = static_cast<std::uint64_t>(__cvta_generic_to_global(from)), first = (begin + 15) / 16 * 16;
  const std::uint64_t end = (begin + bytes) / 16 * 16;
  if (first >= end) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first), "r"(static_cast<std::uint32_t>(end - first))
               : "memory");
#endif
}

}  // namespace cgrt::kernels
