#include "cgrt/graph/graph.h"

#include <mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/launch/host.h"
#include "cgrt/memory/memory_op.h"

namespace cgrt {

absl::StatusOr<Graph> Graph::create(ContextRef context) {
  collect_released();
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&graph, 0), "cuGraphCreate"));
  return Graph(std::make_shared<internal::GraphState>(graph, handle));
}

absl::StatusOr<Graph> Graph::adopt(CUgraph graph, ContextRef context) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  if (graph == nullptr) return absl::InvalidArgumentError("Graph::adopt: the graph is null.");
  Graph adopted(std::make_shared<internal::GraphState>(graph, handle));
  adopted.state_->knowledge.know_nothing();
  return adopted;
}

CUgraph Graph::release() && {
  const std::shared_ptr<internal::GraphState> state = std::move(state_);
  return state != nullptr ? state->release() : nullptr;
}

absl::StatusOr<KernelNode> Graph::add_kernel(Dependencies dependencies, const KernelLaunch& launch) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_kernel(*state_, dependencies, launch);
}

absl::StatusOr<MemcpyNode> Graph::add_copy(Dependencies dependencies, void* destination, const void* source,
                                           std::size_t bytes) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_copy(*state_, dependencies, {destination, source, bytes});
}

absl::StatusOr<MemsetNode> Graph::add_fill(Dependencies dependencies, const FillParams& fill) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_fill(*state_, dependencies, fill);
}

absl::StatusOr<EmptyNode> Graph::add_empty(Dependencies dependencies) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_empty(*state_, dependencies);
}

absl::StatusOr<MemcpyNode> Graph::add_copy(Dependencies dependencies, const CopyParams& copy) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_copy(*state_, dependencies, copy);
}

absl::StatusOr<HostNode> Graph::add_host(Dependencies dependencies, CUhostFn function, void* data) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_host(*state_, dependencies, {function, data});
}

absl::StatusOr<HostNode> Graph::add_host(Dependencies dependencies, std::function<void()> function) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  Cursor place = cursor(dependencies);
  CGRT_RETURN_IF_ERROR(launch_host(place, std::move(function)));
  return HostNode(place.frontier().front().node.get());
}

absl::StatusOr<EventRecordNode> Graph::add_event_record(Dependencies dependencies, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_event_record(*state_, dependencies, event);
}

absl::StatusOr<EventWaitNode> Graph::add_event_wait(Dependencies dependencies, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_event_wait(*state_, dependencies, event);
}

absl::StatusOr<GraphAllocation> Graph::add_alloc(Dependencies dependencies, std::size_t bytes) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_alloc(*state_, dependencies, bytes);
}

absl::StatusOr<MemFreeNode> Graph::add_free(Dependencies dependencies, void* address) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_free(*state_, dependencies, address);
}

absl::StatusOr<BatchMemOpNode> Graph::add_memory_ops(Dependencies dependencies, absl::Span<const MemoryOp> ops) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_memory_ops(*state_, dependencies, ops);
}

absl::StatusOr<SemaphoreSignalNode> Graph::add_semaphore_signal(Dependencies dependencies,
                                                                absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const NodeRef node,
                        internal::add_semaphores(*state_, dependencies, SemaphoreAction::kSignal, values));
  return SemaphoreSignalNode(node.get());
}

absl::StatusOr<SemaphoreWaitNode> Graph::add_semaphore_wait(Dependencies dependencies,
                                                            absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const NodeRef node,
                        internal::add_semaphores(*state_, dependencies, SemaphoreAction::kWait, values));
  return SemaphoreWaitNode(node.get());
}

absl::StatusOr<ChildGraphNode> Graph::add_child(Dependencies dependencies, const Graph& child) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(child.state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_child(*state_, dependencies, child.state_, internal::ChildOwnership::kCopy);
}

absl::StatusOr<ChildGraphNode> Graph::add_child(Dependencies dependencies, Graph&& child) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(child.state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(ChildGraphNode node,
                        internal::add_child(*state_, dependencies, child.state_, internal::ChildOwnership::kMove));
  child.state_ = nullptr;
  return node;
}

absl::Status Graph::remove(const NodeRef& node) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::remove_node(*state_, node.get());
}

absl::Status Graph::add_edge(const Dependency& from, const NodeRef& to) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_edge(*state_, from, to.get());
}

absl::Status Graph::remove_edge(const NodeRef& from, const NodeRef& to) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::remove_edge(*state_, from.get(), to.get());
}

absl::Status Graph::set_params(KernelNode node, const KernelLaunch& launch) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::set_params(*state_, node.get(), launch);
}

