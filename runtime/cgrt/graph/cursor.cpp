#include "cgrt/graph/cursor.h"

#include <algorithm>
#include <utility>

#include "absl/base/optimization.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt {

Cursor::Cursor(internal::GraphState* state, Dependencies dependencies)
    : state_(state), frontier_(dependencies.begin(), dependencies.end()) {}

// For the type of node that it is: a Dependency made before is read back too early, for 4 ns.
template <class Node>
void Cursor::advance(Node node) {
  if (frontier_.size() != 1) {
    frontier_.clear();
    frontier_.emplace_back(node);
  } else {
    frontier_.front() = Dependency(node);
  }
}

void Cursor::join(const Cursor& other) {
  for (const Dependency& theirs : other.frontier_) {
    const auto ours = std::find_if(frontier_.begin(), frontier_.end(),
                                   [&](const Dependency& one) { return one.node == theirs.node; });
    if (ours == frontier_.end()) {
      frontier_.push_back(theirs);
    } else if (theirs.kind == EdgeKind::kFull) {
      ours->kind = EdgeKind::kFull;  // the stronger of the two
    }
  }
}

absl::Status Cursor::add_kernel(const KernelLaunch& launch, EdgeKind edge) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  // As in a stream: after anything but a kernel, and for code that cannot wait, the dependency is a full one.
  const bool one_kernel = frontier_.size() == 1 && frontier_.front().is_kernel;
  const driver::ResolvedFunction* function = nullptr;
  if (edge == EdgeKind::kProgrammatic && one_kernel &&
      driver::resolve_function(*launch.kernel, state_->context, &function) == CUDA_SUCCESS && function->can_wait) {
    Dependency before = frontier_.front();
    before.kind = EdgeKind::kProgrammatic;
    CGRT_ASSIGN_OR_RETURN(KernelNode node, internal::add_kernel(*state_, {&before, 1}, launch));
    advance(node);
    return absl::OkStatus();
  }
  CGRT_ASSIGN_OR_RETURN(KernelNode node, internal::add_kernel(*state_, frontier_, launch));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_copy(const CopyParams& copy) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(MemcpyNode node, internal::add_copy(*state_, frontier_, copy));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_fill(const FillParams& fill) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(MemsetNode node, internal::add_fill(*state_, frontier_, fill));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_empty() {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(EmptyNode node, internal::add_empty(*state_, frontier_));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_child(const Graph& child) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(child.state() == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(ChildGraphNode node,
                        internal::add_child(*state_, frontier_, child.state(), internal::ChildOwnership::kCopy));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_child(Graph&& child) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  if (ABSL_PREDICT_FALSE(child.state() == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(ChildGraphNode node,
                        internal::add_child(*state_, frontier_, child.state(), internal::ChildOwnership::kMove));
  const Graph moved = std::move(child);
  advance(node);
  return absl::OkStatus();
}

absl::StatusOr<Conditional> Cursor::add_conditional(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                                    unsigned bodies) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(Conditional conditional, internal::add_conditional(*state_, frontier_, handle, type, bodies));
  advance(conditional.node);
  return conditional;
}

absl::StatusOr<Conditional> Cursor::add_if(CUgraphConditionalHandle handle) {
  return add_conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
}

absl::StatusOr<Conditional> Cursor::add_if_else(CUgraphConditionalHandle handle) {
  return add_conditional(handle, CU_GRAPH_COND_TYPE_IF, 2);
}

absl::StatusOr<Conditional> Cursor::add_while(CUgraphConditionalHandle handle) {
  return add_conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1);
}

absl::StatusOr<Conditional> Cursor::add_switch(CUgraphConditionalHandle handle, unsigned bodies) {
  return add_conditional(handle, CU_GRAPH_COND_TYPE_SWITCH, bodies);
}

absl::Status Cursor::add_host(const HostParams& host) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(HostNode node, internal::add_host(*state_, frontier_, host));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_event_record(EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(EventRecordNode node, internal::add_event_record(*state_, frontier_, event));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_event_wait(EventRef event) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(EventWaitNode node, internal::add_event_wait(*state_, frontier_, event));
  advance(node);
  return absl::OkStatus();
}

absl::StatusOr<void*> Cursor::add_alloc(std::size_t bytes) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation allocation, internal::add_alloc(*state_, frontier_, bytes));
  advance(allocation.node);
  return allocation.address;
}

absl::Status Cursor::add_free(void* address) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(MemFreeNode node, internal::add_free(*state_, frontier_, address));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_memory_ops(absl::Span<const MemoryOp> ops) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(BatchMemOpNode node, internal::add_memory_ops(*state_, frontier_, ops));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_semaphores(SemaphoreAction action, absl::Span<const SemaphoreValue> values) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const NodeRef node, internal::add_semaphores(*state_, frontier_, action, values));
  advance(node);
  return absl::OkStatus();
}

absl::Status Cursor::add_captured(absl::FunctionRef<absl::Status(CUstream)> call, CallKey) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(state_->context));
  CGRT_ASSIGN_OR_RETURN(Graph captured, internal::capture_call(state_->context, stream, call));
  return add_child(std::move(captured));
}

bool Cursor::is_at(const Cursor& other) const {
  return std::equal(frontier_.begin(), frontier_.end(), other.frontier_.begin(), other.frontier_.end(),
                    [](const Dependency& a, const Dependency& b) { return a.node == b.node; });
}

absl::Status Cursor::fork_join(absl::Span<const Branch> branches) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  const Cursor fork = *this;
  absl::Status status;
  for (const Branch& branch : branches) {
    Cursor place = fork;
    status = branch(place);
    // A branch that made nothing ends where it began: whoever waits for another one waits for that as well.
    if (!place.is_at(fork)) {
      if (is_at(fork)) frontier_.clear();
      join(place);
    }
    if (!status.ok()) break;
  }
  return status;
}

absl::Status Cursor::keep(std::shared_ptr<const void> resource) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return internal::keep(*state_, std::move(resource));
}

absl::StatusOr<CUcontext> Cursor::context() const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("Graph");
  return state_->context;
}

}  // namespace cgrt
