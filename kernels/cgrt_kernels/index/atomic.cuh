// Atomics that add to floats side by side.
#pragma once

namespace cgrt::kernels {

// One instruction for 8 or 16 bytes, to which `to` is aligned then, since sm_90.
template <int kCount>
__device__ __forceinline__ void add_atomically(float* to, const float (&values)[kCount]) {
  if constexpr (kCount == 1) {
    atomicAdd(to, values[0]);
  } else if constexpr (kCount == 2) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(values[0]), "f"(values[1])
                 : "memory");
#else
    atomicAdd(to, values[0]);
    atomicAdd(to + 1, values[1]);
#endif
  } else {
    static_assert(kCount % 4 == 0);
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
#if __CUDA_ARCH__ >= 900
      asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to + k)),
                   "f"(values[k]), "f"(values[k + 1]), "f"(values[k + 2]), "f"(values[k + 3])
                   : "memory");
#else
#pragma unroll
      for (int i = k; i < k + 4; ++i) atomicAdd(to + i, values[i]);
#endif
    }
  }
}

}  // namespace cgrt::kernels
