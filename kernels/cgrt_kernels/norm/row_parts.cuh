// What the warps that share a row know of it, and how they tell each other without waiting at once: a warp posts its
// part, works on another row meanwhile, and takes the parts of all warps later.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/mbarrier.cuh"
#include "cgrt_kernels/common/row/shape.h"
#include "cgrt_kernels/norm/comoments.cuh"

namespace cgrt::kernels {

// Counts threads that arrive, or bytes that other blocks of the cluster send.
#if __CUDA_ARCH__ >= 900
class PartBarrier : public BulkBarrier {
 public:
  __device__ __forceinline__ void initialize(std::uint32_t count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(count) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(shared_address(this))
                 : "memory");
  }
};
#else
using PartBarrier = Mbarrier;
#endif

// Of `warps` warps in each block of a cluster. A block may have several rows at once, each of its own warps.
template <class Part>
class RowParts {
 public:
  std::uint32_t blocks = 1, block = 0;

  // Before anything else; begin() follows before the first post.
  __device__ RowParts() {
#if __CUDA_ARCH__ >= 900
    blocks = cooperative_groups::cluster_group::num_blocks();
    block = cooperative_groups::cluster_group::block_rank();
#endif
  }
  // `thread` of those that share row `index` of this block.
  __device__ void initialize(std::uint32_t index, std::uint32_t warps, std::uint32_t thread) {
    warps_ = warps, index_ = index, warp_ = thread / 32;
    if (is_alone()) return;
    if (thread == 0) {
      for (int i = 0; i < kTurns; ++i) barrier(i).initialize(blocks == 1 ? warps : 1);
#if __CUDA_ARCH__ >= 900
      make_barriers_visible_to_cluster();
#endif
    }
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) {
      cooperative_groups::cluster_group::barrier_arrive();
      return;
    }
#endif
    __syncthreads();
  }
  __device__ __forceinline__ void begin() const {
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) cooperative_groups::cluster_group::barrier_wait();
#endif
  }
  // A single warp has the row.
  __device__ __forceinline__ bool is_alone() const { return warps_ * blocks == 1; }

  // What this warp, of which each lane has the same, knows of the row that is `ahead` rows after that which is taken.
  __device__ __forceinline__ void post(const Part& part, std::uint32_t ahead) {
    const std::uint32_t turn = (turn_ + ahead) % kTurns, lane = threadIdx.x % 32;
    Part* const to = parts(turn) + block * warps_ + warp_;
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) {
      PartBarrier& to_wait_for = barrier(turn);
      if (warp_ == 0 && lane == 0) to_wait_for.expect(warps_ * blocks * static_cast<std::uint32_t>(sizeof(Part)));
      if (lane < blocks) to_wait_for.send(lane, to, part);
      return;
    }
#endif
    __syncwarp();  // what other lanes have read comes before this lane's arrival, which stands for all
    if (lane == 0) *to = part, barrier(turn).arrive();
  }
  // Until all parts of the row are there.
  __device__ __forceinline__ void wait() const {
    PartBarrier& to_wait_for = barrier(turn_ % kTurns);
    const std::uint32_t phase = turn_ / kTurns % 2;
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) return to_wait_for.wait_for_cluster(phase);
#endif
    to_wait_for.wait(phase);
  }
  // visit(part) of each, spread over the lanes that reduce() adds.
  template <class Visit>
  __device__ __forceinline__ void each(Visit visit) const {
    const Part* const from = parts(turn_ % kTurns);
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x & (lanes() - 1); i < warps_ * blocks; i += 32) visit(from[i]);
  }
  template <class... Values>
  __device__ __forceinline__ void reduce(Values&... values) const {
#pragma unroll 1
    for (std::uint32_t mask = lanes() / 2; mask > 0; mask /= 2) {
      ((values += shuffle(values, static_cast<int>(mask))), ...);
    }
  }
  __device__ __forceinline__ void next() { ++turn_; }

 private:
  // Of rows whose parts are kept: a warp posts row n + 4 after it has waited for row n + 2, which all posted after they
  // had read the parts of row n.
  static constexpr std::uint32_t kTurns = 4;
  static constexpr std::uint32_t kMaxWarps = kMaxThreads / 32;
#if __CUDA_ARCH__ >= 900
  static constexpr std::uint32_t kMaxParts = kMaxWarps * 8;
#else
  static constexpr std::uint32_t kMaxParts = kMaxWarps;
#endif
  // That have the parts of a row, the others the same again: a power of two.
  __device__ __forceinline__ std::uint32_t lanes() const {
#if __CUDA_ARCH__ >= 900
    return 1u << min(32 - __clz(static_cast<int>(warps_ * blocks - 1)), 5);
#else
    return 32;  // with fewer, registers do not suffice
#endif
  }
  __device__ __forceinline__ Part* parts(std::uint32_t turn) const {
    __shared__ Part of_turns[kTurns][kMaxParts];
    return of_turns[turn] + index_ * warps_;
  }
  __device__ __forceinline__ PartBarrier& barrier(std::uint32_t turn) const {
    __shared__ PartBarrier of_turns[kMaxWarps / 2][kTurns];
    return of_turns[index_][turn];
  }

  std::uint32_t warps_ = 1, index_ = 0, warp_ = 0, turn_ = 0;
};

}  // namespace cgrt::kernels
