#include "cgrt/exec/graph_exec.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/explain_instantiate.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

std::atomic<InstantiateObserver> observer{nullptr};

// As a free does, this would end a capture of this thread, and a global one of any thread.
void destroy_exec(CUgraphExec exec) {
  const RelaxedCaptureMode relaxed;
  driver::destroy_graph_exec(exec);
}

using Attributes = std::vector<internal::NodeAttributes>;

// Parameters of a node of an executable can be set, its attributes cannot.
absl::Status check_attributes(const Attributes& known, KernelNode node, const KernelLaunch& launch) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.node == node.get(); });
  const LaunchAttributes was = found != known.end() ? found->attributes : LaunchAttributes{};
  const LaunchAttributes wanted = launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{};
  if (was == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Kernel \"", launch.kernel->name,
                   "\": the launch attributes (cluster, cooperative, priority, ...) of a node cannot be changed in an "
                   "executable. Instantiate the graph anew."));
}

// The first entry of either list that the other has not; null when both are the same.
const internal::NodeAttributes* lost_attributes(const Attributes& ours, const Attributes& theirs) {
  for (std::size_t i = 0; i < ours.size() || i < theirs.size(); ++i) {
    if (i >= theirs.size()) return &ours[i];
    if (i >= ours.size()) return &theirs[i];
    if (ours[i].path != theirs[i].path) return ours[i].path < theirs[i].path ? &ours[i] : &theirs[i];
    if (ours[i].attributes != theirs[i].attributes) return &theirs[i];
  }
  return nullptr;
}

UpdateReport attributes_changed(const internal::NodeAttributes& lost) {
  UpdateReport report;
  report.rung = UpdateRung::kRefused;
  report.refusal = UpdateRefusal::kAttributesChanged;
  if (lost.node != nullptr) report.node = NodeRef(lost.node);
  report.text = absl::StrCat("The executable cannot take over the other graph: the launch attributes of ",
                             lost.node != nullptr ? describe_node(lost.node) : "a kernel in a child graph", " (node ",
                             absl::StrJoin(lost.path, "/"),
                             ") differ, and CUDA would keep the old ones. Instantiate that graph anew.");
  return report;
}

}  // namespace

struct GraphExec::State {
  std::shared_ptr<internal::GraphState> definition;  // node handles are valid as long as it lives
  UniqueHandle<CUgraphExec, destroy_exec> handle;
  std::vector<internal::NodeAttributes> attributes;  // ascending by path; updates cannot change them
  std::mutex mutex;

  absl::Status set(CUgraphNode node, CUgraphNodeParams& params) {
    return driver::to_status(driver::api().GraphExecNodeSetParams(handle.get(), node, &params),
                             "cuGraphExecNodeSetParams");
  }

  // The attributes inside the child graph node are those of its new child.
  absl::Status set_child_attributes(CUgraphNode node, const std::vector<internal::NodeAttributes>& inside) {
    if (attributes.empty() && inside.empty()) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, internal::nodes_of(definition->handle.get()));
    const auto position = static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
    std::erase_if(attributes, [&](const auto& one) { return one.path.size() > 1 && one.path[0] == position; });
    for (internal::NodeAttributes one : inside) {
      one.path.insert(one.path.begin(), position);
      one.node = nullptr;
      attributes.push_back(std::move(one));
    }
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return absl::OkStatus();
  }
};

GraphExec::GraphExec(std::unique_ptr<State> state) : state_(std::move(state)) {}
GraphExec::GraphExec(GraphExec&&) noexcept = default;
GraphExec& GraphExec::operator=(GraphExec&&) noexcept = default;
GraphExec::~GraphExec() = default;

absl::Status GraphExec::launch(StreamRef stream) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  return driver::to_status(driver::api().GraphLaunch(state_->handle.get(), stream.get()), "cuGraphLaunch");
}

absl::Status GraphExec::upload(StreamRef stream) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  return driver::to_status(driver::api().GraphUpload(state_->handle.get(), stream.get()), "cuGraphUpload");
}

absl::Status GraphExec::set_params(KernelNode node, const KernelLaunch& launch) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (ABSL_PREDICT_FALSE(launch.attributes != nullptr || !state_->attributes.empty())) {
    CGRT_RETURN_IF_ERROR(check_attributes(state_->attributes, node, launch));
  }
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(internal::set_kernel_params(params, state_->definition->context, launch));
  const CUresult result = driver::api().GraphExecKernelNodeSetParams(state_->handle.get(), node.get(), &params);
  if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) return absl::OkStatus();
  return explain_launch(driver::to_status(result, "cuGraphExecKernelNodeSetParams"), launch);
}

absl::Status GraphExec::set_params(MemcpyNode node, const CopyParams& copy) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_copy_params(params, state_->definition->context, copy);
  const absl::Status status = state_->set(node.get(), params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, copy);
}

absl::Status GraphExec::set_params(MemsetNode node, const FillParams& fill) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_fill_params(params, state_->definition->context, fill);
  const absl::Status status = state_->set(node.get(), params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, fill);
}

