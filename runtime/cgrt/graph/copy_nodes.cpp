#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/graph/snapshot.h"

namespace cgrt::internal {

absl::StatusOr<bool> is_device_updatable(CUgraphNode kernel) {
  CUlaunchAttributeValue value{};
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().GraphKernelNodeGetAttribute(kernel, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
      "cuGraphKernelNodeGetAttribute"));
  return value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

absl::StatusOr<CUgraphNode> copy_node(CUgraphNode node, const Edges& before, CUcontext context, GraphState& into) {
  const driver::Api& api = driver::api();
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) return cannot_be_copied(type);
  CUgraphNodeParams params{};
  CGRT_RETURN_IF_ERROR(read_params(node, type, context, params));
  CUgraphNode copy = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      api.GraphAddNode(&copy, into.handle, before.from.data(), before.data.data(), before.from.size(), &params),
      "cuGraphAddNode"));
  ++into.added;
  if (type != CU_GRAPH_NODE_TYPE_KERNEL) return copy;
  const CUresult result = api.GraphKernelNodeCopyAttributes(copy, node);
  if (result == CUDA_SUCCESS) return copy;
  api.GraphDestroyNode(copy);
  return driver::to_status(result, "cuGraphKernelNodeCopyAttributes");
}

std::string what_forbids_copies(CUgraph graph) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes.ok()) return "";
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    CUgraphNode node = (*nodes)[i];
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver::api().GraphNodeGetType(node, &type) != CUDA_SUCCESS) return "";
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
        type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      return absl::StrCat("node ", i, " (", describe_node(node), ")");
    }
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && is_device_updatable(node).value_or(false)) {
      return absl::StrCat("node ", i, " (device-updatable ", describe_node(node), ")");
    }
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    const absl::StatusOr<CUgraph> inside = graph_inside(node);
    const std::string found = inside.ok() ? what_forbids_copies(*inside) : "";
    if (!found.empty()) return absl::StrCat(found, " of the child graph at node ", i);
  }
  return "";
}

std::string unfreed_allocation(CUgraph graph) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes.ok()) return "";
  std::vector<std::pair<CUdeviceptr, std::size_t>> allocated;  // and by which node
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (driver::api().GraphNodeGetType((*nodes)[i], &type) != CUDA_SUCCESS) return "";
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    CUdeviceptr freed = 0;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        driver::api().GraphMemAllocNodeGetParams((*nodes)[i], &params) == CUDA_SUCCESS) {
      allocated.emplace_back(params.dptr, i);
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
               driver::api().GraphMemFreeNodeGetParams((*nodes)[i], &freed) == CUDA_SUCCESS) {
      std::erase_if(allocated, [&](const auto& one) { return one.first == freed; });
    }
  }
  return allocated.empty() ? "" : absl::StrCat("node ", allocated.front().second, " (mem alloc)");
}

absl::StatusOr<std::vector<CUgraphNode>> copy_nodes(const GraphState& from, GraphState& into, Dependencies before) {
  if (into.is_in_conditional) CGRT_RETURN_IF_ERROR(check_in_conditional(from.handle));
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(from.context));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(from.handle));
  const DriverDependencies outer(before);
  std::vector<CUgraphNode> copies;
  absl::Cleanup take_out = [&] {
    for (CUgraphNode copy : copies) driver::api().GraphDestroyNode(copy);
  };
  absl::flat_hash_map<CUgraphNode, CUgraphNode> copy_of;
  copy_of.reserve(nodes.size());
  Edges edges;  // of one node
  for (CUgraphNode node : nodes) {
    edges.from.clear();
    edges.data.clear();
    CGRT_RETURN_IF_ERROR(add_edges_to(node, edges));
    for (CUgraphNode& dependency : edges.from) {
      const auto found = copy_of.find(dependency);
      if (found == copy_of.end()) {
        return absl::UnimplementedError(
            "A captured node waits for one that was made after it, by an edge that was added in the capture. Add it to "
            "the graph after the capture.");
      }
      dependency = found->second;
    }
    const bool is_root = edges.from.empty();
    if (is_root) {
      edges.from.assign(outer.nodes.begin(), outer.nodes.end());
      edges.data.assign(outer.edges.begin(), outer.edges.end());
      edges.data.resize(edges.from.size());
    }
    const absl::StatusOr<CUgraphNode> copy = copy_node(node, edges, from.context, into);
    if (!copy.ok()) {
      const std::string broken = is_root ? broken_dependency(into, before) : "";
      return broken.empty() ? copy.status() : driver::annotate(copy.status(), broken);
    }
    copies.push_back(*copy);
    copy_of.emplace(node, *copy);
  }
  std::move(take_out).Cancel();
  return copies;
}

}  // namespace cgrt::internal
