// Plans of all families that have clusters, where the code or the device has none.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "support/catch.h"
#include "support/launches.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

struct Planned {
  std::string name;
  std::function<absl::Status(LaunchTarget)> launch;
};

// Shapes that have clusters on an H200, in each family and regime that has some, at both alignments.
std::vector<Planned> planned() {
  std::vector<Planned> all;
  static unsigned char* const memory = reinterpret_cast<unsigned char*>(4096);
  const auto add = [&](const std::string& name, auto plan, auto launch) {
    REQUIRE(plan.ok());
    all.push_back({name, [=, plan = *plan](LaunchTarget target) { return launch(target, plan); }});
  };
  for (const std::size_t shift : {0, 4}) {
    void* const a = memory + shift;
    void* const b = memory + 4096 + shift;
    for (const std::uint64_t columns : {32768, 49140}) {
      for (const std::uint64_t rows : {33, 300}) {
        const std::string shape = absl::StrCat(" of ", rows, "x", columns, " + ", shift);
        for (const DType type : {DType::kFloat32, DType::kFloat16}) {
          const std::uint64_t of_type = columns * 4 / size_of(type);
          add(absl::StrCat("softmax of ", to_string(type), shape),
              plan_softmax(kDevice, {SoftmaxOp::kSoftmax, type, rows, of_type}),
              [=](LaunchTarget target, const SoftmaxPlan& plan) {
                return launch_softmax(target, plan, {.out = a, .in = a, .workspace = {memory, plan.workspace_bytes}});
              });
          add(absl::StrCat("layer_norm of ", to_string(type), shape),
              plan_norm(kDevice, {NormOp::kLayerNorm, type, rows, of_type}),
              [=](LaunchTarget target, const NormPlan& plan) {
                return launch_norm(target, plan, {.out = a, .in = a, .workspace = {memory, plan.workspace_bytes}});
              });
        }
        for (const Residual residual : {Residual::kNone, Residual::kAdded}) {
          const bool is_added = residual == Residual::kAdded;
          add(absl::StrCat(is_added ? "add_" : "", "rms_norm", shape),
              plan_norm(kDevice, {NormOp::kRmsNorm, DType::kFloat32, rows, columns, 1e-5f, residual}),
              [=](LaunchTarget target, const NormPlan& plan) {
                return launch_norm(target, plan,
                                   {.out = a,
                                    .in = a,
                                    .residual = is_added ? a : nullptr,
                                    .sum = is_added ? b : nullptr,
                                    .workspace = {memory, plan.workspace_bytes}});
              });
        }
        for (const WeightGradients gradients : {WeightGradients::kNone, WeightGradients::kSummed}) {
          add(absl::StrCat("rms_norm backward", gradients == WeightGradients::kSummed ? ", summed" : "", shape),
              plan_norm_backward(kDevice, {NormOp::kRmsNorm, DType::kFloat32, rows, columns, 1e-5f, gradients}),
              [=](LaunchTarget target, const NormBackwardPlan& plan) {
                return launch_norm_backward(
                    target, plan,
                    {.dx = a, .dy = a, .x = a, .dweight = a, .workspace = {memory, plan.workspace_bytes}});
              });
        }
        add(absl::StrCat("masked_softmax", shape), plan_masked_softmax(kDevice, {.rows = rows, .columns = columns}),
            [=](LaunchTarget target, const MaskedSoftmaxPlan& plan) {
              return launch_masked_softmax(target, plan,
                                           {.out = a, .in = a, .workspace = {memory, plan.workspace_bytes}});
            });
      }
    }
  }
  auto* const floats = reinterpret_cast<float*>(memory);
  for (const BatchNormOp op : {BatchNormOp::kTrain, BatchNormOp::kBackward}) {
    add(to_string(op), plan_batch_norm(kDevice, {.op = op, .batch = 256, .channels = 512, .plane = 784}),
        [=](LaunchTarget target, const BatchNormPlan& plan) {
          if (op == BatchNormOp::kTrain) {
            return launch_batch_norm_train(target, plan,
                                           {.y = memory,
                                            .x = memory,
                                            .save_mean = floats,
                                            .save_invstd = floats,
                                            .workspace = {memory, plan.workspace_bytes}});
          }
          return launch_batch_norm_backward(target, plan,
                                            {.x_gradient = memory,
                                             .x = memory,
                                             .y_gradient = memory,
                                             .save_mean = floats,
                                             .save_invstd = floats,
                                             .workspace = {memory, plan.workspace_bytes}});
        });
  }
  return all;
}

std::uint64_t largest_cluster(const Planned& plan) {
  std::uint64_t largest = 0;
  for (const LaunchAttributes& attributes : launches_of(plan.name, plan.launch).attributes) {
    largest = std::max(largest, attributes.cluster.count());
  }
  return largest;
}

TEST_CASE("long rows and large channels are shared by clusters", "[kernels]") {
  Simulator simulator;

  for (const Planned& plan : planned()) {
    INFO(plan.name);
    CHECK(largest_cluster(plan) > 1);
  }
}

TEST_CASE("no family plans clusters for code that was compiled for 8.0, whatever the device", "[kernels]") {
  Simulator simulator({.ptx_version = 80});

  for (const Planned& plan : planned()) {
    INFO(plan.name);
    CHECK(largest_cluster(plan) == 1);
  }
}

TEST_CASE("every family plans without clusters where none of its clusters fits", "[kernels]") {
  for (const int largest : {1, 2, 4, 8}) {
    Simulator simulator({.largest_cluster = largest});

    for (const Planned& plan : planned()) {
      INFO(plan.name << ", room for clusters of " << largest);
      CHECK(largest_cluster(plan) <= static_cast<std::uint64_t>(largest));
    }
  }
}

TEST_CASE("a failing question for large clusters fails the plan", "[kernels]") {
  for (const char* const call : {"cuKernelSetAttribute", "cuOccupancyMaxActiveClusters"}) {
    Simulator simulator;
    driver::Instrument instrument;
    instrument.fail_entry(call, CUDA_ERROR_OUT_OF_MEMORY);

    INFO(call);
    CHECK(cuda_result(plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 40, 250000}).status()) ==
          CUDA_ERROR_OUT_OF_MEMORY);
  }
}

}  // namespace
}  // namespace cgrt::testing
