#include "cgrt/graph/node_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt::internal {
namespace {

// Of the table of every NodeKnowledge, and held for a copy of one: graphs with a mutex of their own would be larger.
std::mutex table_mutex;

// Held while the driver is asked, so that a graph is not changed beside that: its owner completes the table first, or
// holds this.
std::mutex completion_mutex;

AccessProperty from_driver(CUaccessProperty property) {
  switch (property) {
    case CU_ACCESS_PROPERTY_STREAMING: return AccessProperty::kStreaming;
    case CU_ACCESS_PROPERTY_PERSISTING: return AccessProperty::kPersisting;
    default: return AccessProperty::kNormal;
  }
}

absl::Status read(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue& value) {
  value = {};
  return driver::to_status(driver::api().GraphKernelNodeGetAttribute(node, id, &value),
                           "cuGraphKernelNodeGetAttribute");
}

// Those that a captured node has from its stream.
absl::Status read_inherited(CUgraphNode node, LaunchAttributes& out) {
  CUlaunchAttributeValue value;
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  out.priority = value.priority;
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, value));
  if (value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE) out.mem_sync_domain = MemSyncDomain::kRemote;
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value));
  if (const CUaccessPolicyWindow& window = value.accessPolicyWindow; window.num_bytes != 0) {
    out.access_policy = {window.base_ptr, window.num_bytes, window.hitRatio, from_driver(window.hitProp),
                         from_driver(window.missProp)};
  }
  return absl::OkStatus();
}

bool is_inheritable_default(const LaunchAttributes& attributes) {
  return attributes.priority == 0 && attributes.mem_sync_domain == MemSyncDomain::kDefault &&
         attributes.access_policy == AccessPolicyWindow();
}

absl::StatusOr<Dim3> compiled_cluster(CUgraphNode node, AskedAttributes& asked) {
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphKernelNodeGetParams(node, &params), "cuGraphKernelNodeGetParams"));
  const auto known = asked.compiled_clusters.find(params.func);
  if (known != asked.compiled_clusters.end()) return known->second;
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(params.ctx));
  Dim3 cluster;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::compiled_cluster(params.func, &cluster), "cuFuncGetAttribute"));
  asked.compiled_clusters.emplace(params.func, cluster);
  return cluster;
}

// Adds what is in `graph`, which is at `path`, from the node at `first` on.
absl::Status read_all(CUgraph graph, std::size_t first, const std::vector<std::size_t>& path, AskedAttributes& asked,
                      NodeTable& table) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (std::size_t i = first; i < nodes.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(nodes[i], &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    std::vector<std::size_t> at = path;
    at.push_back(i);
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(const LaunchAttributes attributes, attributes_of(nodes[i], asked));
      if (!attributes.is_default()) table.attributes.push_back({std::move(at), nodes[i], attributes});
      continue;
    }
    CGRT_ASSIGN_OR_RETURN(const CUgraph child, graph_inside(nodes[i]));
    CGRT_ASSIGN_OR_RETURN(std::vector<CUgraphNode> inside, nodes_of(child));
    table.children.push_back({at, nodes[i], std::move(inside)});
    CGRT_RETURN_IF_ERROR(read_all(child, 0, at, asked, table));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchAttributes> attributes_of(CUgraphNode node, AskedAttributes& asked) {
  LaunchAttributes out;
  CGRT_RETURN_IF_ERROR(read_inherited(node, out));
  CUlaunchAttributeValue value;
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
  out.cooperative = value.cooperative != 0;
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, value));
  out.shared_carveout_percent = static_cast<int>(value.sharedMemCarveout);
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
  const CUlaunchAttributeValue cluster = value;
  if (cluster.clusterDim.x == 0) {  // none; a captured node has the one that it was compiled with, another has not
    CGRT_ASSIGN_OR_RETURN(out.cluster, compiled_cluster(node, asked));
    if (out.cluster == Dim3()) return out;
  } else {
    out.cluster = Dim3(cluster.clusterDim.x, cluster.clusterDim.y, cluster.clusterDim.z);
  }
  CGRT_RETURN_IF_ERROR(read(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, value));
  if (value.clusterSchedulingPolicyPreference == CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) {
    out.cluster_scheduling = ClusterScheduling::kLoadBalancing;
  }
  if (cluster.clusterDim.x == 0) return out;
  // Only beside a cluster. Devices without preferred clusters refuse the question (1 on an H200, in 1.8 us).
  if (!asked.has_preferred_clusters) return out;
  const CUresult preferred =
      driver::api().GraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, &value);
  if (preferred == CUDA_SUCCESS && value.preferredClusterDim.x != 0) {
    out.preferred_cluster = Dim3(value.preferredClusterDim.x, value.preferredClusterDim.y, value.preferredClusterDim.z);
  } else if (preferred != CUDA_SUCCESS && preferred != CUDA_ERROR_INVALID_VALUE) {
    return driver::to_status(preferred, "cuGraphKernelNodeGetAttribute");
  }
  asked.has_preferred_clusters = preferred == CUDA_SUCCESS;
  return out;
}

