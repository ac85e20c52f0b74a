#include "cgrt/exec/graph_exec.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "absl/base/optimization.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/exec_state.h"
#include "cgrt/exec/explain_instantiate.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/exec/update_blockers.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/launch/library.h"
#include "cgrt/memory/memory_op.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/keep.h"

namespace cgrt {
namespace {

std::atomic<InstantiateObserver> observer{nullptr};

bool guards_all() {
  static const bool is_set = std::getenv("CGRT_GUARD_ADDRESSES") != nullptr;
  return is_set;
}

// Of the graph as it is: not where nodes were added since.
absl::StatusOr<bool> has_valid_variants(const internal::GraphState& graph) {
  if (graph.variants.empty()) return false;
  CGRT_ASSIGN_OR_RETURN(const std::size_t count, internal::count_nodes(graph.handle));
  return std::any_of(graph.variants.begin(), graph.variants.end(),
                     [&](const auto& variant) { return variant.positions.back() + 1 == count; });
}

}  // namespace

absl::StatusOr<CUgraphExec> internal::make_exec(const internal::GraphState& graph, InstantiateFlags flags) {
  // Unlike launches and updates, this needs a current context (error 201 without), and ends captures (900).
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(graph.context));
  RelaxedCaptureMode relaxed;
  CGRT_RETURN_IF_ERROR(relaxed.status());
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = static_cast<cuuint64_t>(flags);
  CUgraphExec exec = nullptr;
  const auto try_once = [&] { return driver::api().GraphInstantiateWithParams(&exec, graph.handle, &params); };
  CUresult result = try_once();
  CUdevice device = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && driver::api().CtxGetDevice(&device) == CUDA_SUCCESS) {
    driver::api().DeviceGraphMemTrim(device);  // what graphs freed and the driver kept
    result = try_once();
  }
  if (result == CUDA_SUCCESS) return exec;
  return internal::explain_instantiate(driver::to_status(result, "cuGraphInstantiateWithParams"), graph.handle, params);
}

GraphExec::State::~State() {
  if (rebind != nullptr) rebind->finish();
}

GraphExec::GraphExec() = default;
GraphExec::GraphExec(std::unique_ptr<State> state) : state_(std::move(state)) {}
GraphExec::GraphExec(GraphExec&&) noexcept = default;
GraphExec& GraphExec::operator=(GraphExec&&) noexcept = default;
GraphExec::~GraphExec() = default;

absl::Status GraphExec::launch(StreamRef stream) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(stream.get() == nullptr)) return driver::empty_object("Stream");
  const std::lock_guard lock(state_->mutex);
  if (ABSL_PREDICT_FALSE(state_->guard != nullptr)) CGRT_RETURN_IF_ERROR(state_->guard->check());
  internal::RebindState* const rebind = state_->rebind.get();
  CUgraphExec exec = state_->handle.get();
  if (ABSL_PREDICT_FALSE(rebind != nullptr)) {
    CGRT_ASSIGN_OR_RETURN(exec, rebind->before_launch(exec, stream));
  }
  const CUresult result = driver::api().GraphLaunch(exec, stream.get());
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain_graph_launch(result, state_->definition->handle);
  }
  if (ABSL_PREDICT_FALSE(state_->libraries != nullptr)) return state_->libraries->launched(stream);
  return ABSL_PREDICT_TRUE(rebind == nullptr) ? absl::OkStatus() : rebind->after_launch(stream);
}

absl::Status GraphExec::upload(StreamRef stream) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(stream.get() == nullptr)) return driver::empty_object("Stream");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind != nullptr) return state_->rebind->upload(state_->handle.get(), stream);
  return driver::to_status(driver::api().GraphUpload(state_->handle.get(), stream.get()), "cuGraphUpload");
}

absl::Status GraphExec::set_params(KernelNode node, const KernelLaunch& launch) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind != nullptr) return state_->set_rebindable(node.get(), launch);
  const CUcontext context = state_->definition->context;
  internal::KernelNodeParams params;
  CGRT_RETURN_IF_ERROR(internal::set_kernel_params(params, context, launch));
  if (ABSL_PREDICT_FALSE(launch.attributes != nullptr || !state_->is_plain() || params.function->cluster != Dim3())) {
    CGRT_RETURN_IF_ERROR(state_->check_attributes(node.get(), launch, params.function->cluster));
  }
  std::shared_ptr<const void> library;
  if (ABSL_PREDICT_FALSE(launch.kernel->library != nullptr)) {
    library = internal::library_of(*launch.kernel);
    if (state_->libraries == nullptr) state_->libraries = std::make_unique<internal::UsedLibraries>();
    CGRT_RETURN_IF_ERROR(state_->libraries->prepare(context, library));
  }
  const CUresult result = driver::api().GraphExecKernelNodeSetParams(state_->handle.get(), node.get(), &params.driver);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuGraphExecKernelNodeSetParams"), launch, context);
  }
  if (ABSL_PREDICT_FALSE(library != nullptr)) state_->libraries->set(node.get(), library);
  ++state_->counts.set;
  if (ABSL_PREDICT_TRUE(state_->guard == nullptr)) return absl::OkStatus();
  return state_->guard->set(node.get(), internal::to_params(params.driver));
}

