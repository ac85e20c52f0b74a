#include "cgrt/exec/explain_instantiate.h"

#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {
namespace {

std::string explanation(CUgraph graph, CUresult result, const CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  switch (params.result_out) {
    case CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: {
      const std::string cycle = describe_cycle(graph);
      if (cycle.empty()) return "The graph's structure is invalid.";
      return absl::StrCat("Nodes wait for each other in a circle: ", cycle, ". Remove one of these edges.");
    }
    case CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED:
      return "A node's operation is not supported where it is: in the body of a conditional node, or in a graph that "
             "the device launches.";
    case CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: return "Nodes of several contexts are not supported here.";
    case CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED:
      return "A conditional handle was made for this graph and none of its nodes uses it.";
    default: break;
  }
  if (result == CUDA_ERROR_NOT_SUPPORTED && params.hErrNode_out == nullptr) {
    // The driver refuses a second executable of some graphs, and names no node.
    const std::string node = what_forbids_copies(graph);
    if (!node.empty()) {
      return absl::StrCat(
          "Because of ", node,
          " this graph can have one executable at a time: if it has one already, destroy or update that one.");
    }
  }
  return "Instantiating the graph failed.";
}

}  // namespace

absl::Status check_graph(const Graph& graph) {
  if (ABSL_PREDICT_FALSE(graph.state() == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_TRUE(!graph.state()->is_body)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "The graph is the body of a conditional node, which has no executable of its own: instantiate the graph that the "
      "node is in.");
}

absl::Status alternatives_not_rebindable() {
  return absl::FailedPreconditionError(
      "The graph has the nodes of several steps (build_alternatives), and a plain executable would run all of them: "
      "make one with instantiate_rebindable.");
}

absl::Status explain_instantiate(const absl::Status& failure, CUgraph graph,
                                 const CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  const std::string at = params.hErrNode_out == nullptr ? "The driver names no node"
                                                        : absl::StrCat("At ", describe_node(params.hErrNode_out));
  const CUresult result = driver::cuda_result(failure).value_or(CUDA_ERROR_UNKNOWN);
  return driver::annotate(failure, absl::StrCat(explanation(graph, result, params), " ", at));
}

}  // namespace cgrt::internal