namespace {

// True when every node that was captured came from launches that were noted, and none has more than they say.
absl::StatusOr<bool> are_all_noted(CUgraph graph, const CapturedNodes& captured) {
  if (captured.is_ambiguous) return false;
  CGRT_ASSIGN_OR_RETURN(const std::size_t count, count_nodes(graph));
  if (count != captured.count) return false;
  std::vector<CapturedNodes::Kernel> first_kernels;  // that a node inherits from its stream is seen at these
  if (captured.first_kernel != CapturedNodes::kNone) first_kernels.push_back({captured.first_kernel, true, {}});
  for (const CapturedNodes::Kernel& kernel : captured.kernels) {
    if (kernel.is_first) first_kernels.push_back(kernel);
  }
  if (first_kernels.empty()) return true;
  std::size_t listed = std::max(first_kernels.front().position, first_kernels.back().position) + 1;
  std::vector<CUgraphNode> nodes(listed);
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph, nodes.data(), &listed), "cuGraphGetNodes"));
  for (const CapturedNodes::Kernel& kernel : first_kernels) {
    LaunchAttributes seen = kernel.attributes;
    if (!is_inheritable_default(seen)) return false;  // what the stream has cannot be seen at this one
    CGRT_RETURN_IF_ERROR(read_inherited(nodes[kernel.position], seen));
    if (!is_inheritable_default(seen)) return false;
  }
  return true;
}

// The nodes that were captured, from `first` on.
absl::StatusOr<NodeTable> read_captured(CUgraph graph, const CapturedNodes& captured, std::size_t first) {
  NodeTable table;
  CGRT_ASSIGN_OR_RETURN(const bool is_all, are_all_noted(graph, captured));
  if (!is_all) {
    AskedAttributes asked;
    CGRT_RETURN_IF_ERROR(read_all(graph, first, {}, asked, table));
    return table;
  }
  std::vector<CUgraphNode> nodes;
  for (const CapturedNodes::Kernel& kernel : captured.kernels) {
    if (kernel.attributes.is_default()) continue;
    if (nodes.empty()) {
      CGRT_ASSIGN_OR_RETURN(nodes, nodes_of(graph));
    }
    table.attributes.push_back({{kernel.position}, nodes[kernel.position], kernel.attributes});
  }
  return table;
}

}  // namespace

std::unique_lock<std::mutex> hold_completion() { return std::unique_lock(completion_mutex); }

absl::Status NodeKnowledge::complete(CUgraph graph) {
  if (is_complete()) return absl::OkStatus();
  const std::lock_guard completing(completion_mutex);
  if (is_complete()) return absl::OkStatus();
  NodeTable table;
  if (is_captured_) {
    CGRT_ASSIGN_OR_RETURN(table, read_captured(graph, captured_, 0));
  } else {
    AskedAttributes asked;
    CGRT_RETURN_IF_ERROR(read_all(graph, 0, {}, asked, table));
  }
  const std::lock_guard lock(table_mutex);
  set_table(std::move(table));
  is_complete_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status NodeKnowledge::add_captured(CUgraph graph, CapturedNodes captured, std::size_t first) {
  captured.count += first;
  if (captured.first_kernel != CapturedNodes::kNone) captured.first_kernel += first;
  for (CapturedNodes::Kernel& kernel : captured.kernels) kernel.position += first;
  CGRT_ASSIGN_OR_RETURN(NodeTable more, read_captured(graph, captured, first));
  const std::lock_guard lock(table_mutex);
  NodeTable table = table_ != nullptr ? std::move(*table_) : NodeTable{};
  std::move(more.attributes.begin(), more.attributes.end(), std::back_inserter(table.attributes));
  std::move(more.children.begin(), more.children.end(), std::back_inserter(table.children));
  set_table(std::move(table));
  return absl::OkStatus();
}

void NodeKnowledge::set_table(NodeTable table) {
  const bool is_empty = table.attributes.empty() && table.children.empty();
  table_ = is_empty ? nullptr : std::make_unique<NodeTable>(std::move(table));
  is_empty_.store(is_empty, std::memory_order_release);
}

absl::Status NodeKnowledge::know_as(const NodeKnowledge& original, const std::vector<CUgraphNode>& nodes) {
  if (!original.is_complete()) {
    if (original.is_captured_) {
      know_captured() = original.captured_;
    } else {
      know_nothing();
    }
    return absl::OkStatus();
  }
  NodeTable table = original.table();
  const auto node_at = [&](const std::vector<std::size_t>& path) {
    const auto is_around = [&](const ChildNode& child) {
      return std::equal(child.path.begin(), child.path.end(), path.begin(), path.end() - 1);
    };
    const auto around = std::find_if(table.children.begin(), table.children.end(), is_around);
    return (path.size() == 1 ? nodes : around->inside)[path.back()];
  };
  for (ChildNode& child : table.children) {  // after those that it is inside of
    child.node = node_at(child.path);
    CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(child.node));
    CGRT_ASSIGN_OR_RETURN(child.inside, nodes_of(inside));
  }
  for (NodeAttributes& one : table.attributes) one.node = node_at(one.path);
  set_table(std::move(table));
  return absl::OkStatus();
}

