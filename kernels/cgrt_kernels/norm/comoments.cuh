// What a row's backward needs to know of x and g = dy * weight: sums that are merged among threads.
#pragma once

#include "cgrt_kernels/common/reduction.cuh"

namespace cgrt::kernels {

// rms_norm: of x * x and of g * x.
struct alignas(8) Products {
  float squares, product;
};
__device__ __forceinline__ Products none(Products) { return {0.0f, 0.0f}; }
__device__ __forceinline__ Products merge(Products a, Products b) {
  return {a.squares + b.squares, a.product + b.product};
}
__device__ __forceinline__ Products shuffle(Products value, int mask) {
  return {shuffle(value.squares, mask), shuffle(value.product, mask)};
}

// layer_norm: Moments of x, with the sums of g and of g * (x - mean), so that one exchange is enough.
struct alignas(8) Comoments {
  float count, mean, squares, sum, product;
};
__device__ __forceinline__ Comoments none(Comoments) { return {0.0f, 0.0f, 0.0f, 0.0f, 0.0f}; }
__device__ __forceinline__ Comoments shuffle(Comoments value, int mask) {
  return {shuffle(value.count, mask), shuffle(value.mean, mask), shuffle(value.squares, mask), shuffle(value.sum, mask),
          shuffle(value.product, mask)};
}
__device__ __forceinline__ Comoments merge(Comoments a, Comoments b) {
  const Moments all = merge(Moments{a.count, a.mean, a.squares}, Moments{b.count, b.mean, b.squares});
  return {all.count, all.mean, all.squares, a.sum + b.sum,
          a.product + b.product + a.sum * (a.mean - all.mean) + b.sum * (b.mean - all.mean)};
}
__device__ __forceinline__ Comoments join_warp(Comoments part, float count) {
  const float mean = reduce_lanes(part.count * part.mean) / fmaxf(count, 1.0f), away = part.mean - mean;
  return {count, mean, reduce_lanes(part.squares + part.count * away * away), reduce_lanes(part.sum),
          reduce_lanes(part.product + part.sum * away)};
}
__device__ __forceinline__ Products join_lanes(Products part) { return reduce_lanes(part); }
__device__ __forceinline__ Comoments join_lanes(Comoments part) { return join_warp(part, reduce_lanes(part.count)); }

// dx = scale * (g - sum - (x - mean) * product)
struct GradientFacts {
  float mean, scale, sum, product;
};
__device__ __forceinline__ GradientFacts gradient_facts(Comoments row, float all, float epsilon) {
  const float scale = rsqrtf(row.squares / all + epsilon);
  return {row.mean, scale, row.sum / all, scale * scale * row.product / all};
}
__device__ __forceinline__ GradientFacts gradient_facts(Products row, float all, float epsilon) {
  const float scale = rsqrtf(row.squares / all + epsilon);
  return {0.0f, scale, 0.0f, scale * scale * row.product / all};
}

// Of the elements that a lane, then a warp, has of a row.
template <int kLanes>
__device__ __forceinline__ Comoments join_lanes(Comoments part, float count) {
  const float mean = __fdividef(reduce_lanes<kLanes>(part.count * part.mean), fmaxf(count, 1.0f));
  const float away = part.mean - mean;
  return {count, mean, reduce_lanes<kLanes>(part.squares + part.count * away * away), reduce_lanes<kLanes>(part.sum),
          reduce_lanes<kLanes>(part.product + part.sum * away)};
}
template <int kLanes>
__device__ __forceinline__ Products join_lanes(Products part, float) {
  return reduce_lanes<kLanes>(part);
}

// dx = scale * g + slope * x + offset; the normalized x = scale * x + center.
struct RowLine {
  float scale, slope, offset, center;
};
__device__ __forceinline__ RowLine line_of(const Comoments& row, float one_of_all, float epsilon) {
  const float scale = rsqrtf(row.squares * one_of_all + epsilon);
  const float slope = -scale * (scale * scale * row.product * one_of_all);
  return {scale, slope, -scale * (row.sum * one_of_all) - slope * row.mean, -row.mean * scale};
}
__device__ __forceinline__ RowLine line_of(const Products& row, float one_of_all, float epsilon) {
  const float scale = rsqrtf(row.squares * one_of_all + epsilon);
  return {scale, -scale * (scale * scale * row.product * one_of_all), 0, 0};
}

}  // namespace cgrt::kernels
