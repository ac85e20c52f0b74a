#include "cgrt/exec/explain_instantiate.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {
namespace {

bool is_device_updatable(CUgraphNode kernel) {
  CUlaunchAttributeValue value{};
  return driver::api().GraphKernelNodeGetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
             CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

// The driver refuses a second executable of some graphs with "not supported" and names no node.
std::string what_allows_one_executable(CUgraph graph) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes.ok()) return "";
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    CUgraphNode node = (*nodes)[i];
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver::api().GraphNodeGetType(node, &type) != CUDA_SUCCESS) return "";
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return absl::StrCat("node ", i, " (", describe_node(node), ")");
    }
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && is_device_updatable(node)) {
      return absl::StrCat("node ", i, " (device-updatable ", describe_node(node), ")");
    }
  }
  return "";
}

std::string explanation(CUgraph graph, CUresult result, const CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  switch (params.result_out) {
    case CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: return "The graph's structure is invalid.";
    case CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED:
      return "A node's operation is not supported for a graph launched from the device.";
    case CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: return "Nodes of several contexts are not supported here.";
    case CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED:
      return "A conditional handle was made for this graph and none of its nodes uses it.";
    default: break;
  }
  if (result == CUDA_ERROR_NOT_SUPPORTED && params.hErrNode_out == nullptr) {
    const std::string node = what_allows_one_executable(graph);
    if (!node.empty()) {
      return absl::StrCat(
          "Because of ", node,
          " this graph can have one executable at a time: if it has one already, destroy or update that one.");
    }
  }
  return "Instantiating the graph failed.";
}

}  // namespace

absl::Status explain_instantiate(const absl::Status& failure, CUgraph graph,
                                 const CUDA_GRAPH_INSTANTIATE_PARAMS& params) {
  const std::string at = params.hErrNode_out == nullptr ? "The driver names no node"
                                                        : absl::StrCat("At ", describe_node(params.hErrNode_out));
  const CUresult result = driver::cuda_result(failure).value_or(CUDA_ERROR_UNKNOWN);
  return driver::annotate(failure, absl::StrCat(explanation(graph, result, params), " ", at));
}

}  // namespace cgrt::internal
