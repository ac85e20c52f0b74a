// The threads that share a row: lanes of a warp, a block, or a cluster of blocks; and their reductions. Always in the
// same order, so that results do not vary.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/reduction.cuh"

namespace cgrt::kernels {

template <int kLanesOfRow>
struct LanesPerRow {
  static constexpr int kMaxThreads = 128;  // of a block
  static constexpr int kLanes = kLanesOfRow;
  static constexpr bool kIsWarp = true;
  __device__ std::uint32_t row() const { return blockIdx.x * (blockDim.x / kLanes) + threadIdx.x / kLanes; }
  __device__ std::uint32_t rows() const { return gridDim.x * (blockDim.x / kLanes); }
  __device__ std::uint32_t thread() const { return threadIdx.x % kLanes; }
  __device__ std::uint32_t block() const { return 0; }
  __device__ std::uint32_t blocks() const { return 1; }
  template <class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_lanes<kLanes>(mine);
  }
  // Facts of a row of `count` elements from those of the lanes.
  template <class Part>
  __device__ Part join(Part of_lanes, float) const {
    return of_lanes;
  }
  __device__ void next() {}
};
using WarpPerRow = LanesPerRow<32>;

// The run of a row's columns that a block works on, in registers: shares of whole packs.
struct RowRun {
  std::uint32_t begin, count;
  __device__ __forceinline__ RowRun(std::uint32_t columns, std::uint32_t blocks, std::uint32_t block,
                                    std::uint32_t pack) {
    const std::uint32_t share = ((columns + blocks - 1) / blocks + pack - 1) / pack * pack;
    begin = min(block * share, columns), count = min(share, columns - begin);
  }
};

// What groups of whole blocks share.
template <int kMaxWarps>
struct WarpsOfBlock {
  static constexpr int kMaxThreads = 32 * kMaxWarps;
  static constexpr int kLanes = 32;
  static constexpr bool kIsWarp = false;
  __device__ std::uint32_t thread() const { return threadIdx.x; }

  // Ends a reduction: places of partial results alternate, as a slow warp may still read those of the last one.
  __device__ void next() { ++turn; }
  std::uint32_t turn = 0;

  // What the warps of this block have, spread over the lanes of each.
  template <class Value>
  __device__ Value of_warps(Value of_warp) const {
    __shared__ Value partials[2][kMaxWarps];
    Value* const partial = partials[turn % 2];
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane == 0) partial[threadIdx.x / 32] = of_warp;
    __syncthreads();
    return lane < blockDim.x / 32 ? partial[lane] : none(of_warp);
  }
};

// A block, or a cluster of up to 16, which send each other their partial results.
template <int kMaxWarps>
struct ClusterPerRow : WarpsOfBlock<kMaxWarps> {
  using WarpsOfBlock<kMaxWarps>::turn;
#if __CUDA_ARCH__ >= 900
  __device__ ClusterPerRow() {
    if (blocks() == 1) return;
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2; ++i) barriers()[i].initialize();
      make_barriers_visible_to_cluster();
    }
    cooperative_groups::cluster_group::barrier_arrive();
  }
  __device__ std::uint32_t blocks() const { return cooperative_groups::cluster_group::num_blocks(); }
  __device__ std::uint32_t block() const { return cooperative_groups::cluster_group::block_rank(); }
#else
  __device__ std::uint32_t blocks() const { return 1; }
  __device__ std::uint32_t block() const { return 0; }
#endif
  __device__ std::uint32_t row() const { return blockIdx.x / blocks(); }
  __device__ std::uint32_t rows() const { return gridDim.x / blocks(); }  // that are worked on at once

  template <class Value>
  __device__ Value reduce(Value mine) const {
    return reduce_lanes(of_row(reduce_lanes(mine), [](Value parts) { return reduce_lanes(parts); }));
  }
  // Facts of a row of `count` elements from those of the warps.
  template <class Part>
  __device__ Part join(Part of_warp, float count) const {
    return join_warp(of_row(of_warp, [](Part parts) { return join_warp(parts, reduce_lanes(parts.count)); }), count);
  }

 private:
  // What the parts of the row have, spread over the lanes of each warp: its warps, or its blocks when there are
  // more than 32 warps, the parts of a block joined first.
  template <class Value, class Join>
  __device__ Value of_row(Value of_warp, Join join) const {
    if (blocks() == 1) return this->of_warps(of_warp);
    const std::uint32_t warps = blockDim.x / 32;
    const bool are_warps = blocks() * warps <= 32;
    if (!are_warps) {
      of_warp = this->of_warps(of_warp);
      if (threadIdx.x < 32) of_warp = join(of_warp);
    }
    const std::uint32_t of_block = are_warps ? warps : 1;  // values
    return of_cluster(of_warp, block() * of_block + (are_warps ? threadIdx.x / 32 : 0), blocks() * of_block,
                      are_warps || threadIdx.x < 32);
  }

  // What `parts` of the cluster have; a warp of each sends it to all blocks.
  template <class Value>
  __device__ Value of_cluster(Value mine, std::uint32_t part, std::uint32_t parts, bool sends) const {
#if __CUDA_ARCH__ >= 900
    __shared__ Value partials[2][32];
    Value* const partial = partials[turn % 2];
    BulkBarrier& barrier = barriers()[turn % 2];
    const std::uint32_t lane = threadIdx.x % 32;
    if (turn == 0) cooperative_groups::cluster_group::barrier_wait();  // all have begun
    if (threadIdx.x == 0) barrier.expect(parts * sizeof(Value));
    if (sends && lane < blocks()) barrier.send(lane, partial + part, mine);
    barrier.wait_for_cluster(turn / 2 % 2);
    return lane < parts ? partial[lane] : none(mine);
#else
    return mine;
#endif
  }

#if __CUDA_ARCH__ >= 900
  __device__ static BulkBarrier* barriers() {
    __shared__ BulkBarrier of_turns[2];
    return of_turns;
  }
#endif
};

}  // namespace cgrt::kernels
