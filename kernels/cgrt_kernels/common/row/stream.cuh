// Rows too long for registers: each block keeps its share of a row in shared memory, and the shares of the next rows
// are in flight meanwhile. What does not fit there is read again from where it is.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/tile.cuh"

namespace cgrt::kernels {

// This block's share of kArrays arrays of rows.
template <class T, Alignment kAlignment, int kArrays>
class Stream {
 public:
  static constexpr int kSize = kPackSize<T>;
  static constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  using Pack = typename PackOf<T>::Type;

  std::uint32_t begin, count;  // columns of this block

  // `ring` holds stages * kArrays * held packs. Results will be stored at `out`.
  __device__ Stream(const RowShares& shares, uint4* ring, std::uint32_t block, std::uint32_t rows,
                    std::uint32_t columns, const void* out, const void* const (&arrays)[kArrays])
      : begin(min(block * shares.share, columns)),
        count(min(shares.share, columns - begin)),
        shares_(shares),
        ring_(ring),
        rows_(rows),
        columns_(columns),
        out_(static_cast<const T*>(out) + begin) {
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      begins_[a] = static_cast<const T*>(arrays[a]) + begin;
      ends_[a] = static_cast<const T*>(arrays[a]) + std::uint64_t{rows} * columns;
    }
  }

  // Asks for a row, or ends an empty group of copies when there is none.
  __device__ __forceinline__ void fetch(std::uint32_t stage, std::uint64_t row) {
    if (row < rows_) {
      const Cut cut = cut_of(row);
      const std::uint32_t held = min(cut.packs, shares_.held);
#pragma unroll
      for (int a = 0; a < kArrays; ++a) {
        const T* const from = begins_[a] + row * columns_ + cut.head;
        Pack* const to = slot(stage, a, 0);
        if (kIsAligned || reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
#pragma unroll 4
          for (std::uint32_t i = threadIdx.x; i < held; i += blockDim.x) {
            copy_asynchronously(to + i, from + std::uint64_t{i} * kSize);
          }
        } else {
#pragma unroll 4
          for (std::uint32_t i = threadIdx.x; i < held; i += blockDim.x) {
            to[i] = load_pack(from + std::uint64_t{i} * kSize, ends_[a]);
          }
        }
      }
    }
    end_copy_group();
  }

  // Until the row that was asked for `stages` fetches ago is there: what this thread asked for, which alone it reads.
  __device__ __forceinline__ void wait() const {
    switch (shares_.stages) {
      case 1: return wait_for_copies<0>();
      case 2: return wait_for_copies<1>();
      case 3: return wait_for_copies<2>();
      default: return wait_for_copies<kMaxStages - 1>();
    }
  }

  // visit(values of each array, offset) of each pack that this thread has, and of single elements.
  template <class Visit>
  __device__ __forceinline__ void each(std::uint32_t stage, std::uint64_t row, Visit visit) const {
    const Cut cut = cut_of(row);
    const std::uint32_t held = min(cut.packs, shares_.held);
    // Several packs are loaded before the first of them is looked at: what a visit stores could be what is loaded.
    constexpr int kBatch = 4 / kArrays;
    std::uint32_t i = threadIdx.x;
    for (; i < held; i += kBatch * blockDim.x) {
      Pack packs[kBatch][kArrays];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (i + b * blockDim.x >= held) continue;
#pragma unroll
        for (int a = 0; a < kArrays; ++a) packs[b][a] = *slot(stage, a, i + b * blockDim.x);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (i + b * blockDim.x >= held) continue;
        float values[kArrays][kSize];
#pragma unroll
        for (int a = 0; a < kArrays; ++a) unpack(packs[b][a], values[a]);
        visit(values, cut.head + std::uint64_t{i + b * blockDim.x} * kSize);
      }
    }
    // The first that does not lie in shared memory.
    i = threadIdx.x + (held + blockDim.x - 1 - threadIdx.x) / blockDim.x * blockDim.x;
#pragma unroll 2
    for (; i < cut.packs; i += blockDim.x) {
      const std::uint64_t offset = cut.head + std::uint64_t{i} * kSize;
      float values[kArrays][kSize];
#pragma unroll
      for (int a = 0; a < kArrays; ++a) {
        load_values<kAlignment>(values[a], begins_[a] + row * columns_, offset, ends_[a]);
      }
      visit(values, offset);
    }
    if constexpr (!kIsAligned) {
      if (threadIdx.x >= cut.head + cut.tail) return;
      const std::uint64_t offset = threadIdx.x < cut.head ? threadIdx.x : threadIdx.x + cut.packs * kSize;
      float values[kArrays][1];
#pragma unroll
      for (int a = 0; a < kArrays; ++a) unpack(begins_[a][row * columns_ + offset], values[a]);
      visit(values, offset);
    }
  }

  // Elements that the threads of this warp have.
  __device__ __forceinline__ float of_warp(std::uint64_t row) const {
    const Cut cut = cut_of(row);
    std::uint32_t mine = threadIdx.x < cut.packs ? ((cut.packs - 1 - threadIdx.x) / blockDim.x + 1) * kSize : 0;
    if (!kIsAligned && threadIdx.x < cut.head + cut.tail) ++mine;
    return static_cast<float>(__reduce_add_sync(~0u, mine));
  }

  __device__ __forceinline__ T* out(std::uint64_t row) const { return const_cast<T*>(out_) + row * columns_; }

 private:
  struct Cut {
    std::uint32_t head, packs, tail;
  };
  __device__ __forceinline__ Cut cut_of(std::uint64_t row) const {
    if constexpr (kIsAligned) return {0, count / kSize, 0};
    const T* const at = out_ + row * columns_;
    const auto lead = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) / sizeof(T)) % kSize;
    const std::uint32_t head = min((kSize - lead) % kSize, count), packs = (count - head) / kSize;
    return {head, packs, count - head - packs * kSize};
  }
  __device__ __forceinline__ Pack* slot(std::uint32_t stage, int array, std::uint32_t pack) const {
    return reinterpret_cast<Pack*>(ring_) + std::uint64_t{stage * kArrays + array} * shares_.held + pack;
  }

  const RowShares shares_;
  uint4* const ring_;
  const std::uint32_t rows_, columns_;
  const T* const out_;
  const T *begins_[kArrays], *ends_[kArrays];
};

}  // namespace cgrt::kernels
