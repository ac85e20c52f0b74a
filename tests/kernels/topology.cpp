// Plans of all families: an executable takes over a graph of another plan's launch exactly when the plans say so.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/batch_norm/batch_norm.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_norm/bias_norm.h"
#include "cgrt_kernels/cub/cub.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/dropout/dropout.h"
#include "cgrt_kernels/elementwise/elementwise.h"
#include "cgrt_kernels/elementwise/map.h"
#include "cgrt_kernels/elementwise/matrix.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/group_norm/group_norm.h"
#include "cgrt_kernels/histogram/histogram.h"
#include "cgrt_kernels/index/index.h"
#include "cgrt_kernels/norm/norm.h"
#include "cgrt_kernels/reduce/reduce.h"
#include "cgrt_kernels/rope/rope.h"
#include "cgrt_kernels/sampling/sampling.h"
#include "cgrt_kernels/scan/scan.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"
#include "cgrt_kernels/softmax/softmax.h"
#include "cgrt_kernels/topk/topk.h"
#include "cgrt_kernels/transpose_heads/transpose_heads.h"
#include "cgrt_kernels/upsample/upsample.h"
#include "kernels/own_maps.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

enum class Nodes { kOwn, kOfLibrary };

struct Planned {
  std::string name;
  std::uint64_t topology_id;
  std::function<absl::Status(LaunchTarget)> launch;
  Nodes nodes;
};

class Plans {
 public:
  template <class Plan, class Id, class Launch>
  void add(const std::string& name, const absl::StatusOr<Plan>& plan, Id id, Launch launch, Nodes nodes = Nodes::kOwn) {
    if (!plan.ok()) return refused_.Update(plan.status());
    all_.push_back({name, id(*plan), [=, plan = *plan](LaunchTarget target) { return launch(target, plan); }, nodes});
  }
  const absl::Status& refused() const { return refused_; }
  const std::vector<Planned>& all() const { return all_; }

 private:
  std::vector<Planned> all_;
  absl::Status refused_;
};

constexpr auto kId = [](const auto& plan) { return plan.topology_id(); };
constexpr auto kIdUnaligned = [](const auto& plan) { return plan.topology_id(4); };

// Nothing is launched: all arrays of a plan are at one address, and as long as they like.
struct Memory {
  unsigned char* data;
  template <class T = void>
  T* at(std::size_t i) const {
    return reinterpret_cast<T*>(data + i * 4096);
  }
};

