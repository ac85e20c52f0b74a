// Batch normalization over the channels of a tensor: what can be asked for. Plain: no Abseil. The
// functions that plan and launch are in batch_norm.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

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

// Device addresses of contiguous arrays: x, y and their gradients of batch * channels * plane elements, aligned as the
// descriptor says; the others of `channels` floats. All are required but where null is named. Overlaps other than those
// named are undefined.
struct BatchNormTrainArgs {
  void* y = nullptr;  // may be x
  const void* x = nullptr;
  const float* weight = nullptr;  // null: ones
  const float* bias = nullptr;    // null: zeros
  float* running_mean = nullptr;  // updated; both are null or neither
  float* running_variance = nullptr;
  float* save_mean = nullptr;
  float* save_invstd = nullptr;
  Workspace workspace = {};  // BatchNormPlan::workspace_bytes
};

struct BatchNormInferArgs {
  void* y = nullptr;  // may be x
  const void* x = nullptr;
  const float* weight = nullptr;  // null: ones
  const float* bias = nullptr;    // null: zeros
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
};

struct BatchNormBackwardArgs {
  void* x_gradient = nullptr;  // may be x or y_gradient
  const void* x = nullptr;
  const void* y_gradient = nullptr;
  const float* weight = nullptr;     // null: ones
  const float* save_mean = nullptr;  // what the training launch wrote
  const float* save_invstd = nullptr;
  float* weight_gradient = nullptr;  // null: not written
  float* bias_gradient = nullptr;    // null: not written
  Workspace workspace = {};          // BatchNormPlan::workspace_bytes
};

}  // namespace cgrt::kernels
