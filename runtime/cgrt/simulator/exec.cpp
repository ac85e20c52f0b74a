// Executables: instantiate, launch in a random legal order, set, update.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

CUgraphExec_st* find_exec(CUgraphExec handle) {
  const auto found = state->execs.find(handle);
  return found != state->execs.end() ? found->second.get() : nullptr;
}

std::unordered_map<CUgraphNode, std::size_t> positions_of(const CUgraph_st& graph) {
  std::unordered_map<CUgraphNode, std::size_t> positions;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) positions.emplace(graph.nodes[i].get(), i);
  return positions;
}

DependencyList dependencies_of(const CUgraphNode_st& node,
                               const std::unordered_map<CUgraphNode, std::size_t>& positions) {
  DependencyList list;
  for (const Dependency& dependency : node.dependencies)
    list.emplace_back(positions.at(dependency.node), dependency.edge);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return list;
}

bool same_edges(const DependencyList& a, const DependencyList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.from_port == y.second.from_port && x.second.type == y.second.type;
  });
}

// What the driver lets a node of an executable become.
bool can_become(const NodeData& from, const NodeData& to) {
  if (from.context != to.context) return false;
  if (from.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return from.conditional_type == to.conditional_type;
  if (step_count(from) != 0) return step_count(from) == step_count(to);
  if (from.memory != to.memory) {  // which then moves into the executable
    return from.memory != nullptr && to.memory != nullptr && from.memory->bytes == to.memory->bytes &&
           to.memory->exec_of(to.type) == nullptr;
  }
  return from.reads_device == to.reads_device && from.writes_device == to.writes_device;
}

bool is_cooperative(const NodeData& node) {
  const auto found = node.attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  return found != node.attributes.end() && found->second.cooperative != 0;
}

// The parameters of `to` with the attributes of `from`: those of an executable never change.
NodeDataRef with_attributes_of(const NodeData& from, NodeDataRef to) {
  if (from.attributes.empty() && to->attributes.empty()) return to;
  auto merged = std::make_shared<NodeData>(*to);
  merged->attributes = from.attributes;
  return merged;
}

struct Refusal {
  CUgraphExecUpdateResult reason;
  CUgraphNode node;
};

int priority_of(const NodeData& node) {
  const auto found = node.attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
  return found != node.attributes.end() ? found->second.priority : 0;
}

Refusal check_update(const Body& exec, const CUgraph_st& graph, bool uses_priorities) {
  if (graph.nodes.size() != exec.nodes.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr};
  const auto positions = positions_of(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CUgraphNode node = graph.nodes[i].get();
    const NodeData& from = *exec.nodes[i];
    const NodeData& to = *node->data;
    if (!same_edges(exec.dependencies[i], dependencies_of(*node, positions))) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node};
    }
    if (to.type != from.type) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node};
    if (!can_become(from, to)) {
      return {to.type == CU_GRAPH_NODE_TYPE_KERNEL ? CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
                                                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
              node};
    }
    if (is_cooperative(from) != is_cooperative(to) || (uses_priorities && priority_of(from) != priority_of(to))) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, node};
    }
    if (node->inside.size() != from.bodies.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node};
    for (std::size_t j = 0; j < node->inside.size(); ++j) {
      const Refusal inner = check_update(*from.bodies[j], *node->inside[j], uses_priorities);
      if (inner.reason != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inner;
    }
  }
  return {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr};
}

// After check_update has found nothing.
void apply_update(Body& exec, const CUgraph_st& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CUgraphNode_st& node = *graph.nodes[i];
    if (node.inside.empty()) {
      exec.nodes[i] = with_attributes_of(*exec.nodes[i], node.data);
      continue;
    }
    auto changed = std::make_shared<NodeData>(*node.data);
    for (std::size_t j = 0; j < node.inside.size(); ++j) {
      auto body = std::make_shared<Body>(*exec.nodes[i]->bodies[j]);
      apply_update(*body, *node.inside[j]);
      changed->bodies.push_back(std::move(body));
    }
    exec.nodes[i] = std::move(changed);
  }
}

