// Kernels that stand beside the library's in the bench: the plainest way to multiply, and a chain of
// operations as one functor. Plain.
#pragma once

#include <cuda_fp16.h>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/elementwise/map_shape.h"

namespace cgrt::bench {

// One element per thread: out, a, b, count. For float32 and float16.
using NaiveKernel = Kernel<void*, const void*, const void*, std::uint64_t>;
NaiveKernel mul_naive_kernel(kernels::DType type);

// Four operations of PyTorch: relu(x * scale + shift) * gain.
struct FourOps {
  float scale, shift, gain;
  __host__ __device__ float operator()(float x) const {
    const float y = x * scale + shift;
    return (y < 0 ? 0 : y) * gain;
  }
};
template <class T>
kernels::MapKernel<FourOps, T, T> four_ops_kernel();
template <>
kernels::MapKernel<FourOps, float, float> four_ops_kernel<float>();
template <>
kernels::MapKernel<FourOps, __half, __half> four_ops_kernel<__half>();

}  // namespace cgrt::bench
