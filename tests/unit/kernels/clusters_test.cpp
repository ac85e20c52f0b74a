// Plans of all families that have clusters, where the code or the device has none.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/bias_norm/kernels.h"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "support/catch.h"
#include "support/idle_sink.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

constexpr DeviceRef kDevice(0);

// What is launched into it, not run.
class Launches final : public IdleSink {
 public:
  std::vector<LaunchAttributes> attributes;
  std::vector<KernelRef> kernels;
  std::vector<Dim3> grids, blocks;

  absl::Status add_kernel(const KernelLaunch& launch, EdgeKind) override {
    attributes.push_back(launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{});
    kernels.emplace_back(launch.kernel);
    grids.push_back(launch.grid);
    blocks.push_back(launch.block);
    return absl::OkStatus();
  }
};

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

Launches launches_of(const Planned& plan) {
  Launches found;
  INFO(plan.name);
  REQUIRE(plan.launch(LaunchTarget::into(found)) == absl::OkStatus());
  return found;
}

std::uint64_t largest_cluster(const Planned& plan) {
  std::uint64_t largest = 0;
  for (const LaunchAttributes& attributes : launches_of(plan).attributes) {
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

// A plan of each operation on rows, at one alignment: its launches, and what it needs for rows in slices or in chunks.
struct RowsPlanned {
  Launches launches;
  std::size_t workspace_bytes;
  std::uint64_t cluster() const { return launches.attributes.front().cluster.count(); }
};
std::vector<RowsPlanned> planned_rows(DType type, std::uint64_t rows, std::uint64_t columns, std::size_t shift) {
  unsigned char* const memory = reinterpret_cast<unsigned char*>(4096);
  void* const a = memory + shift;
  std::vector<RowsPlanned> all;
  const auto add = [&](const auto& plan, auto launch) {
    REQUIRE(plan.ok());
    all.push_back({{}, plan->workspace_bytes});
    REQUIRE_OK(launch(LaunchTarget::into(all.back().launches), *plan, Workspace{memory, plan->workspace_bytes}));
  };
  add(plan_softmax(kDevice, {SoftmaxOp::kSoftmax, type, rows, columns}),
      [=](LaunchTarget target, const SoftmaxPlan& plan, const Workspace& workspace) {
        return launch_softmax(target, plan, {.out = a, .in = a, .workspace = workspace});
      });
  add(plan_softmax_backward(kDevice, {SoftmaxOp::kSoftmax, type, rows, columns}),
      [=](LaunchTarget target, const SoftmaxBackwardPlan& plan, const Workspace& workspace) {
        return launch_softmax_backward(target, plan, {.dx = a, .dy = a, .y = a, .workspace = workspace});
      });
  for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
    add(plan_norm(kDevice, {op, type, rows, columns}),
        [=](LaunchTarget target, const NormPlan& plan, const Workspace& workspace) {
          return launch_norm(target, plan, {.out = a, .in = a, .workspace = workspace});
        });
  }
  return all;
}
struct Row {
  std::uint64_t columns;
  DType type;
};
constexpr Row kLargeRows[] = {
    {140000, DType::kFloat32}, {262144, DType::kFloat32}, {300000, DType::kFloat16}, {327680, DType::kBFloat16}};

TEST_CASE("rows that need the registers of 16 blocks have clusters of 16", "[kernels]") {
  Simulator simulator;

  for (const auto& [columns, type] : kLargeRows) {
    INFO(columns << " of " << to_string(type));
    for (const RowsPlanned& plan : planned_rows(type, 40, columns, 0)) CHECK(plan.cluster() == 16);
  }
  for (const RowsPlanned& plan : planned_rows(DType::kFloat32, 40, 140001, 4)) {
    CHECK(plan.cluster() == 16);
    CHECK(plan.workspace_bytes == 0);
  }
}

TEST_CASE("where a device has no clusters of 16, such rows are split, and others have 8 blocks", "[kernels]") {
  for (const int largest : {1, 4, 8}) {
    Simulator simulator({.largest_cluster = largest});

    INFO("room for clusters of " << largest);
    for (const auto& [columns, type] : kLargeRows) {
      INFO(columns << " of " << to_string(type));
      for (const RowsPlanned& plan : planned_rows(type, 40, columns, 0)) {
        CHECK(plan.cluster() == 1);
        CHECK(plan.workspace_bytes > 0);
      }
    }
    // Clusters of 16 are the faster ones, but do not have to be.
    const std::uint64_t of_backward = planned_rows(DType::kFloat32, 40, 90000, 0)[1].cluster();
    CHECK(of_backward == (largest == 8 ? 8 : 1));
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

TEST_CASE("clusters that hold weight and bias take rows that begin alike", "[kernels]") {
  Simulator simulator;
  struct Case {
    Row row;
    std::size_t shift;
    std::uint64_t blocks, alike;  // of a cluster; clusters between rows that begin alike
  };

  for (const auto& [row, shift, blocks, alike] : {Case{{17001, DType::kFloat16}, 0, 2, 8},
                                                  {{50257, DType::kFloat16}, 0, 4, 8},
                                                  {{151935, DType::kBFloat16}, 0, 8, 8},
                                                  {{250002, DType::kFloat16}, 0, 16, 4},
                                                  {{151936, DType::kFloat16}, 4, 8, 1},
                                                  {{151936, DType::kFloat16}, 0, 8, 1},
                                                  {{300000, DType::kFloat16}, 0, 16, 1},
                                                  {{40001, DType::kFloat32}, 0, 8, 4},
                                                  {{151935, DType::kFloat32}, 4, 16, 4}}) {
    INFO(row.columns << " of " << to_string(row.type) << " + " << shift);
    const RowsPlanned layer_norm = planned_rows(row.type, 500, row.columns, shift)[2];
    CHECK(absl::StrContains(layer_norm.launches.kernels.front().name(), "norm_with_held_columns"));
    CHECK(layer_norm.cluster() == blocks);
    CHECK(layer_norm.launches.grids.front().x / blocks % alike == 0);
  }
}

// The first kernel of a norm's backward with weight gradients.
struct SumsPlanned {
  std::string kernel;
  std::uint64_t blocks, groups;
};
SumsPlanned planned_sums(NormOp op, const Row& row, std::uint64_t rows, std::size_t shift) {
  unsigned char* const memory = reinterpret_cast<unsigned char*>(4096);
  void* const a = memory + shift;
  const NormBackwardPlan plan =
      *plan_norm_backward(kDevice, {op, row.type, rows, row.columns, 1e-5f, WeightGradients::kSummed});
  const Launches launches = launches_of(
      {"norm backward", [&](LaunchTarget target) {
         return launch_norm_backward(
             target, plan,
             {.dx = a, .dy = a, .x = a, .dweight = a, .dbias = a, .workspace = {memory, plan.workspace_bytes}});
       }});
  const std::uint64_t blocks = launches.attributes.front().cluster.count();
  return {std::string(launches.kernels.front().name()), blocks, launches.grids.front().x / blocks};
}

TEST_CASE("few long rows with weight gradients are spread over all blocks where these have room for them",
          "[kernels]") {
  struct Case {
    NormOp op;
    DType type;
    std::uint64_t rows, columns;
    bool is_expected;
  };
  constexpr NormOp kLayer = NormOp::kLayerNorm, kRms = NormOp::kRmsNorm;
  const auto are_as_expected = [](bool has_clusters) {
    for (const auto& [op, type, rows, columns, is_expected] : {
             Case{kLayer, DType::kFloat16, 1, 400000, true}, Case{kLayer, DType::kFloat16, 1, 399999, false},
             Case{kRms, DType::kBFloat16, 17, 50257, true}, Case{kRms, DType::kFloat32, 1, 1200000, true},
             Case{kRms, DType::kFloat32, 1, 1199999, false}, Case{kLayer, DType::kFloat32, 17, 151935, true},
             Case{kLayer, DType::kFloat32, 17, 250002, false},  // no room for all rows
             Case{kLayer, DType::kFloat16, 22, 40001, true},    // none to publish more rows
             Case{kLayer, DType::kFloat16, 23, 40001, false}, Case{kRms, DType::kFloat16, 32, 40001, true},
             Case{kRms, DType::kFloat16, 33, 40001, false},
             Case{kRms, DType::kFloat16, 32, 16384, false},  // short rows
         }) {
      INFO(to_string(op) << " of " << to_string(type) << " " << rows << "x" << columns);
      const SumsPlanned plan = planned_sums(op, {columns, type}, rows, 0);
      CHECK(absl::StrContains(plan.kernel, "norm_backward_spread") == (is_expected && has_clusters));
    }
  };
  {
    Simulator simulator;
    are_as_expected(true);
  }
  Simulator simulator({.ptx_version = 80});
  are_as_expected(false);
}

TEST_CASE("sums of columns are in shared memory where registers would need rows that begin alike", "[kernels]") {
  struct Case {
    Row row;
    std::size_t shift;
    std::uint64_t blocks;  // of a cluster; 0: other kernels take the row
  };
  const auto are_in_table = [](const SumsPlanned& plan) {
    return absl::StrContains(plan.kernel, "norm_backward_column_sums");
  };
  {
    Simulator simulator;
    for (const auto& [row, shift, blocks] : {Case{{16384, DType::kFloat16}, 2, 0},
                                             {{16385, DType::kFloat16}, 0, 2},
                                             {{50257, DType::kBFloat16}, 0, 8},
                                             {{151935, DType::kFloat16}, 0, 16},
                                             {{131072, DType::kFloat16}, 0, 0},
                                             {{131080, DType::kFloat16}, 0, 16},
                                             {{327680, DType::kBFloat16}, 2, 16},
                                             {{327681, DType::kBFloat16}, 0, 0},
                                             {{1024, DType::kFloat32}, 4, 0},
                                             {{1025, DType::kFloat32}, 0, 1},
                                             {{20001, DType::kFloat32}, 0, 4},
                                             {{50257, DType::kFloat32}, 0, 8},
                                             {{65536, DType::kFloat32}, 0, 0},
                                             {{65540, DType::kFloat32}, 0, 16},
                                             {{262144, DType::kFloat32}, 0, 16},
                                             {{262145, DType::kFloat32}, 0, 0}}) {
      INFO(row.columns << " of " << to_string(row.type) << " + " << shift);
      for (const NormOp op : {NormOp::kLayerNorm, NormOp::kRmsNorm}) {
        const SumsPlanned plan = planned_sums(op, row, 20000, shift);
        CHECK(are_in_table(plan) == (blocks != 0));
        if (blocks != 0) CHECK(plan.blocks == blocks);
      }
    }
    // With fewer rows for each group, others are faster.
    for (const auto& [row, rows_of_group] :
         {std::pair{Row{151935, DType::kFloat16}, 4}, std::pair{Row{2049, DType::kFloat32}, 8}}) {
      INFO(row.columns);
      const std::uint64_t rows = rows_of_group * planned_sums(NormOp::kLayerNorm, row, 20000, 0).groups;
      CHECK(are_in_table(planned_sums(NormOp::kLayerNorm, row, rows, 0)));
      CHECK_FALSE(are_in_table(planned_sums(NormOp::kLayerNorm, row, rows - 1, 0)));
    }
  }
  {
    Simulator simulator({.largest_cluster = 8});
    for (const auto& [row, shift, blocks] : {Case{{50257, DType::kFloat32}, 0, 8},
                                             {{131072, DType::kFloat32}, 0, 8},
                                             {{131073, DType::kFloat32}, 0, 0},
                                             {{151935, DType::kFloat16}, 0, 8},
                                             {{163841, DType::kFloat16}, 0, 0}}) {
      INFO(row.columns << " of " << to_string(row.type));
      const SumsPlanned plan = planned_sums(NormOp::kRmsNorm, row, 20000, shift);
      CHECK(are_in_table(plan) == (blocks != 0));
      CHECK(plan.blocks == std::max<std::uint64_t>(blocks, 1));
    }
  }
  Simulator simulator({.ptx_version = 80});
  CHECK_FALSE(are_in_table(planned_sums(NormOp::kRmsNorm, {1025, DType::kFloat32}, 20000, 0)));
}

TEST_CASE("persistent clusters have so few threads that their rows stay in the L2 cache", "[kernels]") {
  Simulator simulator;

  const Launches layer_norm = planned_rows(DType::kFloat16, 5000, 17001, 0)[2].launches;
  CHECK(layer_norm.grids.front().x <= 768 / layer_norm.blocks.front().x * 132);
}

TEST_CASE("where bias_norm has many rows of 32 to 64 KB, each has a block instead of a cluster", "[kernels]") {
  static void* const a = reinterpret_cast<void*>(4096);
  static void* const b = reinterpret_cast<void*>(8192);
  Simulator simulator;
  const auto is_wide = [](NormOp op, DType type, std::uint64_t rows, std::uint64_t columns) {
    const BiasNormPlan plan = *plan_bias_norm(kDevice, {op, type, rows, columns});
    const Launches launches = launches_of(
        {"bias_norm", [&](LaunchTarget target) {
           return launch_bias_norm(target, plan, {.out = a, .in = a, .in_bias = b, .residual = a, .sum = b});
         }});
    const bool found =
        launches.kernels.front() == bias_norm_kernel(op, type, BiasNormRegime::kWideBlock, Alignment::kAligned);
    if (!found) return false;
    const std::uint32_t threads = launches.blocks.front().x;
    CHECK(launches.grids.front().x == rows);
    CHECK(launches.attributes.front().cluster.x <= 1);
    CHECK(threads % 32 == 0);
    CHECK(threads <= kMaxWideThreads);
    CHECK(threads * kWidePacks * 16 / size_of(type) >= columns);
    return true;
  };
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 4096, 12288));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 8196));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 14 * 1024));
  CHECK(is_wide(NormOp::kRmsNorm, DType::kFloat32, 265, 16384));
  CHECK(is_wide(NormOp::kLayerNorm, DType::kFloat16, 265, 32768));
  CHECK(is_wide(NormOp::kRmsNorm, DType::kBFloat16, 265, 16392));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 264, 12288));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 8192));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat32, 265, 14 * 1024 + 4));
  CHECK_FALSE(is_wide(NormOp::kRmsNorm, DType::kFloat32, 265, 16388));
  CHECK_FALSE(is_wide(NormOp::kLayerNorm, DType::kFloat16, 265, 32776));
  CHECK_FALSE(is_wide(NormOp::kRmsNorm, DType::kBFloat16, 265, 16384));
}

