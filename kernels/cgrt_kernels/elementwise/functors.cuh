// The functors of the operations, for map.cuh: computed in float, or in double where arrays are double.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "cgrt_kernels/common/exp2.cuh"
#include "cgrt_kernels/elementwise/elementwise_desc.h"

namespace cgrt::kernels {

__host__ __device__ inline float divided(float x, float y) {  // the same; 0 where y is above 2^126
#ifdef __CUDA_ARCH__
  float result;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
#else
  return x / y;
#endif
}

inline constexpr float kLog2E = 1.4426950408889634f;

__host__ __device__ inline float silu_of(float x) { return divided(x, 1 + exp2_of(-kLog2E * x)); }

// x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3), which is x / (1 + exp(-2 u)): no
// difference of nearly equal numbers where x is negative.
__host__ __device__ inline float gelu_tanh_of(float x) {
  constexpr float kLinear = -2 * kLog2E * 0.7978845608028654f, kCubic = kLinear * 0.044715f;
  return divided(x, 1 + exp2_of(x * (kLinear + kCubic * x * x)));
}

__host__ __device__ inline float gelu_of(float x) { return 0.5f * x * (1 + erff(0.7071067811865476f * x)); }

// For results of 16 bits: max(x, 0) - |x| / 2 * erfc(|x| / sqrt(2)), with erfc to 1.5e-7 by Abramowitz and
// Stegun, "Handbook of Mathematical Functions", 7.1.26, and precise where x is negative: with erff, arrays of
// 16 bits would be bound by instructions.
__host__ __device__ inline float short_gelu_of(float x) {
  const float distance = fminf(fabsf(x), 16.0f);  // erfc is 0 there
  const float t = divided(1, 1 + 0.3275911f * 0.7071067811865476f * distance);
  const float polynomial =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float half_erfc = 0.5f * polynomial * exp2_of(-0.5f * kLog2E * distance * distance);
  return (x < 0 ? 0 : x) - distance * half_erfc;
}
__host__ __device__ inline float gelu_of(__half x) { return short_gelu_of(__half2float(x)); }
__host__ __device__ inline float gelu_of(__nv_bfloat16 x) { return short_gelu_of(__bfloat162float(x)); }

template <ElementwiseOp kOp, class Compute>
struct ElementwiseFunctor;

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kScale, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a) const { return alpha * a; }
};

// Sums and products of two fp16 or bf16 numbers are the same when they are rounded to float before.
template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kAdd, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a, Compute b) const { return a + b; }
  __device__ __half2 apply2(__half2 a, __half2 b) const { return __hadd2(a, b); }
  __device__ __nv_bfloat162 apply2(__nv_bfloat162 a, __nv_bfloat162 b) const { return __hadd2(a, b); }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kMul, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a, Compute b) const { return a * b; }
  __device__ __half2 apply2(__half2 a, __half2 b) const { return __hmul2(a, b); }
  __device__ __nv_bfloat162 apply2(__nv_bfloat162 a, __nv_bfloat162 b) const { return __hmul2(a, b); }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kAxpy, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a, Compute b) const { return std::fma(alpha, a, b); }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kRelu, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a) const { return a < 0 ? 0 : a; }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kSilu, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a) const { return silu_of(a); }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kGelu, Compute> {
  Compute alpha;
  template <class T>
  __host__ __device__ Compute operator()(T a) const {
    return gelu_of(a);
  }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kGeluTanh, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a) const { return gelu_tanh_of(a); }
};

template <class Compute>
struct ElementwiseFunctor<ElementwiseOp::kCast, Compute> {
  Compute alpha;
  __host__ __device__ Compute operator()(Compute a) const { return a; }
};

}  // namespace cgrt::kernels