void add_paths(const CUgraph_st& graph, const std::vector<std::size_t>& outer,
               std::unordered_map<CUgraphNode, std::vector<std::size_t>>& paths) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<std::size_t> path = outer;
    path.push_back(i);
    for (std::size_t j = 0; j < graph.nodes[i]->inside.size(); ++j) {
      path.push_back(j);
      add_paths(*graph.nodes[i]->inside[j], path, paths);
      path.pop_back();
    }
    paths.emplace(graph.nodes[i].get(), std::move(path));
  }
}

using Path = std::span<const std::size_t>;

NodeDataRef node_at(const Body& body, Path path) {
  const NodeDataRef& node = body.nodes[path.front()];
  return path.size() == 1 ? node : node_at(*node->bodies[path[1]], path.subspan(2));
}

// Launches in flight keep the old one, also that of the graphs around it.
void replace(Body& body, Path path, NodeDataRef data) {
  NodeDataRef& node = body.nodes[path.front()];
  if (path.size() == 1) {
    node = std::move(data);
    return;
  }
  auto outer = std::make_shared<NodeData>(*node);
  auto inside = std::make_shared<Body>(*outer->bodies[path[1]]);
  replace(*inside, path.subspan(2), std::move(data));
  outer->bodies[path[1]] = std::move(inside);
  node = std::move(outer);
}

void collect_kept(const CUgraph_st& graph, std::vector<std::shared_ptr<void>>& kept) {
  kept.insert(kept.end(), graph.kept.begin(), graph.kept.end());
  for (const auto& node : graph.nodes) {
    for (const auto& inside : node->inside) collect_kept(*inside, kept);
  }
}

template <class Visit>
void for_each_node(const Body& body, const Visit& visit) {
  for (const NodeDataRef& node : body.nodes) {
    visit(node);
    for (const auto& inside : node->bodies) for_each_node(*inside, visit);
  }
}

bool is_updatable(const Body& body) {
  bool found = false;
  for_each_node(body, [&](const NodeDataRef& node) { found |= node->updatable != nullptr; });
  return found;
}

void set_uploaded(const Body& body) {
  for_each_node(body, [](const NodeDataRef& node) {
    if (node->updatable != nullptr) node->updatable->is_uploaded = true;
  });
}