TEST_CASE("rows are not streamed by code that was compiled for 8.0, whose kernel for that is empty", "[kernels]") {
  void* const memory = reinterpret_cast<void*>(4096);
  const auto is_streamed = [&] {
    const NormPlan norm = *plan_norm(kDevice, {NormOp::kLayerNorm, DType::kFloat32, 400, 16384});
    const SoftmaxPlan softmax = *plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, 400, 131072});
    const Launches of_norm = launches_of(
        {"layer_norm", [&](LaunchTarget target) {
           return launch_norm(target, norm, {.out = memory, .in = memory, .workspace = {memory, norm.workspace_bytes}});
         }});
    const Launches of_softmax = launches_of(
        {"softmax", [&](LaunchTarget target) {
           return launch_softmax(target, softmax,
                                 {.out = memory, .in = memory, .workspace = {memory, softmax.workspace_bytes}});
         }});
    const NormBackwardPlan sums =
        *plan_norm_backward(kDevice, {NormOp::kRmsNorm, DType::kFloat32, 400, 300001, 1e-5f, WeightGradients::kSummed});
    const Launches of_sums = launches_of({"rms_norm backward", [&](LaunchTarget target) {
                                            return launch_norm_backward(target, sums,
                                                                        {.dx = memory,
                                                                         .dy = memory,
                                                                         .x = memory,
                                                                         .dweight = memory,
                                                                         .workspace = {memory, sums.workspace_bytes}});
                                          }});
    constexpr Alignment kAligned = Alignment::kAligned;
    const bool is_norm = of_norm.kernels.front() == norm_kernel(NormOp::kLayerNorm, Residual::kNone, DType::kFloat32,
                                                                NormRegime::kBulkStream, kAligned);
    const bool is_softmax = of_softmax.kernels.front() ==
                            softmax_kernel(SoftmaxOp::kSoftmax, DType::kFloat32, SoftmaxRegime::kBulkStream, kAligned);
    const bool is_sums = of_sums.kernels.at(1) == norm_summed_chunks(NormOp::kRmsNorm, DType::kFloat32, true);
    return std::array{is_norm, is_softmax, is_sums};
  };
  {
    Simulator simulator;
    CHECK(is_streamed() == std::array{true, true, true});
  }
  Simulator simulator({.ptx_version = 80});
  CHECK(is_streamed() == std::array{false, false, false});
}

