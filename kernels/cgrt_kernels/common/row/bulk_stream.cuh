// Aligned rows whose shares fit the registers of a block: bulk copies bring the shares of the next rows into shared
// memory meanwhile, so that memory is busy while threads wait for each other.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// This block's share of an array of rows, one row after the other.
template <class T, class Group>
class BulkStream {
 public:
  using Row = Tile<T, kBulkPacksOfThread, 32, Alignment::kAligned>;
  std::uint32_t begin, count;  // columns of this block

  __device__ BulkStream(const RowShares& shares, uint4* landing, const Group& group, const void* in, std::uint32_t rows,
                        std::uint32_t columns)
      : begin(group.block() * shares.share),
        count(min(shares.share, columns - begin)),
        stages_(shares.stages),
        step_(group.rows()),
        rows_(rows),
        columns_(columns),
        stride_(shares.held),
        landing_(landing),
        in_(static_cast<const T*>(in) + begin) {
    if (threadIdx.x == 0) {
      for (std::uint32_t s = 0; s < stages_; ++s) barriers()[s].initialize();
      make_barriers_visible();
    }
    __syncthreads();
  }

  // Asks for the first rows, from `row` on.
  __device__ __forceinline__ void start(std::uint64_t row) {
    for (std::uint32_t s = 0; s < stages_; ++s) fetch(s, row + std::uint64_t{s} * step_);
  }
  // The row that is next.
  __device__ __forceinline__ void take(Row& x, const typename Row::Where& place) {
    barriers()[stage_].wait(phase_);
    const auto* const from = reinterpret_cast<const T*>(landing_ + stage_ * stride_);
    x.load(from, place, from + count);
  }
  // All threads have taken `row`: its stage is free.
  __device__ __forceinline__ void next(std::uint64_t row) {
    fetch(stage_, row + std::uint64_t{stages_} * step_);
    if (++stage_ == stages_) stage_ = 0, phase_ ^= 1;
  }

 private:
  __device__ __forceinline__ void fetch(std::uint32_t stage, std::uint64_t row) {
    if (threadIdx.x != 0 || row >= rows_) return;
    barriers()[stage].expect_bulk(landing_ + stage * stride_, in_ + row * columns_, count * sizeof(T));
  }
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_stages[kMaxStages];
    return of_stages;
  }

  const std::uint32_t stages_, step_, rows_, columns_, stride_;
  uint4* const landing_;
  const T* const in_;
  std::uint32_t stage_ = 0, phase_ = 0;
};

#endif

}  // namespace cgrt::kernels
