#include "cgrt/exec/advisor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/listing.h"

namespace cgrt {
namespace {

// Microseconds, medians of an H200 with driver 580 and chains of 1,000 small kernels: tools/graphbench/records.
constexpr double kCaptureNode = 0.31, kUpdateNode = 0.067, kUpdateArguments = 0.07, kUpdateGrid = 0.17 + 0.9;
constexpr double kInstantiateNode = 0.89, kFirstLaunchNode = 0.74;
constexpr double kSetParams = 0.375, kSetGrid = 1.1 + 1.0;
constexpr double kRebindCall = 0.09, kBindingNode = 0.005;
// Of a rebindable executable: each kernel at each launch, the patch, and each node that it changes.
constexpr double kUpdatableNode = 0.018, kPatch = 2.4, kPatchedNode = 0.006;
constexpr double kDisabledNode = 0.4, kLostProgrammaticEdge = 0.34;

struct Shape {
  std::size_t nodes = 0, kernels = 0, programmatic = 0;
};

absl::StatusOr<Shape> shape_of(const Graph& graph) {
  Shape shape;
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
  shape.nodes = nodes.size();
  const auto is_kernel = [](const NodeInfo& node) { return node.kind == ir::NodeKind::kKernel; };
  shape.kernels = static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), is_kernel));
  CGRT_ASSIGN_OR_RETURN(const std::vector<EdgeInfo> edges, list_edges(graph));
  shape.programmatic = static_cast<std::size_t>(
      std::count_if(edges.begin(), edges.end(), [](const EdgeInfo& edge) { return edge.kind != EdgeKind::kFull; }));
  return shape;
}

std::string to_text(const std::vector<Estimate>& estimates, const Shape& shape, const ChangePattern& pattern) {
  const auto one = [](const Estimate& estimate) {
    return absl::StrFormat("%s %.3g us", to_string(estimate.way), estimate.microseconds);
  };
  std::string text =
      absl::StrFormat("Of %d kernels, %d change their arguments and %d of these their grids: ", shape.kernels,
                      pattern.arguments, pattern.grids);
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "cheapest is " : i == 1 ? "; then " : ", ", one(estimates[i]));
  }
  absl::StrAppend(&text, ".");
  if (shape.programmatic != 0) {
    absl::StrAppendFormat(
        &text,
        " A rebindable executable cannot have the %d programmatic edges between kernels: built without "
        "them each launch is %.3g us slower, which is counted.",
        shape.programmatic, static_cast<double>(shape.programmatic) * kLostProgrammaticEdge);
  }
  if (pattern.alternatives != 0) {
    absl::StrAppendFormat(
        &text,
        " The %d kernels that a step leaves out cost %.3g us at each launch, which pays for a few large "
        "kernels, not for many small ones.",
        pattern.alternatives, static_cast<double>(pattern.alternatives) * kDisabledNode);
  }
  return text;
}

}  // namespace

const char* to_string(UpdateWay way) {
  switch (way) {
    case UpdateWay::kSetParams: return "set_params";
    case UpdateWay::kUpdate: return "capture and update";
    case UpdateWay::kInstantiate: return "capture and instantiate";
    case UpdateWay::kRebind: return "rebind";
    case UpdateWay::kBinding: return "rebind of a prepared binding";
  }
  return "unknown";
}

absl::StatusOr<Advice> advise(const Graph& graph, const ChangePattern& pattern) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const Shape shape, shape_of(graph));
  if (pattern.arguments > shape.kernels || pattern.grids > pattern.arguments || pattern.alternatives > shape.kernels ||
      !(pattern.launches > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("The graph has ", shape.kernels, " kernels, and the pattern ", pattern.arguments, " that change, ",
                     pattern.grids, " of them in their grids, ", pattern.alternatives, " that are left out, and ",
                     pattern.launches, " launches for each change."));
  }
  const auto nodes = static_cast<double>(shape.nodes), kernels = static_cast<double>(shape.kernels);
  const auto arguments = static_cast<double>(pattern.arguments), grids = static_cast<double>(pattern.grids);
  const double capture = nodes * kCaptureNode;
  // Of each launch, changed or not.
  const double rebindable = kernels * kUpdatableNode + static_cast<double>(shape.programmatic) * kLostProgrammaticEdge +
                            static_cast<double>(pattern.alternatives) * kDisabledNode;
  const double patch = arguments == 0 && pattern.alternatives == 0 ? 0 : kPatch + arguments * kPatchedNode;
  const auto spread = [&](double change, double launch) { return change / pattern.launches + launch; };
  Advice advice;
  advice.estimates.push_back({UpdateWay::kRebind, spread(nodes * kRebindCall + patch, rebindable)});
  advice.estimates.push_back({UpdateWay::kBinding, spread(nodes * kBindingNode + patch, rebindable)});
  if (pattern.alternatives == 0) {
    advice.estimates.push_back({UpdateWay::kSetParams, spread((arguments - grids) * kSetParams + grids * kSetGrid, 0)});
    advice.estimates.push_back(
        {UpdateWay::kUpdate,
         spread(capture + nodes * kUpdateNode + arguments * kUpdateArguments + grids * kUpdateGrid, 0)});
  }
  advice.estimates.push_back(
      {UpdateWay::kInstantiate, spread(capture + nodes * (kInstantiateNode + kFirstLaunchNode), 0)});
  std::sort(advice.estimates.begin(), advice.estimates.end(),
            [](const Estimate& a, const Estimate& b) { return a.microseconds < b.microseconds; });
  advice.text = to_text(advice.estimates, shape, pattern);
  return advice;
}

}  // namespace cgrt