absl::Status Graph::set_params(MemcpyNode node, const CopyParams& copy) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CUgraphNodeParams params{};
  internal::set_copy_params(params, state_->context, copy);
  return internal::explain(internal::set_params(*state_, node.get(), params), copy);
}

absl::Status Graph::set_params(MemsetNode node, const FillParams& fill) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CUgraphNodeParams params{};
  internal::set_fill_params(params, state_->context, fill);
  return internal::explain(internal::set_params(*state_, node.get(), params), fill);
}

absl::Status Graph::set_params(HostNode node, CUhostFn function, void* data) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (function == nullptr) return absl::InvalidArgumentError("Host node: the function is null.");
  CUgraphNodeParams params{};
  internal::set_host_params(params, {function, data});
  return internal::set_params(*state_, node.get(), params);
}

absl::Status Graph::set_params(EventRecordNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (event.get() == nullptr) return driver::empty_object("Event");
  CUgraphNodeParams params{};
  internal::set_record_params(params, event);
  return internal::set_params(*state_, node.get(), params);
}

absl::Status Graph::set_params(EventWaitNode node, EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (event.get() == nullptr) return driver::empty_object("Event");
  CUgraphNodeParams params{};
  internal::set_wait_params(params, event);
  return internal::set_params(*state_, node.get(), params);
}

absl::Status Graph::set_params(BatchMemOpNode node, absl::Span<const MemoryOp> ops) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_RETURN_IF_ERROR(internal::check_for_node(ops));
  std::vector<CUstreamBatchMemOpParams> operations = internal::to_driver(ops);
  CUgraphNodeParams params{};
  internal::set_memory_op_params(params, state_->context, operations);
  const absl::Status status = internal::set_params(*state_, node.get(), params);
  return status.ok() ? status : internal::explain(status, ops);
}

absl::Status Graph::set_params(SemaphoreSignalNode node, absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::set_semaphores(*state_, node.get(), SemaphoreAction::kSignal, values);
}

absl::Status Graph::set_params(SemaphoreWaitNode node, absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::set_semaphores(*state_, node.get(), SemaphoreAction::kWait, values);
}

absl::StatusOr<Graph> Graph::clone() const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  collect_released();
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<internal::GraphState> copy, internal::clone_graph(*state_));
  for (const internal::GraphState::Variant& variant : state_->variants) {
    CGRT_ASSIGN_OR_RETURN(const Graph of_variant, Graph(variant.state).clone());
    copy->variants.push_back({of_variant.state(), variant.positions});
  }
  return Graph(std::move(copy));
}

absl::StatusOr<NodeRef> Graph::find_in_clone(const NodeRef& original) const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CUgraphNode node = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeFindInClone(&node, original.get(), state_->handle),
                                         "cuGraphNodeFindInClone"));
  return NodeRef(node);
}

absl::StatusOr<CUgraphConditionalHandle> Graph::add_conditional_handle(std::optional<unsigned> at_launch) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CUgraphConditionalHandle handle = 0;
  const std::unique_lock beside_no_first_update = internal::hold_completion();
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().GraphConditionalHandleCreate(&handle, state_->handle, state_->context, at_launch.value_or(0),
                                                 at_launch.has_value() ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0),
      "cuGraphConditionalHandleCreate"));
  state_->conditional_handles.push_back({handle, at_launch});
  return handle;
}

absl::StatusOr<Conditional> Graph::add_if(Dependencies dependencies, CUgraphConditionalHandle handle) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_conditional(*state_, dependencies, handle, CU_GRAPH_COND_TYPE_IF, 1);
}

absl::StatusOr<Conditional> Graph::add_if_else(Dependencies dependencies, CUgraphConditionalHandle handle) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_conditional(*state_, dependencies, handle, CU_GRAPH_COND_TYPE_IF, 2);
}

absl::StatusOr<Conditional> Graph::add_while(Dependencies dependencies, CUgraphConditionalHandle handle) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_conditional(*state_, dependencies, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
}

absl::StatusOr<Conditional> Graph::add_switch(Dependencies dependencies, CUgraphConditionalHandle handle,
                                              unsigned bodies) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::add_conditional(*state_, dependencies, handle, CU_GRAPH_COND_TYPE_SWITCH, bodies);
}

Cursor Graph::cursor() { return Cursor(state_.get(), {}); }
Cursor Graph::cursor(Dependencies dependencies) { return Cursor(state_.get(), dependencies); }

absl::Status Graph::keep(std::shared_ptr<const void> resource) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::keep(*state_, std::move(resource));
}

absl::StatusOr<std::size_t> Graph::node_count() const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::count_nodes(state_->handle);
}

GraphRef Graph::ref() const { return GraphRef(state_ != nullptr ? state_->handle : nullptr); }

}  // namespace cgrt
