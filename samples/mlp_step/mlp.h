// The MLP block of a transformer's layer, for a number of tokens that changes from step to step:
//
//   out = x + down(silu(gate(norm(x))) * up(norm(x)))      in bfloat16; x and out: a row per token
//
//   CGRT_ASSIGN_OR_RETURN(Mlp mlp, Mlp::create(DeviceRef(0), stream.ref(), {.hidden = 4096}));
//   CGRT_ASSIGN_OR_RETURN(MlpPlan plan, mlp.plan(7));
//   CGRT_RETURN_IF_ERROR(mlp_step(stream.ref(), plan, mlp.arrays()));
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/stream.h"
#include "cgrt/target/launch_target.h"
#include "cgrt_kernels/cublaslt/matmul.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/norm/norm.h"

struct MlpShape {
  std::uint64_t hidden = 4096, intermediate = 14336;  // multiples of 8
  std::uint64_t max_tokens = 64;
};

// For one number of tokens.
struct MlpPlan {
  std::uint64_t tokens;
  cgrt::kernels::NormPlan norm;
  cgrt::kernels::MatmulPlan gate_up;
  cgrt::kernels::MatrixPlan gate;
  cgrt::kernels::MatmulPlan down;
  cgrt::kernels::ElementwisePlan residual;
};

// Device addresses. Weights are rows of what they read.
struct MlpArrays {
  const void *x, *norm_weight, *gate_up_weight, *down_weight;
  void *normed, *gate_up, *gated, *down, *out;
  cgrt::kernels::Workspace workspace;
};

// The one call site: eager, captured or explicit is a matter of the target.
absl::Status mlp_step(cgrt::LaunchTarget target, const MlpPlan& plan, const MlpArrays& arrays);

class Mlp {
 public:
  // With weights and an x of random numbers. Synchronizes `stream`.
  static absl::StatusOr<Mlp> create(cgrt::DeviceRef device, cgrt::StreamRef stream, const MlpShape& shape);

  // cuBLASLt's products are planned for a power of two of rows, at least 16, so that most numbers of
  // tokens share an algorithm; what they make of the rows behind the last token nobody reads.
  absl::StatusOr<MlpPlan> plan(std::uint64_t tokens);

  const MlpArrays& arrays() const { return arrays_; }

  // Overwrites what a step writes, so that a result read afterwards was made afterwards.
  absl::Status poison(cgrt::StreamRef stream) const;

  // The bits of `out`. Synchronizes.
  absl::StatusOr<std::vector<std::uint16_t>> read_out(cgrt::StreamRef stream, std::uint64_t tokens) const;

  // The largest difference between `out` and the same in double, each array rounded to bfloat16 as on
  // the device; kDataLoss when it is more than rounding explains. For small shapes.
  absl::StatusOr<double> check_on_host(const std::vector<std::uint16_t>& out) const;

 private:
  struct Products {
    cgrt::kernels::MatmulPlan gate_up, down;
  };

  Mlp(cgrt::DeviceRef device, const MlpShape& shape) : device_(device), shape_(shape) {}
  absl::StatusOr<void*> allocate(std::uint64_t bytes);
  absl::StatusOr<void*> upload(cgrt::StreamRef stream, const std::vector<std::uint16_t>& elements);

  cgrt::DeviceRef device_;
  MlpShape shape_;
  MlpArrays arrays_{};
  std::vector<cgrt::DeviceBuffer> buffers_;
  std::map<std::uint64_t, Products> products_;  // by rows
};
