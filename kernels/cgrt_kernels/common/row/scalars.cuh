// A run of consecutive elements of which each thread of a block has single ones, as floats in registers: the same
// columns of all rows, wherever these begin. A warp reads and writes neighbouring elements, so that no address need be
// aligned. For what comes out of shared memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/row/tile.cuh"

namespace cgrt::kernels {

// The elements that a thread has: those of a warp lie together, its lanes' are neighbours.
template <int kElements>
struct ScalarPlace {
  std::uint32_t first, count;

  __device__ __forceinline__ ScalarPlace(const void*, std::uint32_t count_, std::uint32_t thread)
      : first(thread / 32 * 32 * kElements + thread % 32), count(count_) {}
  __device__ __forceinline__ bool has(int i) const { return first + 32 * i < count; }
  __device__ __forceinline__ std::uint32_t of(int i) const { return first + 32 * i; }
  // This thread's elements.
  template <class T>
  __device__ __forceinline__ void copy(T* to, const T* from) const {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (has(i)) to[of(i)] = from[of(i)];
    }
  }
  template <class T>
  __device__ __forceinline__ void fill(T* to, T value) const {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (has(i)) to[of(i)] = value;
    }
  }
  // Elements that the threads of this warp have.
  __device__ __forceinline__ std::uint32_t of_warp() const {
    const std::uint32_t begin = first - threadIdx.x % 32;
    return begin < count ? min(count - begin, 32u * kElements) : 0;
  }
};

// As Tile, with one element in place of a pack.
template <class T, int kElements>
struct Scalars {
  using Element = T;
  using Where = ScalarPlace<kElements>;
  static constexpr bool kIsHalves = false;
  float values[kElements];

  // From shared memory, or an array.
  __device__ __forceinline__ void load_shared(const T* at, const Where& place) {
    const T* const from = at + place.first;
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] = place.has(i) ? to_float(from[32 * i]) : 0.0f;
  }
  __device__ __forceinline__ void get(int i, float (&value)[1]) const { value[0] = values[i]; }
  __device__ __forceinline__ void fill(float value) {
#pragma unroll
    for (float& one : values) one = value;
  }
  __device__ __forceinline__ void stay_packed() {}

  template <class Visit>
  __device__ __forceinline__ void each(const Where& place, Visit visit) const {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (!place.has(i)) continue;
      float value[1] = {values[i]};
      visit(value, i);
    }
  }
  template <class Visit>
  __device__ __forceinline__ void update(const Where& place, Visit visit) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (!place.has(i)) continue;
      float value[1] = {values[i]};
      if constexpr (std::is_invocable_v<Visit, float(&)[1], int>) {
        visit(value, i);
      } else {
        visit(value);
      }
      values[i] = value[0];
    }
  }
  template <class Visit>
  __device__ __forceinline__ void store(T* out, const Where& place, Visit visit) const {
    T* const to = out + place.first;
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (!place.has(i)) continue;
      float value[1] = {values[i]};
      visit(value, std::uint64_t{place.of(i)}, i);
      to[32 * i] = from_float<T>(value[0]);
    }
  }
  // Sums with another's elements, rounded to the type.
  __device__ __forceinline__ void add(const Scalars& other, const Where&) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) values[i] = to_float(from_float<T>(values[i] + other.values[i]));
  }
  __device__ __forceinline__ void store_as_is(T* out, const Where& place) const {
    store(out, place, [](auto&, std::uint64_t, int) {});
  }
  // In four parts, so that additions need not wait for each other.
  template <class Term>
  __device__ __forceinline__ float sum(const Where& place, Term term) const {
    float parts[4] = {};
    each(place, [&](const auto& value, int i) { parts[i % 4] += term(value[0]); });
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
};

}  // namespace cgrt::kernels
