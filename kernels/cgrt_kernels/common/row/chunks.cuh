// Rows of any length in chunks, each of which a block works on alone. A first kernel leaves in the workspace what it
// has found in each chunk; a second one merges what the chunks of a row have, and writes. No block waits for another
// one, and all is read twice: what the L2 cache keeps meanwhile costs little the second time.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/join.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/common/row/units.cuh"
#include "cgrt_kernels/common/row/window.cuh"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

enum class ChunkPass { kFind, kWrite };

// The parts of chunks: those of a row lie together.
template <class Part>
__device__ __forceinline__ Part* chunk_parts(void* workspace) {
  return reinterpret_cast<Part*>(static_cast<unsigned char*>(workspace) + kWorkspaceHeaderBytes);
}

// As SlicedRows (slices.cuh), without columns of a block's own. kLands: chunks pass through shared memory, so that a
// whole chunk is asked for at once.
template <class T, class Part, int kArrays, ChunkPass kPass, bool kLands = true>
class ChunkedRows {
 public:
  static constexpr std::uint32_t kThreads = kChunkThreads, kMinBlocks = 4;
  static constexpr bool kHoldsColumns = false, kWrites = kPass == ChunkPass::kWrite;
  using Element = T;
  using Place = UnitPlace<T, kThreads>;
  using Array = UnitArray<const T, Place, true>;
  // `count` columns of a row from `begin` on, elements from `first` on.
  struct Work {
    std::uint64_t first;
    std::uint32_t row, begin, count;
  };

  // `landing`: shared memory for a chunk of each array.
  __device__ ChunkedRows(const RowSlices& shape, std::uint32_t rows, std::uint32_t columns, void* workspace,
                         uint4* landing, const void* const (&arrays)[kArrays], const void* out)
      : shape_(shape),
        rows_(rows),
        columns_(columns),
        parts_(chunk_parts<Part>(workspace)),
        landing_(reinterpret_cast<unsigned char*>(landing)),
        out_(static_cast<const T*>(out)) {
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      arrays_[a] = static_cast<const T*>(arrays[a]);
      are_alike_ &= (reinterpret_cast<std::uintptr_t>(arrays_[a]) - reinterpret_cast<std::uintptr_t>(out)) % 4 == 0;
    }
    initialize_barrier();
    // Of what others wrote the second kernel misses only the parts: the first had waited for the rest.
    if (kWrites) fetch(blockIdx.x);
    wait_for_predecessors();
    let_dependents_start();
    if (!kWrites) fetch(blockIdx.x);
    __syncthreads();
  }

  // As SlicedRows::run; of the two only what this pass is for is called.
  template <class PartOf, class Write>
  __device__ __forceinline__ void run(PartOf part_of, Write write) {
    std::uint32_t phase = 0;
    for (std::uint64_t at = blockIdx.x; at < all(); at += gridDim.x, phase ^= 1) {
      const Work work = work_of(at);
      const Place place(out_ + work.first, work.count, threadIdx.x, are_alike_);
      if constexpr (kPass == ChunkPass::kFind) {
        const Part part = of_block(visit(place, work, phase, part_of));
        if (threadIdx.x == 0) parts_[at] = part;
      } else {
        const Part* const of_row = parts_ + std::uint64_t{work.row} * shape_.chunks;
        Part mine = none(Part{});
        for (std::uint32_t i = threadIdx.x; i < shape_.chunks; i += kThreads) mine = merge(mine, of_row[i]);
        const Part facts = of_block(mine);
        visit(place, work, phase, [&](const Place&, const Work&, const auto&... arrays) {
          write(place, work, facts, arrays...);
          return 0;
        });
      }
      if (at + gridDim.x < all()) {
        __syncthreads();
        fetch(at + gridDim.x);
      }
    }
  }

 private:
  __device__ __forceinline__ std::uint64_t all() const { return std::uint64_t{rows_} * shape_.chunks; }
  __device__ __forceinline__ Work work_of(std::uint64_t at) const {
    Work work;
    work.row = static_cast<std::uint32_t>(at / shape_.chunks);
    work.begin = static_cast<std::uint32_t>(at - std::uint64_t{work.row} * shape_.chunks) * shape_.columns;
    work.begin = min(work.begin, columns_);
    work.count = min(shape_.columns, columns_ - work.begin);
    work.first = std::uint64_t{work.row} * columns_ + work.begin;
    return work;
  }
#if __CUDA_ARCH__ >= 900
  static constexpr bool kIsFetched = kLands;
  __device__ static BulkBarrier& landed() {
    __shared__ BulkBarrier of_block;
    return of_block;
  }
  __device__ __forceinline__ Window<T> window_of(const Work& work, int array) const {
    const T* const begin = arrays_[array];
    return {begin + work.first, work.count, begin, begin + std::uint64_t{rows_} * columns_};
  }
  __device__ __forceinline__ unsigned char* landing(int array) const { return landing_ + array * shape_.stride; }
  __device__ __forceinline__ void initialize_barrier() const {
    if (!kIsFetched || threadIdx.x != 0) return;
    landed().initialize();
    make_barriers_visible();
  }
  __device__ __forceinline__ void fetch(std::uint64_t at) const {
    if (!kIsFetched || threadIdx.x != 0 || at >= all()) return;
    const Work work = work_of(at);
    copy_all<kArrays>(
        landed(), [&](int a) { return window_of(work, a); }, [&](int a) { return landing(a); });
  }
  __device__ __forceinline__ void wait(const Work& work, std::uint32_t phase, const T* (&from)[kArrays]) const {
    landed().wait(phase);
    begins_of(
        from, [&](int a) { return window_of(work, a); }, [&](int a) { return landing(a); });
  }
#else
  static constexpr bool kIsFetched = false;
  __device__ void initialize_barrier() const {}
  __device__ void fetch(std::uint64_t) const {}
  __device__ void wait(const Work&, std::uint32_t, const T* (&)[kArrays]) const {}
#endif
  template <class Visit>
  __device__ __forceinline__ auto visit(const Place& place, const Work& work, std::uint32_t phase,
                                        Visit visit_arrays) const {
    const T* from[kArrays];
    if constexpr (kIsFetched) {
      wait(work, phase, from);
    } else {
#pragma unroll
      for (int a = 0; a < kArrays; ++a) from[a] = arrays_[a] + work.first;
    }
    if constexpr (kArrays == 1) {
      return visit_arrays(place, work, Array(from[0], place));
    } else {
      return visit_arrays(place, work, Array(from[0], place), Array(from[1], place));
    }
  }
  // To all threads, always in the same order.
  __device__ Part of_block(Part mine) {
    constexpr std::uint32_t kWarps = kThreads / 32;
    __shared__ Part of_warps[2][kWarps];  // in turn: a slow warp may still read those of the last chunk
    Part* const parts = of_warps[turn_];
    turn_ ^= 1;
    mine = join_lanes(mine);
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    return join_lanes(lane < kWarps ? parts[lane] : none(Part{}));
  }

  const RowSlices shape_;
  const std::uint32_t rows_, columns_;
  Part* const parts_;
  unsigned char* const landing_;
  const T* const out_;
  const T* arrays_[kArrays];
  bool are_alike_ = true;  // as `out`, between multiples of 4
  std::uint32_t turn_ = 0;
};

}  // namespace cgrt::kernels
