// Functions of a user's own, instantiated in own_maps.cu as map.cuh shows. Plain.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "cgrt_kernels/elementwise/map_shape.h"

namespace cgrt::testing {

struct Clamp {
  float low, high;
  __host__ __device__ float operator()(float x) const { return x < low ? low : x > high ? high : x; }
};

// Types that differ from array to array.
struct MulAdd {
  __host__ __device__ float operator()(float a, float b, float c) const { return a * b + c; }
};

// Pairs and packs have a result of their own where it cannot be told apart: minus is exact.
struct Negate {
  __host__ __device__ float operator()(float x) const { return -x; }
  __device__ __half2 apply2(__half2 x) const { return __hneg2(x); }
};

struct SumOfFour {
  __host__ __device__ float operator()(float a, float b, float c, float d) const { return (a + b) + (c + d); }
  template <class Pack>
  __device__ Pack apply_pack(const Pack& a, const Pack& b, const Pack& c, const Pack& d) const {
    Pack sum;
    for (std::size_t i = 0; i < sizeof(Pack) / sizeof(float); ++i)
      sum.of[i] = (a.of[i] + b.of[i]) + (c.of[i] + d.of[i]);
    return sum;
  }
};

struct Dequantize {
  float scale;
  __host__ __device__ float operator()(std::int8_t x) const { return scale * static_cast<float>(x); }
};

struct Flip {
  __host__ __device__ std::int8_t operator()(std::int8_t x) const { return static_cast<std::int8_t>(~x); }
};

// No host can call it.
struct ReverseBits {
  static constexpr bool kDeviceOnly = true;
#ifdef __CUDACC__
  __device__ std::uint32_t operator()(std::uint32_t x) const { return __brev(x); }
#endif
};

kernels::MapKernel<Clamp, __half, __half> clamp_kernel();
kernels::MapKernel<MulAdd, float, __half, float, __nv_bfloat16> mul_add_kernel();
kernels::MapKernel<Negate, __half, __half> negate_kernel();
kernels::MapKernel<SumOfFour, float, float, float, float, float> sum_of_four_kernel();
kernels::MapKernel<Dequantize, float, std::int8_t> dequantize_kernel();
kernels::MapKernel<Flip, std::int8_t, std::int8_t> flip_kernel();
kernels::MapKernel<ReverseBits, std::uint32_t, std::uint32_t> reverse_bits_kernel();

}  // namespace cgrt::testing
