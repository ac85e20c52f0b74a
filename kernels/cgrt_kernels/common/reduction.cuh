// Reductions among the lanes of a warp, and the values that rows are reduced to.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// To a relative error of 2^-22 + |x| * 2^-23, since x / log(2) is rounded; 0 below -87.34.
__device__ __forceinline__ float exp_of(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.4426950408889634f));
  return result;
}

__device__ __forceinline__ float none(float) { return 0.0f; }
__device__ __forceinline__ float merge(float a, float b) { return a + b; }
__device__ __forceinline__ float shuffle(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }

// The maximum so far and the sum of exp(value - maximum). Merging two of them rescales the smaller (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018).
struct alignas(8) MaxSum {
  float max, sum;
};
__device__ __forceinline__ float finite_or_zero(float max) { return max == -INFINITY ? 0.0f : max; }
__device__ __forceinline__ MaxSum none(MaxSum) { return {-INFINITY, 0.0f}; }
__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
  const float max = fmaxf(a.max, b.max), base = finite_or_zero(max);
  return {max, a.sum * exp_of(a.max - base) + b.sum * exp_of(b.max - base)};
}
__device__ __forceinline__ MaxSum shuffle(MaxSum value, int mask) {
  return {shuffle(value.max, mask), shuffle(value.sum, mask)};
}

// Merges the values of kLanes neighbouring lanes; each of them gets the result.
template <int kLanes = 32, class Value>
__device__ __forceinline__ Value reduce_lanes(Value value) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) value = merge(value, shuffle(value, mask));
  return value;
}

// Of some elements: their number, their mean, and the sum of their squared deviations from it (Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
struct alignas(16) Moments {
  float count, mean, squares;
};
__device__ __forceinline__ Moments none(Moments) { return {0.0f, 0.0f, 0.0f}; }
__device__ __forceinline__ Moments shuffle(Moments value, int mask) {
  return {shuffle(value.count, mask), shuffle(value.mean, mask), shuffle(value.squares, mask)};
}
__device__ __forceinline__ Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count, share = b.count / fmaxf(count, 1.0f), away = b.mean - a.mean;
  return {count, a.mean + away * share, a.squares + b.squares + away * away * a.count * share};
}
// Of what the lanes of a warp have, which are `count` elements together: 0 where others have the whole row.
__device__ __forceinline__ Moments join_warp(Moments part, float count) {
  const float mean = reduce_lanes(part.count * part.mean) / fmaxf(count, 1.0f), away = part.mean - mean;
  return {count, mean, reduce_lanes(part.squares + part.count * away * away)};
}

}  // namespace cgrt::kernels
