// The nodes and edges of any graph, and how to find those that are to be changed.
//
//   CGRT_ASSIGN_OR_RETURN(KernelNode node, find_node<KernelNode>(graph, {.name = "copy_elements", .scope = "layer1"}));
//   CGRT_RETURN_IF_ERROR(exec.set_params(node, config, kernel, y, x, n));
//
// Reads only; the graph must not be changed meanwhile. A position is the number of a node in snapshot's IR, and so in
// graphdump: first the nodes of the graph in the order of their creation, then those inside of its child graph and
// conditional nodes. Inside of conditional nodes that cgrt did not make nothing is listed: CUDA 13.0 does not tell.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/node.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt {

struct NodeInfo {
  NodeRef node;
  ir::NodeKind kind;
  std::string name;                  // of a kernel, as in snapshot's IR; else empty
  std::string scope;                 // the names in force when it was made (graph/scope.h)
  std::optional<std::size_t> owner;  // position of the node that it is inside of
};

// By position. Of a graph that cgrt did not make, without scopes. Errors are the driver's answers: docs/errors.md.
absl::StatusOr<std::vector<NodeInfo>> list_nodes(GraphRef graph);
absl::StatusOr<std::vector<NodeInfo>> list_nodes(const Graph& graph);

struct EdgeInfo {
  std::size_t from, to;  // positions
  EdgeKind kind;
};

// Ascending by `to`.
absl::StatusOr<std::vector<EdgeInfo>> list_edges(GraphRef graph);
absl::StatusOr<std::vector<EdgeInfo>> list_edges(const Graph& graph);

struct NodeQuery {
  std::string_view name = {};   // of a kernel, with or without its namespaces and its template arguments; empty: any
  std::string_view scope = {};  // the node's, or one around it: "layer1" finds "layer1/attention"; empty: any
  std::size_t nth = 0;          // of those that match, by position
};

namespace internal {

template <class Node>
inline constexpr ir::NodeKind kKindOf = ir::NodeKind::kEmpty;
template <>
inline constexpr ir::NodeKind kKindOf<KernelNode> = ir::NodeKind::kKernel;
template <>
inline constexpr ir::NodeKind kKindOf<MemcpyNode> = ir::NodeKind::kMemcpy;
template <>
inline constexpr ir::NodeKind kKindOf<MemsetNode> = ir::NodeKind::kMemset;
template <>
inline constexpr ir::NodeKind kKindOf<HostNode> = ir::NodeKind::kHost;
template <>
inline constexpr ir::NodeKind kKindOf<ChildGraphNode> = ir::NodeKind::kChildGraph;
template <>
inline constexpr ir::NodeKind kKindOf<EventRecordNode> = ir::NodeKind::kEventRecord;
template <>
inline constexpr ir::NodeKind kKindOf<EventWaitNode> = ir::NodeKind::kEventWait;
template <>
inline constexpr ir::NodeKind kKindOf<MemAllocNode> = ir::NodeKind::kMemAlloc;
template <>
inline constexpr ir::NodeKind kKindOf<MemFreeNode> = ir::NodeKind::kMemFree;
template <>
inline constexpr ir::NodeKind kKindOf<BatchMemOpNode> = ir::NodeKind::kBatchMemOp;
template <>
inline constexpr ir::NodeKind kKindOf<SemaphoreSignalNode> = ir::NodeKind::kSemaphoreSignal;
template <>
inline constexpr ir::NodeKind kKindOf<SemaphoreWaitNode> = ir::NodeKind::kSemaphoreWait;
template <>
inline constexpr ir::NodeKind kKindOf<ConditionalNode> = ir::NodeKind::kConditional;

absl::StatusOr<NodeRef> find_node(const Graph& graph, ir::NodeKind kind, const NodeQuery& query);

}  // namespace internal

// Node: KernelNode, MemcpyNode, ... of node.h. kNotFound says how many match, and which names of kernels there are.
template <class Node>
absl::StatusOr<Node> find_node(const Graph& graph, const NodeQuery& query) {
  absl::StatusOr<NodeRef> found = internal::find_node(graph, internal::kKindOf<Node>, query);
  if (!found.ok()) return std::move(found).status();
  return Node(found->get());
}

}  // namespace cgrt