void add_rows(Plans& plans, Memory memory) {
  constexpr std::uint64_t kShapes[][2] = {{4096, 1024}, {4096, 8192}, {8, 8192},
                                          {8, 32768},   {300, 20000}, {8, 1 << 20}};
  for (const auto& [rows, columns] : kShapes) {
    for (const std::size_t shift : {0, 4}) {
      const std::string name = absl::StrCat(" of ", rows, "x", columns, shift == 0 ? "" : ", unaligned");
      auto* const a = memory.at<unsigned char>(0) + shift;
      const auto id = [=](const auto& plan) { return shift == 0 ? kId(plan) : kIdUnaligned(plan); };
      plans.add(
          absl::StrCat("softmax", name), plan_softmax(kDevice, {SoftmaxOp::kSoftmax, DType::kFloat32, rows, columns}),
          id, [=](LaunchTarget target, const SoftmaxPlan& plan) {
            return launch_softmax(target, plan, {.out = a, .in = a, .workspace = {memory.at(1), plan.workspace_bytes}});
          });
      for (const WeightGradients gradients : {WeightGradients::kNone, WeightGradients::kSummed}) {
        plans.add(absl::StrCat("rms_norm backward", gradients == WeightGradients::kSummed ? ", summed," : "", name),
                  plan_norm_backward(kDevice, {NormOp::kRmsNorm, DType::kFloat32, rows, columns, 1e-5f, gradients}), id,
                  [=](LaunchTarget target, const NormBackwardPlan& plan) {
                    return launch_norm_backward(
                        target, plan,
                        {.dx = a, .dy = a, .x = a, .dweight = a, .workspace = {memory.at(1), plan.workspace_bytes}});
                  });
      }
      plans.add(absl::StrCat("masked_softmax", name),
                plan_masked_softmax(kDevice, {.type = DType::kFloat32, .rows = rows, .columns = columns}), id,
                [=](LaunchTarget target, const MaskedSoftmaxPlan& plan) {
                  return launch_masked_softmax(target, plan,
                                               {.out = a, .in = a, .workspace = {memory.at(1), plan.workspace_bytes}});
                });
      plans.add(absl::StrCat("add_rms_norm", name),
                plan_norm(kDevice, {NormOp::kRmsNorm, DType::kFloat32, rows, columns, 1e-5f, Residual::kAdded}), id,
                [=](LaunchTarget target, const NormPlan& plan) {
                  return launch_norm(target, plan,
                                     {.out = a,
                                      .in = a,
                                      .residual = a,
                                      .sum = memory.at<unsigned char>(2) + shift,
                                      .workspace = {memory.at(1), plan.workspace_bytes}});
                });
      if (columns > 32768) continue;  // bias_norm has rows in registers
      plans.add(absl::StrCat("bias_add_rms_norm", name),
                plan_bias_norm(kDevice, {NormOp::kRmsNorm, DType::kFloat32, rows, columns}), id,
                [=](LaunchTarget target, const BiasNormPlan& plan) {
                  return launch_bias_norm(target, plan, {.out = a, .in = a, .in_bias = a, .residual = a});
                });
    }
  }
}

