// Definitions that are changed after they were built.
#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/attribute_difference.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/launch/library.h"

namespace cgrt::internal {
namespace {

absl::StatusOr<CUgraphNodeType> type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
  return type;
}

absl::Status not_of_this_graph(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is not a node of this graph: it is one of another graph, also of one inside of it, or was removed."));
}

// A node that allocates or frees memory, whose graph CUDA lets nobody take anything out of; empty: there is none.
std::string memory_node_in(const std::vector<CUgraphNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const absl::StatusOr<CUgraphNodeType> type = type_of(nodes[i]);
    if (type.ok() && (*type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || *type == CU_GRAPH_NODE_TYPE_MEM_FREE)) {
      return absl::StrCat("node ", i, " (", describe_node(nodes[i]), ")");
    }
  }
  return "";
}

bool has(const std::vector<CUgraphNode>& nodes, CUgraphNode node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Of the edge between two nodes of one graph; nullopt: there is none, or the driver does not say.
std::optional<EdgeKind> kind_of_edge(CUgraphNode from, CUgraphNode to) {
  Edges edges;
  if (!add_edges_to(to, edges).ok()) return std::nullopt;
  const auto found = std::find(edges.from.begin(), edges.from.end(), from);
  if (found == edges.from.end()) return std::nullopt;
  return edge_kind(edges.data[static_cast<std::size_t>(found - edges.from.begin())]);
}

const char* kind_name(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kFull: return "full";
    case EdgeKind::kProgrammatic: return "programmatic";
    case EdgeKind::kLaunchCompletion: return "launch completion";
  }
  return "full";
}

[[gnu::cold]] absl::Status explain_edge(const absl::Status& failure, const GraphState& state, const Dependency& from,
                                        CUgraphNode to) {
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(state.handle);
  if (!nodes.ok()) return failure;
  if (!has(*nodes, from.node.get())) return not_of_this_graph("What the edge comes from");
  if (!has(*nodes, to)) return not_of_this_graph("What the edge goes to");
  if (from.node.get() == to) return driver::annotate(failure, "A node cannot wait for itself");
  if (const std::optional<EdgeKind> kind = kind_of_edge(from.node.get(), to); kind.has_value()) {
    return driver::annotate(
        failure, absl::StrCat("There is an edge from ", describe_node(from.node.get()), " to ", describe_node(to),
                              " already, which is ", kind_name(*kind), ": remove it first, for one of another kind"));
  }
  if (from.kind == EdgeKind::kFull) return failure;
  return driver::annotate(failure, absl::StrCat("An edge from ", describe_node(from.node.get()), " to ",
                                                describe_node(to), " cannot be ", kind_name(from.kind),
                                                ": CUDA has such edges out of kernels, programmatic ones into kernels "
                                                "only"));
}

}  // namespace

absl::Status remove_node(GraphState& state, CUgraphNode node) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(state.handle));
  const auto found = std::find(nodes.begin(), nodes.end(), node);
  if (found == nodes.end()) return not_of_this_graph("What is to be removed");
  if (has_rebindable(state)) {
    return absl::FailedPreconditionError(
        "A rebindable executable changes the nodes of this graph, so that none can be removed: build another graph.");
  }
  const auto position = static_cast<std::size_t>(found - nodes.begin());
  CGRT_RETURN_IF_ERROR(state.prepare_insides(position));
  const CUresult result = driver::api().GraphDestroyNode(node);
  if (result == CUDA_SUCCESS) {
    std::erase(state.left_out_at_first, node);
    state.variants.clear();
    state.note_removed(position);
    return absl::OkStatus();
  }
  const absl::Status failure = driver::to_status(result, "cuGraphDestroyNode");
  const std::string memory = memory_node_in(nodes);
  if (!memory.empty()) {
    return driver::annotate(failure, absl::StrCat("Because of ", memory, " no node of this graph can be removed"));
  }
  if (!is_device_updatable(node).value_or(false))
    return driver::annotate(failure, absl::StrCat("Removing ", describe_node(node)));
  return driver::annotate(failure,
                          absl::StrCat("A device-updatable node, as ", describe_node(node), ", stays in its graph"));
}

absl::Status add_edge(GraphState& state, const Dependency& from, CUgraphNode to) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  const DriverDependencies before({&from, 1});
  const CUresult result =
      driver::api().GraphAddDependencies(state.handle, before.nodes.data(), &to, before.edge_data(), 1);
  if (result == CUDA_SUCCESS) {
    ++state.edits;
    state.variants.clear();  // whose edges are others
    return absl::OkStatus();
  }
  return explain_edge(driver::to_status(result, "cuGraphAddDependencies"), state, from, to);
}

