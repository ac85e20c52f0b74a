#include "cgrt/graph/programmatic.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/graph/walk.h"

namespace cgrt {
namespace {

constexpr CUgraphEdgeData kFullEdge{};
constexpr CUgraphEdgeData kProgrammaticEdge{
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};

struct Edge {
  CUgraph graph;
  CUgraphNode from, to;
  CUgraphEdgeData data;  // as found
};

absl::Status replace(const Edge& edge, const CUgraphEdgeData& was, const CUgraphEdgeData& wanted) {
  const driver::Api& api = driver::api();
  CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphRemoveDependencies(edge.graph, &edge.from, &edge.to, &was, 1),
                                         "cuGraphRemoveDependencies"));
  const CUresult added = api.GraphAddDependencies(edge.graph, &edge.from, &edge.to, &wanted, 1);
  if (added == CUDA_SUCCESS) return absl::OkStatus();
  api.GraphAddDependencies(edge.graph, &edge.from, &edge.to, &was, 1);
  return driver::to_status(added, "cuGraphAddDependencies");
}

// All of them, or none.
absl::Status replace_all(const std::vector<Edge>& edges, const CUgraphEdgeData& wanted) {
  std::size_t replaced = 0;
  absl::Cleanup undo = [&] {
    for (std::size_t i = 0; i < replaced; ++i) replace(edges[i], wanted, edges[i].data).IgnoreError();
  };
  for (const Edge& edge : edges) {
    CGRT_RETURN_IF_ERROR(replace(edge, edge.data, wanted));
    ++replaced;
  }
  std::move(undo).Cancel();
  return absl::OkStatus();
}

class Finder {
 public:
  // The edges that can become programmatic; counts the others.
  absl::StatusOr<std::vector<Edge>> find(const internal::Walk& walk, ProgrammaticEdges& report) {
    absl::flat_hash_map<CUgraphNode, CUgraphNodeType> types;
    for (const internal::WalkedNode& node : walk.nodes) types.emplace(node.handle, node.type);
    std::vector<Edge> found;
    std::set<std::string> reasons;
    internal::Edges edges;  // of one node
    for (const internal::WalkedNode& node : walk.nodes) {
      if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
      edges = {};
      CGRT_RETURN_IF_ERROR(internal::add_edges_to(node.handle, edges));
      const auto is_kernel = [&](CUgraphNode before) { return types.at(before) == CU_GRAPH_NODE_TYPE_KERNEL; };
      const auto kernels = static_cast<std::size_t>(std::count_if(edges.from.begin(), edges.from.end(), is_kernel));
      if (kernels == 0) continue;
      CGRT_ASSIGN_OR_RETURN(std::string reason, why_not(node.handle));
      if (reason.empty() && kernels != edges.from.size()) {
        reason = absl::StrCat(describe_node(node.handle), " has another predecessor than kernels");
      }
      for (std::size_t i = 0; i < edges.from.size(); ++i) {
        if (!is_kernel(edges.from[i]) || internal::edge_kind(edges.data[i]) != EdgeKind::kFull) continue;
        if (reason.empty()) {
          found.push_back({walk.graphs[node.graph].handle, edges.from[i], node.handle, edges.data[i]});
        } else {
          ++report.full;
          reasons.insert(reason);
        }
      }
    }
    report.reasons.assign(reasons.begin(), reasons.end());
    return found;
  }

 private:
  // Empty: the kernel can begin early.
  absl::StatusOr<std::string> why_not(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphKernelNodeGetParams(node, &params), "cuGraphKernelNodeGetParams"));
    const auto known = why_not_.find(params.func);
    if (known != why_not_.end()) return known->second;
    const driver::KernelIdentity* const kernel = driver::kernel_of(params.func);
    std::string reason;
    int ptx_version = 0;
    if (kernel == nullptr || !kernel->waits) {
      reason = absl::StrCat(describe_node(node), " does not say that it waits for its predecessors");
    } else {
      CGRT_RETURN_IF_ERROR(
          driver::to_status(driver::api().FuncGetAttribute(&ptx_version, CU_FUNC_ATTRIBUTE_PTX_VERSION, params.func),
                            "cuFuncGetAttribute"));
      if (ptx_version < 90) reason = absl::StrCat(describe_node(node), " was not compiled for 9.0 or later");
    }
    return why_not_.emplace(params.func, std::move(reason)).first->second;
  }

  absl::flat_hash_map<CUfunction, std::string> why_not_;
};

}  // namespace

absl::StatusOr<ProgrammaticEdges> add_programmatic_edges(Graph& graph) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.ref().get(), graph.state().get()));
  ProgrammaticEdges report;
  CGRT_ASSIGN_OR_RETURN(const std::vector<Edge> edges, Finder().find(walk, report));
  CGRT_RETURN_IF_ERROR(replace_all(edges, kProgrammaticEdge));
  if (!edges.empty()) graph.state()->note_edges_replaced();
  report.added = edges.size();
  return report;
}

absl::StatusOr<std::size_t> remove_programmatic_edges(Graph& graph) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.ref().get(), graph.state().get()));
  std::vector<Edge> found;
  for (const internal::WalkedGraph& one : walk.graphs) {
    CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, internal::nodes_of(one.handle));
    CGRT_ASSIGN_OR_RETURN(const internal::Edges edges, internal::edges_of(nodes));
    for (std::size_t i = 0; i < edges.from.size(); ++i) {
      if (internal::edge_kind(edges.data[i]) == EdgeKind::kFull) continue;
      found.push_back({one.handle, edges.from[i], edges.to[i], edges.data[i]});
    }
  }
  CGRT_RETURN_IF_ERROR(replace_all(found, kFullEdge));
  if (!found.empty()) graph.state()->note_edges_replaced();
  return found.size();
}

}  // namespace cgrt