void add_others(Plans& plans, Memory memory) {
  void* const a = memory.at(0);
  for (const std::size_t shift : {0, 4}) {
    void* const b = memory.at<unsigned char>(0) + shift;
    for (const ReduceOver over : {ReduceOver::kAll, ReduceOver::kRow, ReduceOver::kColumn}) {
      plans.add(absl::StrCat("reduce ", static_cast<int>(over), " + ", shift),
                plan_reduce(kDevice, {ReduceOp::kSum, DType::kFloat32, over, 1024, 1024}), kId,
                [=](LaunchTarget target, const ReducePlan& plan) {
                  return launch_reduce(target, plan, {.out = a, .in = b, .workspace = {a, plan.workspace_bytes}});
                });
    }
    for (const std::uint64_t columns : {128, 1 << 20}) {
      plans.add(absl::StrCat("scan of ", columns, " + ", shift), plan_scan(kDevice, {.rows = 4, .columns = columns}),
                kId, [=](LaunchTarget target, const ScanPlan& plan) {
                  return launch_scan(target, plan, {.out = a, .in = b, .workspace = {a, plan.workspace_bytes}});
                });
    }
    for (const UpsampleOp op : {UpsampleOp::kForward, UpsampleOp::kBackward}) {
      plans.add(absl::StrCat(to_string(op), " + ", shift),
                plan_upsample(
                    kDevice,
                    {.op = op, .batch = 2, .channels = 3, .height = 8, .width = 8, .out_height = 16, .out_width = 16}),
                kId, [=](LaunchTarget target, const UpsamplePlan& plan) {
                  return launch_upsample(target, plan, {.out = a, .in = b});
                });
    }
    plans.add(absl::StrCat("elementwise add + ", shift), plan_elementwise(kDevice, {ElementwiseOp::kAdd, 1 << 20}), kId,
              [=](LaunchTarget target, const ElementwisePlan& plan) {
                return launch_elementwise(target, plan, {.out = a, .a = b, .b = b});
              });
    plans.add(absl::StrCat("add_per_column + ", shift),
              plan_matrix(kDevice, {MatrixOp::kAddPerColumn, DType::kFloat32, 64, 64}), kId,
              [=](LaunchTarget target, const MatrixPlan& plan) {
                return launch_matrix(target, plan, {.out = a, .a = b, .b = b});
              });
  }
  for (const std::uint64_t tokens : {1, 64}) {
    const RopeDesc desc{.tokens = tokens, .heads = 2, .kv_heads = 1, .head_size = 64, .positions = 128};
    plans.add(absl::StrCat("rope of ", tokens), plan_rope(kDevice, desc), kId,
              [=](LaunchTarget target, const RopePlan& plan) {
                return launch_rope(target, plan,
                                   {.q = a,
                                    .k = memory.at(1),
                                    .v = memory.at(2),
                                    .qkv = memory.at(3),
                                    .table = memory.at<float>(4),
                                    .position = memory.at<std::int32_t>(5)});
              });
  }
  for (const BiasGate gate : {BiasGate::kNone, BiasGate::kGated}) {
    plans.add(absl::StrCat("bias_activation, ", gate == BiasGate::kGated ? "gated" : "plain"),
              plan_bias_activation(kDevice, {.gate = gate, .rows = 4, .columns = 64}), kId,
              [=](LaunchTarget target, const BiasActivationPlan& plan) {
                return launch_bias_activation(target, plan, {.out = a, .a = memory.at(1), .bias = memory.at(2)});
              });
  }
  for (const TransposeHeadsOp op : {TransposeHeadsOp::kMerge, TransposeHeadsOp::kSplit}) {
    const TransposeHeadsDesc desc{.op = op, .sequences = 2, .positions = 9, .heads = 4, .head_size = 64};
    plans.add(to_string(op), plan_transpose_heads(kDevice, desc), kId,
              [=](LaunchTarget target, const TransposeHeadsPlan& plan) {
                return launch_transpose_heads(target, plan, {.out = a, .in = memory.at(1)});
              });
  }
  for (const DropoutOp op : {DropoutOp::kForward, DropoutOp::kBackward}) {
    plans.add(to_string(op), plan_dropout(kDevice, {.op = op, .count = 1000}), kId,
              [=](LaunchTarget target, const DropoutPlan& plan) {
                return launch_dropout(
                    target, plan,
                    {.out = a, .in = a, .mask = memory.at<std::uint8_t>(1), .state = memory.at<RandomState>(2)});
              });
  }
  plans.add("topk", plan_topk(kDevice, {.tokens = 4, .experts = 64, .k = 8}), kId,
            [=](LaunchTarget target, const TopkPlan& plan) {
              return launch_topk(
                  target, plan,
                  {.weights = memory.at<float>(1), .chosen = memory.at<std::int32_t>(2), .logits = memory.at(3)});
            });
  for (const std::uint64_t n : {8, 4096}) {  // with and without tiles that blocks share
    plans.add(
        absl::StrCat("skinny_gemm of ", n), plan_skinny_gemm(kDevice, {.rows = 4, .n = n, .k = 512}), kId,
        [=](LaunchTarget target, const SkinnyGemmPlan& plan) {
          return launch_skinny_gemm(
              target, plan,
              {.y = a, .x = memory.at(1), .weights = memory.at(2), .workspace = {memory.at(3), plan.workspace_bytes}});
        });
  }
  for (const std::uint64_t m : {8, 256}) {  // without and with clusters
    absl::StatusOr<GemmPlan> gemm = plan_gemm(kDevice, {.m = m, .n = 64, .k = 64});
    if (absl::IsUnimplemented(gemm.status())) break;  // not of this device
    plans.add(absl::StrCat("gemm of ", m), std::move(gemm), kId, [=](LaunchTarget target, const GemmPlan& plan) {
      return launch_gemm(target, plan, {.d = a, .a = memory.at(1), .b = memory.at(2)});
    });
  }
  for (const auto kernel : {AttentionKernel::kPortable, AttentionKernel::kBest}) {
    for (const std::uint64_t batch : {1, 1000}) {  // with small and with large blocks
      const AttentionDesc desc{
          .batch = batch, .queries = 100, .keys = 300, .heads = 2, .kv_heads = 1, .head_size = 64, .kernel = kernel};
      plans.add(absl::StrCat("attention of ", batch, ", ", to_string(kernel)), plan_attention(kDevice, desc), kId,
                [=](LaunchTarget target, const AttentionPlan& plan) {
                  return launch_attention(target, plan,
                                          {.out = a, .q = memory.at(1), .k = memory.at(2), .v = memory.at(3)});
                });
    }
  }
  for (const std::uint64_t positions : {64, 1000}) {
    const DecodeAttentionDesc desc{.heads = 2,
                                   .cache = {.sequences = 1, .positions = positions, .kv_heads = 1, .head_size = 64}};
    plans.add(absl::StrCat("decode attention of ", positions), plan_decode_attention(kDevice, desc), kId,
              [=](LaunchTarget target, const DecodeAttentionPlan& plan) {
                return launch_decode_attention(target, plan,
                                               {.out = a,
                                                .q = memory.at(1),
                                                .k = memory.at(2),
                                                .v = memory.at(3),
                                                .lengths = memory.at<std::int32_t>(4),
                                                .workspace = {a, plan.workspace_bytes}});
              });
  }
  for (const std::uint64_t plane : {1, 16384, 1 << 20}) {
    for (const std::size_t shift : {0, 4}) {
      plans.add(
          absl::StrCat("group_norm of ", plane, ", shift ", shift),
          plan_group_norm(kDevice, {.batch = 2, .plane = plane, .channels = 256}),
          [=](const GroupNormPlan& plan) { return plan.topology_id(shift == 0 ? 16 : shift); },
          [=](LaunchTarget target, const GroupNormPlan& plan) {
            return launch_group_norm(target, plan,
                                     {.y = memory.at<char>(1) + shift,
                                      .x = memory.at<char>(1) + shift,
                                      .workspace = {a, plan.workspace_bytes}});
          });
    }
  }
  for (const SamplingOp op : {SamplingOp::kGreedy, SamplingOp::kRandom, SamplingOp::kFiltered}) {
    for (const std::uint64_t vocabulary : {1000, 100000}) {
      const SamplingDesc desc{.op = op, .rows = 2, .vocabulary = vocabulary};
      plans.add(absl::StrCat(to_string(op), " of ", vocabulary), plan_sampling(kDevice, desc), kId,
                [=](LaunchTarget target, const SamplingPlan& plan) {
                  return launch_sampling(target, plan,
                                         {.token = memory.at(1),
                                          .logits = memory.at(2),
                                          .state = memory.at<RandomState>(3),
                                          .workspace = {a, plan.workspace_bytes}});
                });
    }
  }
  plans.add("a map", plan_map(kDevice, clamp_kernel(), 1000), kId, [=](LaunchTarget target, const auto& plan) {
    return launch_map(target, plan, Clamp{0, 1}, static_cast<__half*>(a), static_cast<const __half*>(a));
  });
  // Keys of one, two and three digits; indices that one kernel groups, and more.
  for (const std::uint64_t rows : {200, 1 << 16, 1 << 24}) {
    for (const std::uint64_t count : {1000, 2000}) {
      for (const auto& [op, order] :
           {std::pair{IndexOp::kSelect, SumOrder::kAny}, std::pair{IndexOp::kAdd, SumOrder::kAny},
            std::pair{IndexOp::kAdd, SumOrder::kFixed}}) {
        plans.add(absl::StrCat(to_string(op), " ", static_cast<int>(order), " of ", count, " into ", rows, " rows"),
                  plan_index(kDevice, {.op = op, .rows = rows, .columns = 4, .count = count, .order = order}), kId,
                  [=](LaunchTarget target, const IndexPlan& plan) {
                    return launch_index(target, plan,
                                        {.out = a, .in = a, .index = a, .workspace = {a, plan.workspace_bytes}});
                  });
      }
    }
  }
  for (const std::int32_t bins : {4, 65536}) {
    plans.add(absl::StrCat("histogram of ", bins, " bins"),
              plan_histogram(kDevice, {.count = 1 << 20, .bins = bins, .lower = 0, .upper = 65536}), kId,
              [=](LaunchTarget target, const HistogramPlan& plan) {
                return launch_histogram(target, plan, {.counts = memory.at<std::int32_t>(1), .in = a});
              });
  }
  auto* const floats = memory.at<float>(0);
  for (const std::uint64_t plane : {1, 49, 3136, 112 * 112}) {
    for (const std::uint64_t channels : {1, 64}) {
      const BatchNormDesc desc{.batch = 64, .channels = channels, .plane = plane};
      plans.add(
          absl::StrCat("batch_norm of ", channels, " x ", plane), plan_batch_norm(kDevice, desc), kId,
          [=](LaunchTarget target, const BatchNormPlan& plan) {
            return launch_batch_norm_train(
                target, plan,
                {.y = a, .x = a, .save_mean = floats, .save_invstd = floats, .workspace = {a, plan.workspace_bytes}});
          });
    }
  }
}

