// Rows whose shares fit the registers of a block: bulk copies bring the shares of the next rows into shared memory
// meanwhile, so that memory is busy while threads wait for each other.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/common/row/window.cuh"

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// This block's share of kArrays arrays of rows, one row after the other.
template <class T, class Group, Alignment kAlignment, int kArrays = 1>
class BulkStream {
 public:
  // A thread's packs are the same of all rows: the plan sees to it that all rows of a block begin alike between
  // multiples of 16 bytes.
  using Row = Tile<T, kBulkPacksOfThread, 32, kAlignment>;
  static constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  std::uint32_t begin, count;  // columns of this block

  __device__ BulkStream(const RowShares& shares, uint4* landing, const Group& group, std::uint32_t rows,
                        std::uint32_t columns, const void* const (&arrays)[kArrays])
      : begin(min(group.block() * shares.share, columns)),
        count(min(shares.share, columns - begin)),
        stages_(shares.stages),
        step_(group.rows()),
        rows_(rows),
        columns_(columns),
        stride_(shares.stride),
        landing_(landing) {
#pragma unroll
    for (int a = 0; a < kArrays; ++a) arrays_[a] = static_cast<const T*>(arrays[a]);
    if (threadIdx.x == 0) {
      for (std::uint32_t s = 0; s < stages_; ++s) barriers()[s].initialize();
      make_barriers_visible();
    }
    __syncthreads();
  }

  // Asks for the first rows, from `row` on.
  __device__ __forceinline__ void start(std::uint64_t row) {
    for (std::uint32_t s = 0; s < stages_; ++s) fetch(s, row + s * step_);
  }
  // Waits for `row`, which is next, and gives where in shared memory the share of each array begins.
  __device__ __forceinline__ void wait(std::uint64_t row, const T* (&at)[kArrays]) {
    barriers()[stage_].wait(phase_);
    if constexpr (kIsAligned) {
#pragma unroll
      for (int a = 0; a < kArrays; ++a) at[a] = reinterpret_cast<const T*>(landing(stage_, a));
    } else {
      begins_of(
          at, [&](int a) { return window_of(a, row); }, [&](int a) { return landing(stage_, a); });
    }
  }
  // Shared memory behind the rows, for what all rows need of array `index` of a row's columns.
  __device__ __forceinline__ typename Row::Pack* held(int index) const {
    return reinterpret_cast<typename Row::Pack*>(landing(stages_, 0)) +
           static_cast<std::uint32_t>(index) * kBulkPacksOfThread * blockDim.x;
  }
  // All threads have what they need of `row`: its stage is free.
  __device__ __forceinline__ void next(std::uint64_t row) {
    fetch(stage_, row + stages_ * step_);
    if (++stage_ == stages_) stage_ = 0, phase_ ^= 1;
  }

 private:
  __device__ __forceinline__ Window<T> window_of(int array, std::uint64_t row) const {
    const T* const all = arrays_[array];
    return {all + row * columns_ + begin, count, all, all + std::uint64_t{rows_} * columns_};
  }
  __device__ __forceinline__ unsigned char* landing(std::uint32_t stage, int array) const {
    return reinterpret_cast<unsigned char*>(landing_ + (stage * kArrays + array) * stride_);
  }
  __device__ __forceinline__ void fetch(std::uint32_t stage, std::uint64_t row) {
    if (threadIdx.x != 0 || row >= rows_) return;
    copy_all<kArrays>(
        barriers()[stage], [&](int a) { return window_of(a, row); }, [&](int a) { return landing(stage, a); });
  }
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_stages[kMaxStages];
    return of_stages;
  }

  const std::uint32_t stages_;
  const std::uint64_t step_;  // to the next row
  const std::uint32_t rows_, columns_, stride_;
  uint4* const landing_;
  const T* arrays_[kArrays];
  std::uint32_t stage_ = 0, phase_ = 0;
};

#endif

}  // namespace cgrt::kernels
