#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {
namespace {

// What the driver adds a node like `node` by. What it points to stays the node's.
absl::Status read_params(CUgraphNode node, CUgraphNodeType type, CUcontext context, CUgraphNodeParams& params) {
  const driver::Api& api = driver::api();
  params.type = type;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      static_assert(sizeof(params.kernel) == sizeof(kernel));  // v3 and v2 differ in what they promise only
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphKernelNodeGetParams(node, &kernel), "cuGraphKernelNodeGetParams"));
      std::memcpy(&params.kernel, &kernel, sizeof(kernel));
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      params.memcpy.copyCtx = context;
      return driver::to_status(api.GraphMemcpyNodeGetParams(node, &params.memcpy.copyParams),
                               "cuGraphMemcpyNodeGetParams");
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphMemsetNodeGetParams(node, &fill), "cuGraphMemsetNodeGetParams"));
      params.memset = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height, context};
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS host{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphHostNodeGetParams(node, &host), "cuGraphHostNodeGetParams"));
      params.host.fn = host.fn;
      params.host.userData = host.userData;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return driver::to_status(api.GraphChildGraphNodeGetGraph(node, &params.graph.graph),
                               "cuGraphChildGraphNodeGetGraph");
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return driver::to_status(api.GraphEventRecordNodeGetEvent(node, &params.eventRecord.event),
                               "cuGraphEventRecordNodeGetEvent");
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return driver::to_status(api.GraphEventWaitNodeGetEvent(node, &params.eventWait.event),
                               "cuGraphEventWaitNodeGetEvent");
    case CU_GRAPH_NODE_TYPE_EMPTY: return absl::OkStatus();
    default:
      return absl::UnimplementedError(absl::StrCat(
          "A node of the kind \"", to_string(static_cast<ir::NodeKind>(type)),
          "\" was captured, which cannot be copied into another graph. Capture it into a graph of its own, and make "
          "that one a child: Graph::add_child."));
  }
}

absl::StatusOr<CUgraphNode> copy_node(CUgraphNode node, const Edges& before, GraphState& into) {
  const driver::Api& api = driver::api();
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
  CUgraphNodeParams params{};
  CGRT_RETURN_IF_ERROR(read_params(node, type, into.context, params));
  CUgraphNode copy = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      api.GraphAddNode(&copy, into.handle, before.from.data(), before.data.data(), before.from.size(), &params),
      "cuGraphAddNode"));
  if (type != CU_GRAPH_NODE_TYPE_KERNEL) return copy;
  const CUresult result = api.GraphKernelNodeCopyAttributes(copy, node);
  if (result == CUDA_SUCCESS) return copy;
  api.GraphDestroyNode(copy);
  return driver::to_status(result, "cuGraphKernelNodeCopyAttributes");
}

}  // namespace

bool is_device_updatable(CUgraphNode node) {
  CUlaunchAttributeValue value{};
  return driver::api().GraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
             CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
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
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && is_device_updatable(node)) {
      return absl::StrCat("node ", i, " (device-updatable ", describe_node(node), ")");
    }
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

absl::StatusOr<std::vector<CUgraphNode>> copy_nodes(CUgraph from, GraphState& into, Dependencies before) {
  if (into.is_in_conditional) CGRT_RETURN_IF_ERROR(check_in_conditional(from));
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(into.context));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(from));
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
    const absl::StatusOr<CUgraphNode> copy = copy_node(node, edges, into);
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