// 801 where one of the graph's updatable nodes has an executable already, or a programmatic edge to another one.
CUresult check_updatable(const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    for (const auto& inside : node->inside) {
      if (const CUresult refused = check_updatable(*inside); refused != CUDA_SUCCESS) return refused;
    }
    if (node->data->updatable == nullptr) continue;
    if (node->data->updatable->exec != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    for (const Dependency& dependency : node->dependencies) {
      const bool is_special = dependency.edge.type != 0 || dependency.edge.from_port != 0;
      if (is_special && dependency.node->data->updatable != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

void set_memory_exec(const Body& body, CUgraphExec exec) {
  for_each_node(body, [&](const NodeDataRef& node) {
    if (node->memory != nullptr) node->memory->exec_of(node->type) = exec;
  });
}

// 801 where a graph that allocates has an executable already.
CUresult check_memory(const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    const NodeData& data = *node->data;
    if (data.memory != nullptr && data.memory->exec_of(data.type) != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    for (const auto& inside : node->inside) {
      if (const CUresult refused = check_memory(*inside); refused != CUDA_SUCCESS) return refused;
    }
  }
  return CUDA_SUCCESS;
}

// 801 where a conditional node's graph has an executable already.
CUresult check_conditional(const CUgraph_st& graph) {
  for (const auto& node : graph.nodes) {
    if (node->data->conditional != nullptr && node->data->conditional->exec != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    for (const auto& inside : node->inside) {
      if (const CUresult refused = check_conditional(*inside); refused != CUDA_SUCCESS) return refused;
    }
  }
  return CUDA_SUCCESS;
}

bool may_be_in_conditional(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return true;
    default: return false;
  }
}

// Of what is in the bodies of conditional nodes, the first that cannot be there; null: none.
CUgraphNode wrong_in_conditional(const CUgraph_st& graph, bool is_inside) {
  for (const auto& node : graph.nodes) {
    if (is_inside && !may_be_in_conditional(node->data->type)) return node.get();
    const bool is_body = is_inside || node->data->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    for (const auto& inside : node->inside) {
      if (const CUgraphNode wrong = wrong_in_conditional(*inside, is_body); wrong != nullptr) return wrong;
    }
  }
  return nullptr;
}

// Whether a handle of the graph or of one inside of it has no node.
bool has_unused_handle(const CUgraph_st& graph) {
  for (const auto& [handle, conditional] : state->conditionals) {
    if (conditional->graph == &graph && conditional->node == nullptr) return true;
  }
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return std::any_of(node->inside.begin(), node->inside.end(),
                       [](const auto& inside) { return has_unused_handle(*inside); });
  });
}

// Whether nodes of the graph wait for each other; not for what is inside of them.
bool has_cycle(const CUgraph_st& graph) {
  std::unordered_set<CUgraphNode> done;
  for (std::size_t before = SIZE_MAX; before != done.size();) {
    before = done.size();
    for (const auto& node : graph.nodes) {
      const bool is_free = std::all_of(node->dependencies.begin(), node->dependencies.end(),
                                       [&](const Dependency& dependency) { return done.contains(dependency.node); });
      if (is_free) done.insert(node.get());
    }
  }
  return done.size() != graph.nodes.size();
}

// The events that one launch records: known to their waiters from the launch on, done when the node is.
using LaunchedEvents = std::unordered_map<CUevent, MarkerRef>;

// One launch of a body, as far as it has come: nodes that wait for memory or semaphores hold up those behind them.
class BodyRun {
 public:
  BodyRun(const Body& body, const LaunchedEvents& events)
      : body_(body), events_(events), waits_(body.nodes.size()), dependents_(body.nodes.size()) {
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      waits_[i] = body.dependencies[i].size();
      for (const auto& [position, edge] : body.dependencies[i]) dependents_[position].push_back(i);
      if (waits_[i] == 0) ready_.push_back(i);
    }
  }

  // Runs what can run, in a random legal order; true when all has.
  bool advance() {
    for (;;) {
      std::vector<std::size_t> runnable;  // places in ready_
      for (std::size_t i = 0; i < ready_.size(); ++i) {
        if (can_run(ready_[i])) runnable.push_back(i);
      }
      if (runnable.empty()) return ready_.empty();
      const std::size_t place = runnable[state->random() % runnable.size()];
      const std::size_t position = ready_[place];
      if (!run(position)) continue;
      std::swap(ready_[place], ready_.back());
      ready_.pop_back();
      for (std::size_t dependent : dependents_[position]) {
        if (--waits_[dependent] == 0) ready_.push_back(dependent);
      }
    }
  }

  bool can_advance() const {
    return std::any_of(ready_.begin(), ready_.end(), [&](std::size_t position) { return can_run(position); });
  }

 private:
  bool can_run(std::size_t position) const {
    const auto begun = begun_.find(position);
    if (begun != begun_.end() && begun->second.child != nullptr) return begun->second.child->can_advance();
    const NodeData& node = *body_.nodes[position];
    return step_count(node) == 0 || can_step(node, begun != begun_.end() ? begun->second.steps : 0);
  }
  bool run(std::size_t position);  // false: not over yet

  // Of a child graph, or of operations on memory or semaphores.
  struct Begun {
    std::unique_ptr<BodyRun> child;
    std::size_t steps = 0;  // that are over
  };

  const Body& body_;
  const LaunchedEvents& events_;
  std::vector<std::size_t> waits_, ready_;
  std::vector<std::vector<std::size_t>> dependents_;
  std::unordered_map<std::size_t, Begun> begun_;
};

// Nothing there waits for memory.
void run_body(const Body& body, const LaunchedEvents& events) { BodyRun(body, events).advance(); }

void run_conditional(const NodeData& node, const LaunchedEvents& events) {
  const unsigned& value = node.conditional->value;  // which the bodies set
  switch (node.conditional_type) {
    case CU_GRAPH_COND_TYPE_IF:
      if (value != 0) {
        run_body(*node.bodies[0], events);
      } else if (node.bodies.size() == 2) {
        run_body(*node.bodies[1], events);
      }
      break;
    case CU_GRAPH_COND_TYPE_WHILE:
      while (value != 0) run_body(*node.bodies[0], events);
      break;
    case CU_GRAPH_COND_TYPE_SWITCH:
      if (value < node.bodies.size()) run_body(*node.bodies[value], events);
      break;
  }
}

bool BodyRun::run(std::size_t position) {
  const NodeData& node = *body_.nodes[position];
  if (node.conditional != nullptr) {
    run_conditional(node, events_);
  } else if (!node.bodies.empty()) {
    std::unique_ptr<BodyRun>& child = begun_[position].child;
    if (child == nullptr) child = std::make_unique<BodyRun>(*node.bodies.front(), events_);
    return child->advance();
  } else if (step_count(node) != 0) {
    run_step(node, begun_[position].steps++);
    return begun_[position].steps == step_count(node);
  } else if (node.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    events_.at(node.event)->done = true;
  } else if (node.updatable != nullptr) {
    if (node.updatable->is_enabled) run_node(*node.updatable->data);
  } else if (body_.enabled[position]) {
    run_node(node);
  }
  return true;
}

}  // namespace