absl::Status remove_edge(GraphState& state, CUgraphNode from, CUgraphNode to) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  const CUresult result = driver::api().GraphRemoveDependencies(state.handle, &from, &to, nullptr, 1);
  if (result == CUDA_SUCCESS) {
    ++state.edits;
    state.variants.clear();  // whose edges are others
    return absl::OkStatus();
  }
  const absl::Status failure = driver::to_status(result, "cuGraphRemoveDependencies");
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(state.handle);
  if (!nodes.ok()) return failure;
  if (!has(*nodes, from)) return not_of_this_graph("What the edge comes from");
  if (!has(*nodes, to)) return not_of_this_graph("What the edge goes to");
  if (const std::string memory = memory_node_in(*nodes); !memory.empty()) {
    return driver::annotate(failure, absl::StrCat("Because of ", memory, " no edge of this graph can be removed"));
  }
  return driver::annotate(failure,
                          absl::StrCat("There is no edge from ", describe_node(from), " to ", describe_node(to)));
}

absl::Status set_params(GraphState& state, CUgraphNode node, const KernelLaunch& launch) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  // The node's own, which is another one in a child graph, or captured from a stream, of another device.
  CUDA_KERNEL_NODE_PARAMS now{};
  const CUresult asked = driver::api().GraphKernelNodeGetParams(node, &now);
  if (asked != CUDA_SUCCESS) {
    return explain_launch(driver::to_status(asked, "cuGraphKernelNodeGetParams"), launch, state.context);
  }
  const CUcontext context = now.ctx;
  KernelNodeParams kernel;
  CGRT_RETURN_IF_ERROR(set_kernel_params(kernel, context, launch));
  CGRT_ASSIGN_OR_RETURN(const NodeTable table, node_table(state));
  const auto known = std::find_if(table.attributes.begin(), table.attributes.end(),
                                  [&](const NodeAttributes& one) { return one.node == node; });
  const LaunchAttributes was = known != table.attributes.end() ? known->attributes : LaunchAttributes{};
  CGRT_RETURN_IF_ERROR(check_attributes(was, launch, kernel.function->cluster, context, NodeOwner::kDefinition));
  if (launch.kernel->library != nullptr) CGRT_RETURN_IF_ERROR(keep_library(state, library_of(*launch.kernel)));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel.driver));  // v3 and v2 differ in what they promise only
  std::memcpy(&params.kernel, &kernel.driver, sizeof(kernel.driver));
  const absl::Status status = set_params(state, node, params);
  return status.ok() ? status : explain_launch(status, launch, context);
}

absl::Status set_params(GraphState& state, CUgraphNode node, CUgraphNodeParams& params) {
  CGRT_RETURN_IF_ERROR(state.prepare());
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeSetParams(node, &params), "cuGraphNodeSetParams"));
  state.variants.clear();  // whose nodes are as they were
  return absl::OkStatus();
}

absl::Status set_semaphores(GraphState& state, CUgraphNode node, SemaphoreAction action,
                            absl::Span<const SemaphoreValue> values) {
  CGRT_RETURN_IF_ERROR(check(values));
  SemaphoreArrays arrays = to_driver(action, values);
  CUgraphNodeParams params{};
  set_semaphore_params(params, action, arrays);
  const absl::Status status = set_params(state, node, params);
  return status.ok() ? status : explain(status, action, values);
}

namespace {

// Nodes that wait for each other, each for the one before it; empty: there are none.
std::vector<std::size_t> find_cycle(const std::vector<std::vector<std::size_t>>& waits_for) {
  enum class Mark : char { kNew, kOnPath, kDone };
  std::vector<Mark> marks(waits_for.size(), Mark::kNew);
  struct Step {
    std::size_t node, next;
  };
  for (std::size_t first = 0; first < waits_for.size(); ++first) {
    std::vector<Step> path;
    if (marks[first] == Mark::kNew) path.push_back({first, 0});
    while (!path.empty()) {
      Step& step = path.back();
      marks[step.node] = Mark::kOnPath;
      if (step.next == waits_for[step.node].size()) {
        marks[step.node] = Mark::kDone;
        path.pop_back();
        continue;
      }
      const std::size_t before = waits_for[step.node][step.next++];
      if (marks[before] == Mark::kNew) path.push_back({before, 0});
      if (marks[before] != Mark::kOnPath) continue;
      std::vector<std::size_t> cycle;
      for (auto one = path.rbegin(); one != path.rend(); ++one) {
        cycle.push_back(one->node);
        if (one->node == before) return cycle;
      }
    }
  }
  return {};
}

}  // namespace

std::string describe_cycle(CUgraph graph) {
  constexpr std::size_t kShown = 8;
  const absl::StatusOr<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes.ok()) return "";
  absl::flat_hash_map<CUgraphNode, std::size_t> positions;
  for (std::size_t i = 0; i < nodes->size(); ++i) positions.emplace((*nodes)[i], i);
  std::vector<std::vector<std::size_t>> waits_for(nodes->size());
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    Edges edges;
    if (!add_edges_to((*nodes)[i], edges).ok()) return "";
    for (CUgraphNode from : edges.from) waits_for[i].push_back(positions.at(from));
  }
  std::vector<std::size_t> cycle = find_cycle(waits_for);
  if (cycle.empty()) return "";
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
    absl::StrAppend(&text, "node ", cycle[i], " (", describe_node((*nodes)[cycle[i]]), ") -> ");
  }
  return absl::StrCat(text, cycle.size() > kShown ? "... -> " : "", "node ", cycle.front());
}

}  // namespace cgrt::internal