void NodeKnowledge::add(std::size_t position, CUgraphNode node, const LaunchAttributes& attributes) {
  const std::lock_guard lock(table_mutex);
  if (table_ == nullptr) table_ = std::make_unique<NodeTable>();
  table_->attributes.push_back({{position}, node, attributes});
  is_empty_.store(false, std::memory_order_release);
}

void NodeKnowledge::remove(std::size_t position) {
  const std::lock_guard lock(table_mutex);
  NodeTable table = table_ != nullptr ? *table_ : NodeTable{};
  if (first_table_ == nullptr) first_table_ = std::make_unique<const NodeTable>(table);
  const auto take_out = [&](auto& nodes) {
    std::erase_if(nodes, [&](const auto& one) { return one.path.front() == position; });
    for (auto& one : nodes) one.path.front() -= one.path.front() > position ? 1 : 0;
  };
  take_out(table.attributes);
  take_out(table.children);
  set_table(std::move(table));
}

NodeTable NodeKnowledge::table() const {
  const std::lock_guard lock(table_mutex);
  return table_ != nullptr ? *table_ : NodeTable{};
}

NodeTable NodeKnowledge::first_table() const {
  const std::lock_guard lock(table_mutex);
  if (first_table_ != nullptr) return *first_table_;
  return table_ != nullptr ? *table_ : NodeTable{};
}

namespace {

// A child or a body that this library put into a graph; `path` leads there from it.
struct Inside {
  std::vector<std::size_t> path;
  CUgraphNode child;  // its node; null: a body
  GraphState* state;
};

std::vector<Inside> insides_with_paths(const GraphState& state) {
  std::vector<Inside> all;
  for (const GraphState::Child& child : state.children) {
    all.push_back({{child.position}, child.node, child.state.get()});
  }
  for (const GraphState::ConditionalNode& node : state.conditionals) {
    for (std::size_t i = 0; i < node.bodies.size(); ++i) {
      all.push_back({{node.position, i}, nullptr, node.bodies[i].get()});
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<NodeAttributes>> attributes_in(GraphState& state) {
  CGRT_RETURN_IF_ERROR(state.knowledge.complete(state.handle));
  std::vector<NodeAttributes> all = state.knowledge.table().attributes;
  for (const Inside& inside : insides_with_paths(state)) {
    CGRT_ASSIGN_OR_RETURN(std::vector<NodeAttributes> inner, attributes_in(*inside.state));
    for (NodeAttributes& one : inner) {
      one.path.insert(one.path.begin(), inside.path.begin(), inside.path.end());
      all.push_back(std::move(one));
    }
  }
  std::sort(all.begin(), all.end(), [](const NodeAttributes& a, const NodeAttributes& b) { return a.path < b.path; });
  return all;
}

namespace {

absl::Status list_children(const GraphState& state, const std::vector<std::size_t>& path,
                           std::vector<ChildNode>& children) {
  for (const Inside& inside : insides_with_paths(state)) {
    std::vector<std::size_t> at = path;
    at.insert(at.end(), inside.path.begin(), inside.path.end());
    if (inside.child != nullptr) {
      CGRT_ASSIGN_OR_RETURN(std::vector<CUgraphNode> nodes, nodes_of(inside.state->handle));
      children.push_back({at, inside.child, std::move(nodes)});
    }
    for (ChildNode& inner : inside.state->knowledge.table().children) {
      inner.path.insert(inner.path.begin(), at.begin(), at.end());
      children.push_back(std::move(inner));
    }
    CGRT_RETURN_IF_ERROR(list_children(*inside.state, at, children));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeTable> node_table(GraphState& state) {
  CGRT_RETURN_IF_ERROR(state.knowledge.complete(state.handle));
  NodeTable table = state.knowledge.table();
  if (state.children.empty() && state.conditionals.empty()) return table;
  CGRT_ASSIGN_OR_RETURN(table.attributes, attributes_in(state));
  CGRT_RETURN_IF_ERROR(list_children(state, {}, table.children));
  return table;
}

bool has_plain_insides(const GraphState& state) {
  const std::vector<Inside> insides = insides_with_paths(state);
  return std::all_of(insides.begin(), insides.end(),
                     [](const Inside& inside) { return is_known_plain(*inside.state); });
}

void drop_from(NodeTable& table, std::size_t count) {
  std::erase_if(table.attributes, [&](const NodeAttributes& one) { return one.path.front() >= count; });
  std::erase_if(table.children, [&](const ChildNode& one) { return one.path.front() >= count; });
}

}  // namespace cgrt::internal