TEST_CASE("kernels overlap only where their code waits for each other, whatever the target says", "[kernels]") {
  struct Seen {
    std::vector<EdgeKind> edges;
    std::uint64_t topology;
  };
  const auto second_launch = [] {
    const BatchNormPlan plan = *plan_batch_norm(kDevice, {.batch = 256, .channels = 8, .plane = 112 * 112});
    const DeviceBuffer x = *DeviceBuffer::create(kDevice, std::size_t{256} * 8 * 112 * 112 * 4),
                       of_channels = *DeviceBuffer::create(kDevice, 32),
                       workspace = *DeviceBuffer::create(kDevice, plan.workspace_bytes);
    Graph graph = *Graph::create(kDevice);
    Cursor cursor = graph.cursor();
    for (const LaunchTarget& target : {LaunchTarget(cursor), cursor.programmatic()}) {
      REQUIRE_OK(launch_batch_norm_train(target, plan,
                                         {.y = x.data(),
                                          .x = x.data(),
                                          .save_mean = of_channels.as<float>(),
                                          .save_invstd = of_channels.as<float>(),
                                          .workspace = {workspace.data(), plan.workspace_bytes}}));
    }
    Seen seen{{}, plan.topology_id()};
    const ir::GraphIr ir = *snapshot(graph);
    for (const ir::Edge& edge : ir.edges) {
      seen.edges.push_back(edge.type == ir::EdgeType::kFull ? EdgeKind::kFull : EdgeKind::kProgrammatic);
    }
    return seen;
  };
  Seen with_code_for_90, with_code_for_80;
  {
    Simulator simulator;
    with_code_for_90 = second_launch();
  }
  {
    Simulator simulator({.ptx_version = 80});
    with_code_for_80 = second_launch();
  }

  constexpr EdgeKind kEarly = EdgeKind::kProgrammatic, kFull = EdgeKind::kFull;
  CHECK(with_code_for_90.edges == std::vector{kEarly, kEarly, kEarly, kEarly, kEarly});
  CHECK(with_code_for_80.edges == std::vector{kFull, kFull, kFull, kFull, kFull});
  CHECK(with_code_for_90.topology != with_code_for_80.topology);
}

}  // namespace
}  // namespace cgrt::testing