std::size_t step_count(const NodeData& node) {
  return node.semaphores != nullptr ? node.semaphores->handles.size() : node.operations.size();
}

bool can_step(const NodeData& node, std::size_t i) {
  return node.semaphores != nullptr ? is_met(*node.semaphores, i) : is_met(node.operations[i]);
}

void run_step(const NodeData& node, std::size_t i) {
  if (node.semaphores != nullptr) {
    run_semaphore(*node.semaphores, i);
  } else {
    run_operation(node.operations[i]);
  }
}

void enqueue_steps_of(CUstream stream, const NodeDataRef& node) {
  for (std::size_t i = 0; i < step_count(*node); ++i) {
    const auto run = [node, i] {
      run_step(*node, i);
      return true;
    };
    enqueue_steps(stream, run, [node, i] { return can_step(*node, i); });
  }
}

void run_node(const NodeData& node) {
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      HostGrid grid{node.grid, node.block, node.shared_bytes, node.kernel->resources.cluster};
      const auto cluster = node.attributes.find(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
      if (cluster != node.attributes.end()) {
        const auto& dim = cluster->second.clusterDim;
        grid.cluster = Dim3(dim.x, dim.y, dim.z);
      }
      node.kernel->host_body(grid, node.arguments.data());
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: run_copy(node.copy); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: run_fill(node.fill); break;
    case CU_GRAPH_NODE_TYPE_HOST: node.function(node.user_data); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:  // what was there is gone
      std::memset(reinterpret_cast<void*>(node.memory->address), 0xA5, node.memory->bytes);
      break;
    default: break;
  }
}

Body make_body(const CUgraph_st& graph) {
  Body body;
  const auto positions = positions_of(graph);
  for (const auto& node : graph.nodes) {
    NodeDataRef data = node->data;
    if (!node->inside.empty()) {
      auto outer = std::make_shared<NodeData>(*data);
      for (const auto& inside : node->inside) outer->bodies.push_back(std::make_shared<const Body>(make_body(*inside)));
      data = std::move(outer);
    }
    body.nodes.push_back(std::move(data));
    body.dependencies.push_back(dependencies_of(*node, positions));
  }
  body.enabled.resize(body.nodes.size(), true);
  return body;
}

CUresult GraphInstantiateWithParams(CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const Lock lock(state->mutex);
  const CUgraph_st* graph = find_graph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  constexpr cuuint64_t kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if ((params->flags & ~kKnown) != 0) return unsupported("the simulator does not have that instantiate flag");
  if (graph->owner != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult refused = check_updatable(*graph); refused != CUDA_SUCCESS) return refused;
  if (const CUresult refused = check_conditional(*graph); refused != CUDA_SUCCESS) return refused;
  if (const CUresult refused = check_memory(*graph); refused != CUDA_SUCCESS) return refused;
  if (has_cycle(*graph)) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    params->hErrNode_out = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (has_unused_handle(*graph)) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    params->hErrNode_out = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUgraphNode wrong = wrong_in_conditional(*graph, false); wrong != nullptr) {
    params->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    params->hErrNode_out = wrong;
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto exec = std::make_unique<CUgraphExec_st>();
  exec->flags = params->flags;
  add_paths(*graph, {}, exec->paths);
  exec->body = make_body(*graph);
  collect_kept(*graph, exec->kept);
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  params->hErrNode_out = nullptr;
  *out = exec.get();
  for_each_node(exec->body, [&](const NodeDataRef& node) {
    if (node->updatable != nullptr) *node->updatable = {exec.get(), node};
    if (node->conditional != nullptr) node->conditional->exec = exec.get();
  });
  set_memory_exec(exec->body, exec.get());
  state->execs.emplace(*out, std::move(exec));
  return CUDA_SUCCESS;
}