absl::Status GraphExec::set_params(MemcpyNode node, const CopyParams& copy) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_copy_params(params, state_->definition->context, copy);
  const absl::Status status = state_->set(node.get(), params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, copy);
}

absl::Status GraphExec::set_params(MemsetNode node, const FillParams& fill) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_fill_params(params, state_->definition->context, fill);
  const absl::Status status = state_->set(node.get(), params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, fill);
}

absl::Status GraphExec::set_params(HostNode node, CUhostFn function, void* data) {
  if (function == nullptr) return absl::InvalidArgumentError("Host node: the function is null.");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_host_params(params, {function, data});
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(EventRecordNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(event.get() == nullptr)) return driver::empty_object("Event");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_record_params(params, event);
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(EventWaitNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(event.get() == nullptr)) return driver::empty_object("Event");
  const std::lock_guard lock(state_->mutex);
  CUgraphNodeParams params{};
  internal::set_wait_params(params, event);
  return state_->set(node.get(), params);
}

absl::Status GraphExec::set_params(BatchMemOpNode node, absl::Span<const MemoryOp> ops) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  CGRT_RETURN_IF_ERROR(internal::check_for_node(ops));
  const std::lock_guard lock(state_->mutex);
  std::vector<CUstreamBatchMemOpParams> operations = internal::to_driver(ops);
  CUgraphNodeParams params{};
  internal::set_memory_op_params(params, state_->definition->context, operations);
  const absl::Status status = state_->set(node.get(), params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, ops);
}

absl::Status GraphExec::set_params(SemaphoreSignalNode node, absl::Span<const SemaphoreValue> values) {
  return set_semaphores(node.get(), SemaphoreAction::kSignal, values);
}

absl::Status GraphExec::set_params(SemaphoreWaitNode node, absl::Span<const SemaphoreValue> values) {
  return set_semaphores(node.get(), SemaphoreAction::kWait, values);
}

absl::Status GraphExec::set_semaphores(CUgraphNode node, SemaphoreAction action,
                                       absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  CGRT_RETURN_IF_ERROR(internal::check(values));
  const std::lock_guard lock(state_->mutex);
  internal::SemaphoreArrays arrays = internal::to_driver(action, values);
  CUgraphNodeParams params{};
  internal::set_semaphore_params(params, action, arrays);
  const absl::Status status = state_->set(node, params);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : internal::explain(status, action, values);
}

absl::Status GraphExec::set_params(ChildGraphNode node, const Graph& child) {
  if (ABSL_PREDICT_FALSE(child.state() == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(child.state()->has_alternatives)) return internal::alternatives_not_rebindable();
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind != nullptr) return internal::rebindable_child();
  // What can fail comes first: after the driver's call the table must follow.
  CGRT_RETURN_IF_ERROR(state_->complete_table());
  CGRT_ASSIGN_OR_RETURN(std::vector<internal::NodeAttributes> attributes, internal::attributes_in(*child.state()));
  std::shared_ptr<const std::vector<std::shared_ptr<const void>>> libraries;
  if (auto used = internal::libraries_in(*child.state()); !used.empty()) {
    libraries = std::make_shared<const std::vector<std::shared_ptr<const void>>>(std::move(used));
    if (state_->libraries == nullptr) state_->libraries = std::make_unique<internal::UsedLibraries>();
  }
  if (state_->libraries != nullptr) {
    CGRT_RETURN_IF_ERROR(state_->libraries->prepare(state_->definition->context, libraries));
  }
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child.ref().get();
  const absl::Status status = driver::to_status(
      driver::api().GraphExecNodeSetParams(state_->current(), node.get(), &params), "cuGraphExecNodeSetParams");
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    return driver::annotate(status, "The child graph's topology and kinds of nodes must be those it was made with");
  }
  if (state_->libraries != nullptr) state_->libraries->set(node.get(), libraries);
  ++state_->counts.set;
  state_->set_child_attributes(node.get(), std::move(attributes));
  return ABSL_PREDICT_TRUE(state_->guard == nullptr) ? absl::OkStatus() : state_->guard->set(node.get(), params);
}

