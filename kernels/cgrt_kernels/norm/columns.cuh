// An array of a row's columns, weight or bias, as a block needs it.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/common/row/units.cuh"

namespace cgrt::kernels {

template <class T>
struct Columns {
  const T *begin, *end;  // from this block's first column to the array's end; null: none

  __device__ __forceinline__ Columns(const void* array, std::uint32_t first, std::uint32_t columns)
      : begin(array != nullptr ? static_cast<const T*>(array) + first : nullptr),
        end(static_cast<const T*>(array) + columns) {}
  __device__ __forceinline__ bool is_there() const { return begin != nullptr; }
};

// What a thread needs of it, in shared memory where no other thread looks: packs lie as they are needed, whatever the
// array's own alignment.
template <class Row, bool kIsAsked = true, int kAtOnce = Row::kPackCount>
class HeldColumns {
 public:
  using T = typename Row::Element;
  // `otherwise`: of an array that is not there. kIsAsked: whether get() is called. kAtOnce: see Tile::load.
  __device__ __forceinline__ HeldColumns(typename Row::Pack* held, const Columns<T>& columns,
                                         const typename Row::Where& place, float otherwise)
      : held_(held + threadIdx.x) {
    if constexpr (!kIsAsked) return;
    Row row;
    if (columns.is_there()) {
      row.template load<kAtOnce>(columns.begin, place, columns.end);
    } else {
      row.fill(otherwise);
    }
#pragma unroll
    for (int i = 0; i < Row::kPackCount; ++i) {
      if (place.has(i)) held_[i * blockDim.x] = row.packs[i];
    }
    single_ = row.single;
  }
  // Of a pack, or of the single element.
  template <int kCount>
  __device__ __forceinline__ void get(int index, float (&values)[kCount]) const {
    if constexpr (kCount == 1) {
      unpack(single_, values);
    } else {
      unpack(held_[static_cast<std::uint32_t>(index) * blockDim.x], values);
    }
  }
  template <int kCount>
  __device__ __forceinline__ void get(int index, std::uint64_t, float (&values)[kCount]) const {
    get(index, values);
  }

 private:
  typename Row::Pack* const held_;
  T single_;
};

// An array of columns for long rows: in shared memory where a block has the same columns of all rows.
template <class Rows, class T>
class SliceColumns {
 public:
  // By all threads, who meet before they call from().
  __device__ __forceinline__ SliceColumns(const Rows& rows, const RowSlices& shape, const void* array, int plane)
      : at_(static_cast<const T*>(array)), plane_(plane) {
    if constexpr (Rows::kHoldsColumns) {
      if (array == nullptr || shape.held == 0 || !rows.has_own_columns()) return;
      at_ = rows.copy_columns(at_, plane), first_ = rows.own().begin, is_held_ = true;
    }
  }
  __device__ __forceinline__ bool is_there() const { return at_ != nullptr; }
  // Of the columns from `begin` on.
  using Array = UnitArray<const T, typename Rows::Place>;
  __device__ __forceinline__ Array from(std::uint32_t begin, const typename Rows::Place& place) const {
    if constexpr (Rows::kHoldsColumns) {
      if (is_held_) Rows::wait_for_columns(plane_);
    }
    return {at_ + (begin - first_), place};
  }

 private:
  const T* at_;
  const int plane_;
  std::uint32_t first_ = 0;
  bool is_held_ = false;
};

}  // namespace cgrt::kernels