void add_libraries(Plans& plans, Memory memory) {
  void* const a = memory.at(0);
  for (const std::uint64_t count : {100, 100, 1 << 20}) {
    plans.add(
        absl::StrCat("cub scan of ", count), plan_cub_scan(kDevice, {.count = count}), kId,
        [=](LaunchTarget target, const CubScanPlan& plan) {
          return launch_cub_scan(target, plan, {.out = a, .in = a, .workspace = {a, plan.workspace_bytes}});
        },
        Nodes::kOfLibrary);
    plans.add(
        absl::StrCat("radix sort of ", count), plan_radix_sort(kDevice, {.count = count}), kId,
        [=](LaunchTarget target, const RadixSortPlan& plan) {
          return launch_radix_sort(target, plan, {.keys_out = a, .keys_in = a, .workspace = {a, plan.workspace_bytes}});
        },
        Nodes::kOfLibrary);
    plans.add(
        absl::StrCat("select of ", count), plan_select(kDevice, {.count = count}), kId,
        [=](LaunchTarget target, const SelectPlan& plan) {
          return launch_select(target, plan,
                               {.out = a,
                                .in = a,
                                .flags = memory.at<std::uint8_t>(1),
                                .selected = memory.at<std::int64_t>(2),
                                .workspace = {a, plan.workspace_bytes}});
        },
        Nodes::kOfLibrary);
  }
}

