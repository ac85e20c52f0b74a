#include "cgrt/exec/explain_update.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {
namespace {

// The node of `graph` at `path`; null: there is none.
CUgraphNode node_at(CUgraph graph, const std::vector<std::size_t>& path) {
  CUgraphNode node = nullptr;
  for (const std::size_t position : path) {
    const absl::StatusOr<CUgraph> inside = node != nullptr ? graph_inside(node) : graph;
    const absl::StatusOr<std::vector<CUgraphNode>> nodes =
        inside.ok() ? nodes_of(*inside) : absl::StatusOr<std::vector<CUgraphNode>>(inside.status());
    if (!nodes.ok() || position >= nodes->size()) return nullptr;
    node = (*nodes)[position];
  }
  return node;
}

// The position of `node` in `graph`, after those of the child graph nodes that it is inside of; empty: not found.
std::vector<std::size_t> path_of(CUgraph graph, CUgraphNode node) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes.ok()) return {};
  const auto found = std::find(nodes->begin(), nodes->end(), node);
  if (found != nodes->end()) return {static_cast<std::size_t>(found - nodes->begin())};
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    const CUresult asked = driver::api().GraphNodeGetType((*nodes)[i], &type);
    if (asked != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    const absl::StatusOr<CUgraph> inside = graph_inside((*nodes)[i]);
    std::vector<std::size_t> path = inside.ok() ? path_of(*inside, node) : std::vector<std::size_t>();
    if (path.empty()) continue;
    path.insert(path.begin(), i);
    return path;
  }
  return {};
}

// "kernel "scale" (node 0)". The node may be null, the path empty, not both.
std::string describe_at(CUgraphNode node, const std::vector<std::size_t>& path) {
  const std::string number = path.empty() ? "" : absl::StrCat("node ", absl::StrJoin(path, "/"));
  if (node == nullptr) return number;
  return absl::StrCat(describe_node(node), number.empty() ? "" : absl::StrCat(" (", number, ")"));
}

}  // namespace

UpdateReport attributes_lost(const LostAttributes& lost, CUgraph other) {
  UpdateReport report;
  report.rung = UpdateRung::kRefused;
  report.refusal = UpdateRefusal::kAttributesChanged;
  const CUgraphNode node = node_at(other, lost.path);
  if (node != nullptr) report.node = NodeRef(node);
  const AttributeDifference differs = first_difference(lost.was, lost.wanted);
  report.text = absl::StrCat("The executable cannot take over the other graph: the ", differs.name, " of ",
                             describe_at(node, lost.path), " is ", differs.was, " here and ", differs.wanted,
                             " there, and CUDA may keep the old one. Instantiate that graph anew.");
  return report;
}

UpdateReport refused_by_driver(const CUgraphExecUpdateResultInfo& info, std::size_t node_count, CUgraph other) {
  UpdateReport report;
  report.rung = UpdateRung::kRefused;
  report.refusal = static_cast<UpdateRefusal>(info.result);
  report.text = absl::StrCat("The executable cannot take over the other graph: ", to_string(report.refusal));
  if (info.errorNode != nullptr) {
    report.node = NodeRef(info.errorNode);
    absl::StrAppend(&report.text, ", at ", describe_at(info.errorNode, path_of(other, info.errorNode)),
                    " of that graph");
  }
  if (report.refusal == UpdateRefusal::kTopologyChanged) {
    const absl::StatusOr<std::size_t> theirs = count_nodes(other);
    if (theirs.ok() && *theirs != node_count) {
      absl::StrAppend(&report.text, " (", counted(node_count, "node"), " here, ", *theirs, " there)");
    }
  }
  absl::StrAppend(&report.text, ". Instantiate that graph anew.");
  return report;
}

absl::Status explain_graph_launch(CUresult result, CUgraph definition) {
  const absl::Status failure = driver::to_status(result, "cuGraphLaunch");
  if (const std::string unfreed = result == CUDA_ERROR_INVALID_VALUE ? unfreed_allocation(definition) : "";
      !unfreed.empty()) {
    return driver::annotate(failure, absl::StrCat("The graph does not free the memory of ", unfreed,
                                                  ", and nobody has since the launch before: free it with free_async, "
                                                  "or instantiate with InstantiateFlags::kAutoFreeOnLaunch"));
  }
  if (result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return failure;
  return driver::annotate(failure,
                          "An executable cannot be launched into a stream that is being captured, and that capture has "
                          "ended now. Put the graph in as a child: capture into its own graph, or Graph::add_child");
}

absl::Status not_rebindable() {
  return absl::FailedPreconditionError(
      "This executable is not rebindable: make it with instantiate_rebindable, or change it with set_params or "
      "update.");
}

absl::Status not_of_this_executable(const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("This ", what, " is of another executable, or empty: make it anew from this one."));
}

absl::Status rebindable_update() {
  return absl::FailedPreconditionError(
      "CUDA has no whole-graph update for an executable with device-updatable nodes: change this one with rebind() or "
      "set_params, or instantiate the other graph.");
}

absl::Status rebindable_memset() {
  return absl::FailedPreconditionError(
      "A memset of a rebindable executable cannot be disabled: the driver would lose what changes the kernels beside "
      "it. Set its parameters, or use a kernel instead.");
}

absl::Status rebindable_child() {
  return absl::FailedPreconditionError(
      "The kernels of a rebindable executable change by rebind() or one by one, those inside a child graph too: its "
      "child graphs cannot be replaced.");
}

}  // namespace cgrt::internal

namespace cgrt {

const char* to_string(UpdateRefusal refusal) {
  switch (refusal) {
    case UpdateRefusal::kNone: return "none";
    case UpdateRefusal::kUnknown: return "unknown reason";
    case UpdateRefusal::kTopologyChanged: return "topology changed";
    case UpdateRefusal::kNodeTypeChanged: return "node type changed";
    case UpdateRefusal::kFunctionChanged: return "function changed";
    case UpdateRefusal::kParametersChanged: return "parameters changed";
    case UpdateRefusal::kNotSupported: return "not supported";
    case UpdateRefusal::kUnsupportedFunctionChange: return "unsupported function change";
    case UpdateRefusal::kAttributesChanged: return "attributes changed";
  }
  return "unknown reason";
}

}  // namespace cgrt