absl::Status GraphExec::set_enabled(KernelNode node, NodeState state) { return set_node_enabled(node, state); }
absl::Status GraphExec::set_enabled(MemcpyNode node, NodeState state) { return set_node_enabled(node, state); }
absl::Status GraphExec::set_enabled(MemsetNode node, NodeState state) { return set_node_enabled(node, state); }

absl::Status GraphExec::set_node_enabled(const NodeRef& node, NodeState state) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  const bool is_enabled = state == NodeState::kEnabled;
  if (internal::RebindState* const rebind = state_->rebind.get(); rebind != nullptr) {
    const internal::RebindState::Node* const ours = rebind->find(node.get());
    if (ours != nullptr && internal::can_be_left_out(ours->type)) {
      internal::RebindState::Change change;
      rebind->change_enabled(*ours, is_enabled, change);
      return state_->take(std::move(change));
    }
    if (ours != nullptr && !internal::can_be_left_out(ours->type)) return internal::rebindable_memset();
  }
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().GraphNodeSetEnabled(state_->current(), node.get(), is_enabled ? 1 : 0), "cuGraphNodeSetEnabled"));
  if (ABSL_PREDICT_FALSE(state_->guard != nullptr)) state_->guard->set_enabled(node.get(), is_enabled);
  return absl::OkStatus();
}

absl::StatusOr<NodeState> GraphExec::enabled(const NodeRef& node) const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (const internal::RebindState* const rebind = state_->rebind.get(); rebind != nullptr) {
    const internal::RebindState::Node* const ours = rebind->find(node.get());
    if (ours != nullptr) {
      return rebind->is_enabled(*ours) ? NodeState::kEnabled : NodeState::kDisabled;
    }
  }
  unsigned is_enabled = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetEnabled(state_->current(), node.get(), &is_enabled),
                                         "cuGraphNodeGetEnabled"));
  return is_enabled != 0 ? NodeState::kEnabled : NodeState::kDisabled;
}

absl::StatusOr<std::optional<UpdateReport>> GraphExec::refusal_of(const Graph& other) {
  if (ABSL_PREDICT_FALSE(other.state() == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  if (ABSL_PREDICT_FALSE(other.state()->has_alternatives)) return internal::alternatives_not_rebindable();
  collect_released();
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind != nullptr) return internal::rebindable_update();
  std::optional<UpdateReport> refusal;
  CGRT_RETURN_IF_ERROR(state_->update(other, refusal));
  if (!refusal.has_value()) ++state_->counts.updated;
  return refusal;
}

absl::StatusOr<std::vector<UpdateBlocker>> GraphExec::find_blockers(const Graph& other) {
  if (ABSL_PREDICT_FALSE(other.state() == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind != nullptr) return internal::rebindable_update();
  if (state_->edits != state_->definition->edits_of(state_->node_count)) {
    return absl::FailedPreconditionError(
        "Nodes or edges of the graph that the executable was made from have been removed or added since, so that it no "
        "longer says what the executable is. Ask before the graph is edited, or instantiate it again.");
  }
  CGRT_RETURN_IF_ERROR(state_->complete_table());
  return internal::find_blockers(*state_->definition, state_->node_count, state_->table.attributes, state_->flags,
                                 *other.state());
}

UpdateCounts GraphExec::take_counts() {
  if (state_ == nullptr) return {};
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->counts, UpdateCounts{});
}

absl::Status GraphExec::update(const Graph& other) {
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, try_update(other));
  return ABSL_PREDICT_TRUE(report.rung == UpdateRung::kWholeGraph) ? absl::OkStatus()
                                                                   : absl::FailedPreconditionError(report.text);
}

absl::StatusOr<UpdateReport> GraphExec::try_update(const Graph& other) {
  CGRT_ASSIGN_OR_RETURN(std::optional<UpdateReport> refusal, refusal_of(other));
  if (ABSL_PREDICT_TRUE(!refusal.has_value())) return UpdateReport{};
  const std::lock_guard lock(state_->mutex);
  ++state_->counts.refused;
  return *std::move(refusal);
}

