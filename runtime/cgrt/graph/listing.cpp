#include "cgrt/graph/listing.h"

#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/walk.h"
#include "cgrt/launch/function_name.h"

namespace cgrt {
namespace {

constexpr std::size_t kMaxNames = 8;  // in a message

// Of a kernel node. Each function is asked once.
absl::StatusOr<std::string> kernel_name(CUgraphNode node, absl::flat_hash_map<CUfunction, std::string>& names) {
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphKernelNodeGetParams(node, &params), "cuGraphKernelNodeGetParams"));
  const auto found = names.find(params.func);
  if (found != names.end()) return found->second;
  const char* symbol = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetName(&symbol, params.func), "cuFuncGetName"));
  return names.emplace(params.func, internal::function_name(symbol)).first->second;
}

absl::StatusOr<std::vector<NodeInfo>> list_nodes_of(CUgraph graph, const internal::GraphState* state) {
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph, state));
  absl::flat_hash_map<CUfunction, std::string> names;
  std::vector<NodeInfo> out;
  out.reserve(walk.nodes.size());
  for (const internal::WalkedNode& node : walk.nodes) {
    NodeInfo info{NodeRef(node.handle), static_cast<ir::NodeKind>(node.type), "", walk.scope_of(node), std::nullopt};
    if (node.graph != 0) info.owner = walk.graphs[node.graph].owner;
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(info.name, kernel_name(node.handle, names));
    }
    out.push_back(std::move(info));
  }
  return out;
}

absl::StatusOr<std::vector<EdgeInfo>> list_edges_of(CUgraph graph, const internal::GraphState* state) {
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph, state));
  absl::flat_hash_map<CUgraphNode, std::size_t> positions;
  for (std::size_t i = 0; i < walk.nodes.size(); ++i) positions.emplace(walk.nodes[i].handle, i);
  std::vector<EdgeInfo> out;
  internal::Edges edges;  // of one node
  for (std::size_t i = 0; i < walk.nodes.size(); ++i) {
    edges = {};
    CGRT_RETURN_IF_ERROR(internal::add_edges_to(walk.nodes[i].handle, edges));
    for (std::size_t j = 0; j < edges.from.size(); ++j) {
      out.push_back({positions.at(edges.from[j]), i, internal::edge_kind(edges.data[j])});
    }
  }
  return out;
}

bool is_in_scope(std::string_view scope, std::string_view wanted) {
  return wanted.empty() || scope == wanted || (scope.starts_with(wanted) && scope[wanted.size()] == '/');
}

// " named \"scale\" in scope \"layer1\""
std::string describe(const NodeQuery& query) {
  std::string text;
  if (!query.name.empty()) absl::StrAppend(&text, " named \"", std::string(query.name), "\"");
  if (!query.scope.empty()) absl::StrAppend(&text, " in scope \"", std::string(query.scope), "\"");
  return text;
}

// " The graph's kernels: scale (12), shift (3)."
std::string names_of(const std::vector<NodeInfo>& nodes) {
  std::map<std::string, std::size_t> counts;
  for (const NodeInfo& node : nodes) {
    if (node.kind == ir::NodeKind::kKernel) ++counts[node.name];
  }
  if (counts.empty()) return " The graph has no kernels.";
  std::string text = " The graph's kernels: ";
  std::size_t listed = 0;
  for (const auto& [name, count] : counts) {
    if (listed == kMaxNames) return absl::StrCat(text, " and ", counts.size() - listed, " more names.");
    absl::StrAppend(&text, listed++ == 0 ? "" : ", ", name, " (", count, ")");
  }
  return text + ".";
}

}  // namespace

absl::StatusOr<std::vector<NodeInfo>> list_nodes(GraphRef graph) { return list_nodes_of(graph.get(), nullptr); }

absl::StatusOr<std::vector<NodeInfo>> list_nodes(const Graph& graph) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  return list_nodes_of(graph.ref().get(), graph.state().get());
}

absl::StatusOr<std::vector<EdgeInfo>> list_edges(GraphRef graph) { return list_edges_of(graph.get(), nullptr); }

absl::StatusOr<std::vector<EdgeInfo>> list_edges(const Graph& graph) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  return list_edges_of(graph.ref().get(), graph.state().get());
}

absl::StatusOr<NodeRef> internal::find_node(const Graph& graph, ir::NodeKind kind, const NodeQuery& query) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeInfo> nodes, list_nodes(graph));
  std::size_t matching = 0;
  for (const NodeInfo& node : nodes) {
    if (node.kind != kind || !(query.name.empty() || internal::has_name(node.name, query.name)) ||
        !is_in_scope(node.scope, query.scope))
      continue;
    if (matching++ == query.nth) return node.node;
  }
  const std::string what = absl::StrCat(to_string(kind), " node", describe(query));
  if (matching != 0) {
    return absl::NotFoundError(
        absl::StrCat("There is no ", what, " number ", query.nth, ", counted from 0: ", matching, " match."));
  }
  return absl::NotFoundError(
      absl::StrCat("There is no ", what, ".", kind == ir::NodeKind::kKernel ? names_of(nodes) : ""));
}

}  // namespace cgrt