absl::Status GraphExec::set_params(HostNode node, CUhostFn function, void* data) {
  if (function == nullptr) return absl::InvalidArgumentError("Host node: the function is null.");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_host_params(params, {function, data});
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(EventRecordNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_record_params(params, event);
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(EventWaitNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_wait_params(params, event);
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(ChildGraphNode node, const Graph& child) {
  if (ABSL_PREDICT_FALSE(child.state() == nullptr)) return internal::moved_from("Graph");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child.ref().get();
  const absl::Status status = state_->set(node.get(), params);
  if (ABSL_PREDICT_TRUE(status.ok())) return state_->set_child_attributes(node.get(), child.state()->attributes);
  return driver::annotate(status, "The child graph's topology and kinds of nodes must be those it was made with");
}

absl::Status GraphExec::set_enabled(KernelNode node, NodeState state) { return set_node_enabled(node, state); }
absl::Status GraphExec::set_enabled(MemcpyNode node, NodeState state) { return set_node_enabled(node, state); }
absl::Status GraphExec::set_enabled(MemsetNode node, NodeState state) { return set_node_enabled(node, state); }

absl::Status GraphExec::set_node_enabled(const NodeRef& node, NodeState state) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  return driver::to_status(
      driver::api().GraphNodeSetEnabled(state_->handle.get(), node.get(), state == NodeState::kEnabled ? 1 : 0),
      "cuGraphNodeSetEnabled");
}

absl::StatusOr<NodeState> GraphExec::enabled(const NodeRef& node) const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  unsigned is_enabled = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().GraphNodeGetEnabled(state_->handle.get(), node.get(), &is_enabled), "cuGraphNodeGetEnabled"));
  return is_enabled != 0 ? NodeState::kEnabled : NodeState::kDisabled;
}

absl::StatusOr<UpdateReport> GraphExec::update(const Graph& other) {
  if (ABSL_PREDICT_FALSE(other.state() == nullptr)) return internal::moved_from("Graph");
  collect_released();
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return internal::moved_from("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (ABSL_PREDICT_FALSE(!state_->attributes.empty() || !other.state()->attributes.empty())) {
    if (const auto* lost = lost_attributes(state_->attributes, other.state()->attributes); lost != nullptr) {
      return attributes_changed(*lost);
    }
  }
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = driver::api().GraphExecUpdate(state_->handle.get(), other.ref().get(), &info);
  UpdateReport report;
  if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) return report;
  if (result != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) return driver::to_status(result, "cuGraphExecUpdate");
  report.rung = UpdateRung::kRefused;
  report.refusal = static_cast<UpdateRefusal>(info.result);
  report.text = absl::StrCat("The executable cannot take over the other graph: ", to_string(report.refusal));
  if (info.errorNode != nullptr) {
    report.node = NodeRef(info.errorNode);
    absl::StrAppend(&report.text, ", at ", describe_node(info.errorNode), " of that graph");
  }
  if (report.refusal == UpdateRefusal::kTopologyChanged) {
    const auto ours = internal::nodes_of(state_->definition->handle.get()),
               theirs = internal::nodes_of(other.ref().get());
    if (ours.ok() && theirs.ok()) {
      absl::StrAppend(&report.text, " (", ours->size(), " nodes here, ", theirs->size(), " there)");
    }
  }
  absl::StrAppend(&report.text, ". Instantiate that graph anew.");
  return report;
}

CUgraphExec GraphExec::get() const { return state_ != nullptr ? state_->handle.get() : nullptr; }

absl::StatusOr<GraphExec> instantiate(const Graph& graph, InstantiateFlags flags) {
  if (ABSL_PREDICT_FALSE(graph.state() == nullptr)) return internal::moved_from("Graph");
  collect_released();
  // Unlike launches and updates, this needs a current context (error 201 without).
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(graph.state()->context));
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = static_cast<cuuint64_t>(flags);
  CUgraphExec exec = nullptr;
  const auto try_once = [&] { return driver::api().GraphInstantiateWithParams(&exec, graph.ref().get(), &params); };
  CUresult result = try_once();
  CUdevice device = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && driver::api().CtxGetDevice(&device) == CUDA_SUCCESS) {
    driver::api().DeviceGraphMemTrim(device);  // what graphs freed and the driver kept
    result = try_once();
  }
  if (result != CUDA_SUCCESS) {
    return internal::explain_instantiate(driver::to_status(result, "cuGraphInstantiateWithParams"), graph.ref().get(),
                                         params);
  }
  auto state = std::make_unique<GraphExec::State>();
  state->definition = graph.state();
  state->attributes = graph.state()->attributes;
  state->handle.reset(exec);
  if (const InstantiateObserver observe = observer.load(std::memory_order_acquire); observe != nullptr) observe(graph);
  return GraphExec(std::move(state));
}

void set_instantiate_observer(InstantiateObserver observe) { observer.store(observe, std::memory_order_release); }

const char* to_string(UpdateRefusal refusal) {
  switch (refusal) {
    case UpdateRefusal::kNone: return "none";
    case UpdateRefusal::kUnknown: return "unknown reason";
    case UpdateRefusal::kTopologyChanged: return "topology changed";
    case UpdateRefusal::kNodeTypeChanged: return "node type changed";
    case UpdateRefusal::kFunctionChanged: return "function changed";
    case UpdateRefusal::kParametersChanged: return "parameters changed";
    case UpdateRefusal::kNotSupported: return "not supported";
    case UpdateRefusal::kUnsupportedFunctionChange: return "unsupported function change";
    case UpdateRefusal::kAttributesChanged: return "attributes changed";
  }
  return "unknown reason";
}

}  // namespace cgrt