absl::StatusOr<UpdateReport> GraphExec::update_or_instantiate(const Graph& other) {
  CGRT_ASSIGN_OR_RETURN(std::optional<UpdateReport> refusal, refusal_of(other));
  if (!refusal.has_value()) return UpdateReport{};
  // Not under the lock: what graphs kept is let go, and the observer is called.
  CGRT_ASSIGN_OR_RETURN(GraphExec fresh, instantiate(other, state_->flags));
  const std::lock_guard lock(state_->mutex);
  if (state_->guard != nullptr && fresh.state_->guard == nullptr) CGRT_RETURN_IF_ERROR(fresh.guard_addresses());
  state_->swap(*fresh.state_);
  ++state_->counts.instantiated;
  refusal->rung = UpdateRung::kInstantiated;
  return *std::move(refusal);
}

absl::Status GraphExec::guard_addresses() {
  if (state_ == nullptr) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->definition->handle == nullptr) {
    return absl::FailedPreconditionError(
        "The graph that the executable was made from is gone with the node that it was in, so that its addresses are "
        "not known.");
  }
  CGRT_ASSIGN_OR_RETURN(internal::AddressGuard guard, internal::AddressGuard::create(*state_->definition));
  if (state_->rebind != nullptr) CGRT_RETURN_IF_ERROR(guard.follow(*state_->rebind));
  state_->guard = std::make_unique<internal::AddressGuard>(std::move(guard));
  return absl::OkStatus();
}

CUgraphExec GraphExec::get() const {
  if (state_ == nullptr) return nullptr;
  const std::lock_guard lock(state_->mutex);
  return state_->current();
}

CUgraphExec GraphExec::release() && {
  const std::unique_ptr<State> state = std::move(state_);
  if (state == nullptr) return nullptr;
  CUgraphExec exec = state->handle.release();
  return state->rebind != nullptr ? state->rebind->release(exec) : exec;
}

absl::StatusOr<GraphExec> GraphExec::adopt(CUgraphExec exec, const Graph& graph) {
  if (exec == nullptr) return absl::InvalidArgumentError("GraphExec::adopt: the executable is null.");
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  cuuint64_t flags = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphExecGetFlags(exec, &flags), "cuGraphExecGetFlags"));
  auto state = std::make_unique<State>();
  CGRT_RETURN_IF_ERROR(state->read_definition(graph));
  state->flags = static_cast<InstantiateFlags>(flags);
  state->handle.reset(exec);
  return GraphExec(std::move(state));
}

absl::StatusOr<GraphExec> instantiate(const Graph& graph, InstantiateFlags flags) {
  CGRT_RETURN_IF_ERROR(internal::check_graph(graph));
  if (ABSL_PREDICT_FALSE(graph.state()->has_alternatives)) return internal::alternatives_not_rebindable();
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, GraphExec::make(graph, flags, false));
  if (ABSL_PREDICT_FALSE(guards_all())) CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  return exec;
}

absl::StatusOr<GraphExec> GraphExec::make(const Graph& graph, InstantiateFlags flags, bool has_variants) {
  collect_released();
  auto state = std::make_unique<State>();
  CGRT_RETURN_IF_ERROR(state->read_definition(graph));
  state->flags = flags;
  if (!has_variants) {
    CGRT_ASSIGN_OR_RETURN(const CUgraphExec exec, internal::make_exec(*graph.state(), flags));
    state->handle.reset(exec);
  }
  if (const InstantiateObserver observe = observer.load(std::memory_order_acquire); observe != nullptr) observe(graph);
  return GraphExec(std::move(state));
}

absl::StatusOr<GraphExec> instantiate_rebindable(Graph& graph, InstantiateFlags flags) {
  CGRT_RETURN_IF_ERROR(internal::check_graph(graph));
  RelaxedCaptureMode relaxed;  // device memory is allocated, which would end captures
  CGRT_RETURN_IF_ERROR(relaxed.status());
  CGRT_RETURN_IF_ERROR(internal::check_rebindable(*graph.state()));
  CGRT_ASSIGN_OR_RETURN(const bool has_variants, has_valid_variants(*graph.state()));
  CGRT_ASSIGN_OR_RETURN(internal::RebindState rebind,
                        has_variants ? internal::RebindState::create_of_variants(*graph.state(), flags)
                                     : internal::RebindState::create(*graph.state()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, GraphExec::make(graph, flags, has_variants));
  graph.state()->has_rebindable = true;
  CGRT_RETURN_IF_ERROR(rebind.begin(exec.state_->handle.get()));
  exec.state_->rebind = std::make_unique<internal::RebindState>(std::move(rebind));
  if (ABSL_PREDICT_FALSE(guards_all())) CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  return exec;
}

void set_instantiate_observer(InstantiateObserver observe) { observer.store(observe, std::memory_order_release); }

}  // namespace cgrt