CUresult PatchNode(const driver::NodeWord* word, std::uint64_t value) {
  const Lock lock(state->mutex);
  CUgraphDeviceUpdatableNode_st& node = *word->node;
  // A graph that changes its own nodes must have been uploaded; a device would do anything.
  if (node.data == nullptr || !node.is_uploaded) return CUDA_ERROR_INVALID_VALUE;
  if (word->kind == driver::NodeWord::Kind::kEnabled) {
    node.is_enabled = value != 0;
    return CUDA_SUCCESS;
  }
  const NodeData& old = *node.data;
  const auto data = kernel_data(old.kernel, old.context, old.grid, old.block, old.shared_bytes, old.arguments.data());
  data->attributes = old.attributes;
  data->updatable = old.updatable;
  if (word->kind == driver::NodeWord::Kind::kGrid) {
    data->grid = Dim3(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32 & 0xffff),
                      static_cast<std::uint32_t>(value >> 48));
  } else {
    std::memcpy(const_cast<unsigned char*>(data->values.get()) + word->offset, &value, word->bytes);
  }
  node.data = data;
  return CUDA_SUCCESS;
}

CUresult GraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  const Lock lock(state->mutex);
  const CUgraphExec_st* exec = find_exec(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult GraphExecDestroy(CUgraphExec exec) {
  const Lock lock(state->mutex);
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  for (CUgraphDeviceUpdatableNode_st& node : state->updatable_nodes) {
    if (node.exec == exec) node.exec = nullptr;
  }
  for (const auto& [handle, conditional] : state->conditionals) {
    if (conditional->exec == exec) conditional->exec = nullptr;
  }
  CUgraphExec_st* const found = find_exec(exec);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  set_memory_exec(found->body, nullptr);
  state->execs.erase(exec);
  return CUDA_SUCCESS;
}

CUresult GraphUpload(CUgraphExec handle, CUstream stream) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  const CUstream found = find_stream(stream, &result);
  if (found == nullptr) return result;
  if (found->capture != nullptr) {
    invalidate(*found->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUgraphExec_st* const exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  set_uploaded(exec->body);
  return CUDA_SUCCESS;
}

namespace {

// A launch under way, with what it needs.
class Launch {
 public:
  Launch(const Body& body, LaunchedEvents events, std::vector<std::shared_ptr<void>> kept)
      : body_(body), events_(std::move(events)), kept_(std::move(kept)) {}
  bool advance() {
    if (run_ == nullptr) begin();
    if (!run_->advance()) return false;
    set_uploaded(body_);
    return true;
  }
  bool can_advance() const { return run_ == nullptr || run_->can_advance(); }

 private:
  void begin() {
    for_each_node(body_, [](const NodeDataRef& node) {
      if (node->conditional != nullptr && node->conditional->is_assigned) {
        node->conditional->value = node->conditional->at_launch;
      }
    });
    run_ = std::make_unique<BodyRun>(body_, events_);
  }

  Body body_;
  LaunchedEvents events_;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<BodyRun> run_;
};

}  // namespace

CUresult GraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(stream_handle, &result);
  if (stream == nullptr) return result;
  CUgraphExec_st* exec = find_exec(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    invalidate(*stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (const CUresult implicit = check_implicit_dependency(stream); implicit != CUDA_SUCCESS) return implicit;
  const bool frees_itself = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  bool is_unfreed = false;
  for_each_node(exec->body, [&](const NodeDataRef& node) {
    is_unfreed |= node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->memory->is_live && !frees_itself;
  });
  if (is_unfreed) return CUDA_ERROR_INVALID_VALUE;
  for (const NodeDataRef& node : exec->body.nodes) {
    if (const CUresult bodiless = check_body(*node); bodiless != CUDA_SUCCESS) return bodiless;
  }
  // Launches of one executable run one after the other, in whatever streams. Nodes that wait for events
  // hold up the whole launch here: a legal order, if not the only one.
  std::vector<MarkerRef> gates;
  if (exec->last_launch != nullptr) gates.push_back(exec->last_launch);
  LaunchedEvents events;
  for_each_node(exec->body, [&](const NodeDataRef& node) {
    if (node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && node->event->record != nullptr) {
      gates.push_back(node->event->record);
    }
  });
  for_each_node(exec->body, [&](const NodeDataRef& node) {
    if (node->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) return;
    node->event->capture_id = 0;
    node->event->record = events[node->event] = std::make_shared<Marker>();
  });
  for (const auto type : {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE}) {
    for_each_node(exec->body, [&](const NodeDataRef& node) {
      if (node->type == type) node->memory->is_live = type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    });
  }
  exec->last_launch = std::make_shared<Marker>();
  const auto launch = std::make_shared<Launch>(exec->body, std::move(events), exec->kept);
  enqueue_steps(
      stream, [launch] { return launch->advance(); }, [launch] { return launch->can_advance(); }, std::move(gates),
      exec->last_launch);
  return CUDA_SUCCESS;
}

CUresult GraphExecNodeSetParams(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams* params) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  if (exec == nullptr || !state->nodes.contains(node)) return CUDA_ERROR_INVALID_VALUE;
  const auto path = exec->paths.find(node);
  if (path == exec->paths.end()) return CUDA_ERROR_INVALID_VALUE;
  const NodeDataRef current = node_at(exec->body, path->second);
  if (current->updatable != nullptr) return unsupported("the simulator cannot set a device-updatable node by the host");
  if (params->type != current->type || params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_INVALID_VALUE;
  if (current->memory != nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeDataRef data;
  if (const CUresult bad = node_data(*params, &data); bad != CUDA_SUCCESS) return bad;
  if (!can_become(*current, *data)) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    const CUgraph_st& child = *find_graph(params->graph.graph);
    if (check_update(*current->bodies.front(), child, false).reason != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    auto changed = std::make_shared<NodeData>(*data);  // unlike an update of the whole graph, this takes attributes too
    changed->bodies = {std::make_shared<const Body>(make_body(child))};
    replace(exec->body, path->second, std::move(changed));
    return CUDA_SUCCESS;
  }
  data = with_attributes_of(*current, std::move(data));
  if (const CUresult bad = check_attributes(*data); bad != CUDA_SUCCESS) return bad;
  replace(exec->body, path->second, std::move(data));
  return CUDA_SUCCESS;
}

CUresult GraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* kernel) {
  CUgraphNodeParams params = generic_params(*kernel);
  return GraphExecNodeSetParams(exec, node, &params);
}

namespace {

// The position of a node that can be switched off; nullopt for others.
std::optional<std::size_t> find_switchable(CUgraphExec_st* exec, CUgraphNode node) {
  if (exec == nullptr) return std::nullopt;
  const auto path = exec->paths.find(node);
  if (path == exec->paths.end() || path->second.size() != 1) return std::nullopt;
  const std::size_t position = path->second.front();
  const CUgraphNodeType type = exec->body.nodes[position]->type;
  const bool is_switchable =
      type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
  return is_switchable ? std::optional(position) : std::nullopt;
}

}  // namespace

CUresult GraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  const std::optional<std::size_t> position = find_switchable(exec, node);
  if (!position.has_value()) return CUDA_ERROR_INVALID_VALUE;
  exec->body.enabled[*position] = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult GraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned* enabled) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  const std::optional<std::size_t> position = find_switchable(exec, node);
  if (!position.has_value()) return CUDA_ERROR_INVALID_VALUE;
  *enabled = exec->body.enabled[*position] ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult GraphExecUpdate(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo_v1* info) {
  const Lock lock(state->mutex);
  CUgraphExec_st* exec = find_exec(handle);
  const CUgraph_st* graph = find_graph(graph_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_updatable_nodes(*graph) || is_updatable(exec->body)) return CUDA_ERROR_NOT_SUPPORTED;
  const bool uses_priorities = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  const Refusal refusal = check_update(exec->body, *graph, uses_priorities);
  *info = {refusal.reason, refusal.node, nullptr};
  if (refusal.reason != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  set_memory_exec(exec->body, nullptr);
  apply_update(exec->body, *graph);
  set_memory_exec(exec->body, exec);
  std::vector<std::shared_ptr<void>> kept;  // what the template kept is let go, as the driver does
  collect_kept(*graph, kept);
  exec->kept = std::move(kept);
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
