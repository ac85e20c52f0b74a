// Rows whose shares fit the registers of a block: bulk copies bring the shares of the next rows into shared memory
// meanwhile, so that memory is busy while threads wait for each other.
//
// Rows need not be aligned: what is copied are the whole 16 bytes around a share, which then lies in shared memory as
// it lies in global memory, as far behind a multiple of 16 bytes. Of the 16 bytes that reach out of the array, threads
// copy single elements.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/row/scalars.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"

namespace cgrt::kernels {

#if __CUDA_ARCH__ >= 900

// What registers keep of a share: kElements of each thread, aligned ones 16 bytes at a time.
template <class T, int kElements, Alignment kAlignment>
struct BulkRow {
  using Type = Scalars<T, kElements>;
};
template <class T, int kElements>
struct BulkRow<T, kElements, Alignment::kAligned> {
  using Type = Tile<T, kElements / kPackSize<T>, 32, Alignment::kAligned>;
};

// This block's share of kArrays arrays of rows, one row after the other.
template <class T, class Group, Alignment kAlignment, int kArrays = 1>
class BulkStream {
 public:
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
    for (std::uint32_t s = 0; s < stages_; ++s) fetch(s, row + std::uint64_t{s} * step_);
  }
  // Waits for `row`, which is next, and gives where in shared memory the share of each array begins.
  __device__ __forceinline__ void wait(std::uint64_t row, const T* (&at)[kArrays]) {
    barriers()[stage_].wait(phase_);
    bool is_cut = false;
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      const Window window(*this, a, row);
      at[a] = reinterpret_cast<const T*>(landing(stage_, a)) + window.before;
      is_cut |= window.is_cut;
    }
    if constexpr (!kIsAligned) {
      if (!is_cut) return;
#pragma unroll
      for (int a = 0; a < kArrays; ++a) copy_edges(a, row, const_cast<T*>(at[a]));
      make_barriers_visible();  // stores before later bulk copies to the same place
      __syncthreads();
    }
  }
  // Shared memory behind the rows.
  __device__ __forceinline__ T* behind() const { return reinterpret_cast<T*>(landing(stages_, 0)); }
  // All threads have what they need of `row`: its stage is free.
  __device__ __forceinline__ void next(std::uint64_t row) {
    fetch(stage_, row + std::uint64_t{stages_} * step_);
    if (++stage_ == stages_) stage_ = 0, phase_ ^= 1;
  }

 private:
  // The whole 16 bytes around the share of a row, but for those that reach out of the array.
  struct Window {
    std::uintptr_t low, high;
    std::uint32_t before, offset;  // elements of the first 16 bytes that are before the share; bytes that are cut there
    bool is_cut;
    __device__ __forceinline__ Window(const BulkStream& stream, int array, std::uint64_t row) {
      const T* const all = stream.arrays_[array];
      const auto from = reinterpret_cast<std::uintptr_t>(all + row * stream.columns_ + stream.begin);
      const std::uintptr_t to = from + stream.count * sizeof(T);
      if constexpr (kIsAligned) {
        low = from, high = to, before = offset = 0, is_cut = false;
      } else {
        const auto first = reinterpret_cast<std::uintptr_t>(all);
        const std::uintptr_t last = first + std::uint64_t{stream.rows_} * stream.columns_ * sizeof(T);
        low = from / 16 * 16, high = (to + 15) / 16 * 16;
        before = static_cast<std::uint32_t>(from - low) / sizeof(T);
        is_cut = low < first || high > last;
        offset = low < first ? 16 : 0;
        if (low < first) low += 16;
        if (high > last) high -= 16;
      }
    }
  };

  __device__ __forceinline__ unsigned char* landing(std::uint32_t stage, int array) const {
    return reinterpret_cast<unsigned char*>(landing_ + (stage * kArrays + array) * stride_);
  }
  __device__ __forceinline__ void fetch(std::uint32_t stage, std::uint64_t row) {
    if (threadIdx.x != 0 || row >= rows_) return;
    std::uint32_t bytes = 0;
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      const Window window(*this, a, row);
      bytes += static_cast<std::uint32_t>(window.high - window.low);
    }
    barriers()[stage].expect(bytes);
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      const Window window(*this, a, row);
      const auto of_array = static_cast<std::uint32_t>(window.high - window.low);
      if (of_array == 0) continue;
      barriers()[stage].copy(landing(stage, a) + window.offset, reinterpret_cast<const void*>(window.low), of_array);
    }
  }
  // The elements of the 16 bytes at the array's ends that a window leaves out.
  __device__ __forceinline__ void copy_edges(int array, std::uint64_t row, T* to) const {
    const T* const from = arrays_[array] + row * columns_ + begin;
    const auto beyond = [](const T* at) {
      return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % 16);
    };
    const std::uint32_t at_begin = (16 - beyond(from)) % 16 / sizeof(T), at_end = beyond(from + count) / sizeof(T);
    const std::uint32_t i = threadIdx.x;
    if (i < min(at_begin, count)) to[i] = from[i];
    if (i < min(at_end, count)) to[count - 1 - i] = from[count - 1 - i];
  }
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_stages[kMaxStages];
    return of_stages;
  }

  const std::uint32_t stages_, step_, rows_, columns_, stride_;
  uint4* const landing_;
  const T* arrays_[kArrays];
  std::uint32_t stage_ = 0, phase_ = 0;
};

#endif

}  // namespace cgrt::kernels
