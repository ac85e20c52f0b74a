// Batch normalization over the channels of a tensor: what can be asked for. Plain: no Abseil. The
// functions that plan and launch are in batch_norm.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// mean and variance are those of a channel, over all its elements; invstd is 1 / sqrt(variance + epsilon).
enum class BatchNormOp : std::uint8_t {
  kTrain,     // y = (x - mean) * invstd * weight + bias; mean and invstd are saved, running ones updated
  kInfer,     // the same with the running mean and variance
  kBackward,  // of kTrain: gradients of x, weight and bias from that of y
};
constexpr const char* to_string(BatchNormOp op) {
  switch (op) {
    case BatchNormOp::kTrain: return "batch_norm_train";
    case BatchNormOp::kInfer: return "batch_norm_infer";
    case BatchNormOp::kBackward: return "batch_norm_backward";
  }
  return "unknown";
}

enum class ChannelOrder : std::uint8_t {
  kNchw,  // a plane for each channel of each image
  kNhwc,  // a channel for each element of the last dimension; with one element per plane, [T, C]
};

struct BatchNormDesc {
  BatchNormOp op = BatchNormOp::kTrain;
  ChannelOrder order = ChannelOrder::kNchw;
  DType type = DType::kFloat32;  // of x, y and their gradients; or float16, bfloat16. All else is float32
  std::uint64_t batch = 0, channels = 0;
  std::uint64_t plane = 1;  // elements of a channel in one image: height * width
  float epsilon = 1e-5f;
  float momentum = 0.1f;         // running = (1 - momentum) * running + momentum * this batch's
  std::uint32_t alignment = 16;  // of the addresses of x, y and their gradients; below 16 is slower
};

// What the kernels take. They see a matrix: NCHW has a row per image, of channels * plane columns; NHWC
// has a row per pixel, of `channels` columns, and planes of one. So column k belongs to channel
// k / plane, in both.
struct BatchNormTask {
  void* out = nullptr;             // y, or the gradient of x
  const void* in = nullptr;        // x
  const void* gradient = nullptr;  // of y
  const float* weight = nullptr;   // null: ones
  const float* bias = nullptr;     // null: zeros
  const float* mean = nullptr;     // infer, backward
  const float* spread = nullptr;   // infer: the variance; backward: invstd
  float* save_mean = nullptr;
  float* save_invstd = nullptr;
  float* running_mean = nullptr;  // train; may be null
  float* running_variance = nullptr;
  float* weight_gradient = nullptr;  // may be null
  float* bias_gradient = nullptr;
  void* partials = nullptr;      // in the workspace: `slots` of each channel
  void* coefficients = nullptr;  // in the workspace: one of each channel

  float epsilon = 0, momentum = 0;
  std::uint32_t rows = 0, columns = 0, plane = 1;
  std::uint32_t tile_packs = 0, tiles = 0;        // of a row: a block has a tile of columns; kHeld: of channels
  std::uint32_t splits = 0;                       // and one of so many parts of its rows
  std::uint32_t split_rows = 0;                   // kResident, kApply: of a part
  Divisor tiles_divisor;                          // kApply: tiles
  std::uint32_t step_rows = 0, step_columns = 0;  // kHeld: from an element of a thread to the next
  std::uint32_t slots = 0;
};

using BatchNormKernel = Kernel<BatchNormTask>;

enum class BatchNormStep : std::uint8_t {
  kStatistics,  // each block's share of the sums of its channels
  kFinish,      // the sums of a channel; what is saved, and the coefficients for the elements
  kApply,       // each element
  kResident,    // all three: a block or a cluster keeps all elements of some channels in shared memory
  kHeld,        // all three, element by element: a block keeps those of a channel, or of a few, in registers
};

// The device code of a step (kernels.cu). kPacked: 16 bytes at a time; otherwise an element. kFinish,
// kResident and kHeld ignore it.
enum class BatchNormAccess : std::uint8_t { kPacked, kElement };
BatchNormKernel batch_norm_kernel(BatchNormOp op, DType type, BatchNormStep step, BatchNormAccess access);

// Threads of a block; a resident one has the second number if the rows of its channels are too wide for the first.
inline constexpr std::uint32_t kBatchNormThreads = 256, kBatchNormMaxThreads = 384;
inline constexpr std::uint32_t kBatchNormMaxChannels = 64;  // of a resident tile
// Elements of a thread that holds them, and threads of its block, at most: with gradients, more would have too few
// registers.
inline constexpr std::uint32_t kBatchNormHeld = 16;
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
