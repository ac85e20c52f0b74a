// What batch_norm's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/batch_norm/batch_norm_desc.h"
#include "cgrt_kernels/batch_norm/shape.h"
#include "cgrt_kernels/common/alignment.h"

namespace cgrt::kernels {

// What most kernels read comes first: the first read of each 64 bytes takes a launch 100 clocks (H100).
struct BatchNormOperands {
  void* out = nullptr;            // y, or the gradient of x
  const void* in = nullptr;       // x
  const float* mean = nullptr;    // infer, backward
  const float* spread = nullptr;  // infer: the variance; backward: invstd
  const float* weight = nullptr;  // null: ones
  const float* bias = nullptr;    // null: zeros
  float epsilon = 0, momentum = 0;
};
struct BatchNormOthers {
  const void* gradient = nullptr;  // of y
  float* save_mean = nullptr;
  float* save_invstd = nullptr;
  float* running_mean = nullptr;  // train; may be null
  float* running_variance = nullptr;
  float* weight_gradient = nullptr;  // may be null
  float* bias_gradient = nullptr;
  void* partials = nullptr;      // in the workspace: `slots` of each channel
  void* coefficients = nullptr;  // in the workspace: one of each channel
};
struct BatchNormParams : BatchNormOperands, BatchNormShape, BatchNormOthers {};

using BatchNormKernel = Kernel<BatchNormParams>;

// A tensor is read twice, by three kernels; inference needs the last only.
enum class BatchNormStep : std::uint8_t {
  kStatistics,  // each block's share of the sums of its channels
  kFinish,      // the sums of a channel; what is saved, and the coefficients for the elements
  kApply,       // each element
  kApplyOnce,   // the same where a thread has one row of packs; inference only
  // The same by packs, where rows are no whole packs or begin anywhere. Planes of 16-bit types have at least a pack.
  kApplyShifted,
};
BatchNormKernel streamed_batch_norm_kernel(BatchNormOp op, DType type, BatchNormStep step, Alignment alignment);

// Or once: a block or a cluster keeps all elements of some channels in shared memory, aligned rows only; or a block
// keeps those of a channel, or of a few, in registers.
BatchNormKernel resident_batch_norm_kernel(BatchNormOp op, DType type);
BatchNormKernel held_batch_norm_kernel(BatchNormOp op, DType type, std::uint32_t held);  // elements of a thread
BatchNormKernel packed_batch_norm_kernel(BatchNormOp op, DType type);  // held as packs, aligned rows only

// Threads of a block; a resident one has the second number if the rows of its channels are too wide for the first.
inline constexpr std::uint32_t kBatchNormThreads = 256, kBatchNormMaxThreads = 384;
inline constexpr std::uint32_t kBatchNormMaxChannels = 64;  // of a resident tile
// Elements, or packs, of a thread that holds them, and threads of its block, at most: with gradients, more would have
// too few registers.
inline constexpr std::uint32_t kBatchNormHeld = 16, kBatchNormFewHeld = 4, kBatchNormHeldPacks = 4;
constexpr std::uint32_t held_threads(BatchNormOp op) { return op == BatchNormOp::kBackward ? 768 : 1024; }

// Partial sums that a thread leaves in shared memory: one when none of its packs lies in two channels.
__host__ __device__ constexpr std::uint32_t partials_of_thread(std::uint32_t plane, std::uint32_t lanes) {
  return plane % lanes == 0 ? 1 : plane >= lanes ? 2 : lanes;
}
// Of all threads of a block: three floats each, and a gap behind each entry (see PartsInShared).
__host__ __device__ constexpr std::uint32_t bytes_of_partials(std::uint32_t plane, std::uint32_t lanes,
                                                              std::uint32_t threads) {
  return partials_of_thread(plane, lanes) * (3 * threads + 32 / lanes) * 4;
}

// The shared memory of a resident block: its packs of each array, then partial sums. A tile of one
// channel is shared out pack by pack; of several, so that a thread keeps to its columns.
struct ResidentLayout {
  std::uint32_t active = 0;            // threads that have packs
  std::uint32_t packs_per_thread = 0;  // of each array
  std::uint32_t bytes = 0;
};
__host__ __device__ constexpr ResidentLayout resident_layout(std::uint32_t rows, std::uint32_t tile_packs,
                                                             std::uint32_t plane, std::uint32_t lanes,
                                                             std::uint32_t threads, std::uint32_t arrays) {
  ResidentLayout layout;
  layout.active = tile_packs * lanes == plane ? threads : threads / tile_packs * tile_packs;
  layout.packs_per_thread = (rows * tile_packs + layout.active - 1) / layout.active;
  layout.bytes = arrays * layout.packs_per_thread * layout.active * 16 + bytes_of_partials(plane, lanes, threads);
  return layout;
}

}  // namespace cgrt::kernels