absl::StatusOr<Graph> graph_of(const Planned& planned) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(kDevice));
  CGRT_RETURN_IF_ERROR(planned.launch(graph.cursor()));
  return graph;
}

absl::Status check_updates(const Planned& from, const std::vector<Planned>& all) {
  CGRT_ASSIGN_OR_RETURN(const Graph graph, graph_of(from));
  for (const Planned& to : all) {
    const bool is_same = from.topology_id == to.topology_id;
    // Of two calls of libraries some could be updated, unknown to their plans.
    if (!is_same && from.nodes == Nodes::kOfLibrary && to.nodes == Nodes::kOfLibrary) continue;
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    CGRT_ASSIGN_OR_RETURN(const Graph other, graph_of(to));
    CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.try_update(other));
    if ((report.rung == UpdateRung::kWholeGraph) == is_same) continue;
    return absl::InternalError(absl::StrCat(is_same ? "cannot become " : "has another topology_id than, but becomes ",
                                            to.name, ": ", report.text));
  }
  return absl::OkStatus();
}

}  // namespace

void check_topology(Report& report) {
  // Nothing is launched, but nodes that set memory must have some.
  const absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::create(kDevice, 1 << 26);
  if (!buffer.ok()) return report.check("memory for topologies", buffer.status());
  const Memory memory{buffer->as<unsigned char>()};
  Plans plans;
  add_rows(plans, memory);
  add_others(plans, memory);
  add_libraries(plans, memory);
  report.check("all plans whose topologies are compared", plans.refused());
  for (const Planned& planned : plans.all()) report.check(planned.name, check_updates(planned, plans.all()));
}

}  // namespace cgrt::testing
