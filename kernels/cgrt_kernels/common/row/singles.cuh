// A run of which each thread of a block has single elements, wherever they lie: little code, for few short rows.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

// Thread t has elements t, t + blockDim.x and so on, up to kCount.
template <int kCount>
struct SinglePlace {
  std::uint32_t count;

  // As Place (tile.cuh): where the output lies does not matter.
  __device__ __forceinline__ SinglePlace(const void*, std::uint32_t count_, std::uint32_t) : count(count_) {}
  __device__ __forceinline__ std::uint32_t of(int i) const { return threadIdx.x + i * blockDim.x; }
  __device__ __forceinline__ bool has(int i) const { return of(i) < count; }
  // Elements that the threads of this warp have.
  __device__ __forceinline__ std::uint32_t of_warp() const {
    const std::uint32_t first = threadIdx.x / 32 * 32;
    std::uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::uint32_t begin = first + i * blockDim.x;
      all += count > begin ? min(count - begin, 32u) : 0;
    }
    return all;
  }
};

// What of Tile is needed, with elements for packs.
template <class T, int kCount>
struct Singles {
  using Element = T;
  using Pack = T;
  using Where = SinglePlace<kCount>;
  static constexpr int kPackCount = kCount, kSize = 1;
  static constexpr bool kIsAligned = false;
  Pack packs[kCount];

  // Zeros where there is nothing.
  __device__ __forceinline__ void load(const T* at, const Where& place, const T*) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) packs[i] = place.has(i) ? at[place.of(i)] : T{};
  }
  __device__ __forceinline__ void stay_packed() {}

  // visit(values, offset, index) of each element, which goes to `out`.
  template <class Visit>
  __device__ __forceinline__ void store(T* out, const Where& place, Visit visit) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!place.has(i)) continue;
      float value[1];
      unpack(packs[i], value);
      visit(value, std::uint64_t{place.of(i)}, i);
      pack_into(out[place.of(i)], value);
    }
  }
  __device__ __forceinline__ void store_as_is(T* out, const Where& place) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (place.has(i)) out[place.of(i)] = packs[i];
    }
  }
};

}  // namespace cgrt::kernels
