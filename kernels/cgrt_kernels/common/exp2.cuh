// Powers of two, by the device's own instruction.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cmath>

namespace cgrt::kernels {

__host__ __device__ inline float exp2_of(float x) {  // within 2 units in the last place; 0 below -126
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}

}  // namespace cgrt::kernels
