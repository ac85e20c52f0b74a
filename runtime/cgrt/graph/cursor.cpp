#include "cgrt/graph/cursor.h"

#include <algorithm>

#include "cgrt/base/status_macros.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt {

Cursor::Cursor(internal::GraphState& state, Dependencies dependencies)
    : state_(&state), frontier_(dependencies.begin(), dependencies.end()) {}

void Cursor::advance(NodeRef node) {
  frontier_.resize(1, Dependency(node));
  frontier_.front() = Dependency(node);
}

void Cursor::join(const Cursor& other) {
  for (const Dependency& theirs : other.frontier_) {
    const bool waited_for = std::any_of(frontier_.begin(), frontier_.end(),
                                        [&](const Dependency& ours) { return ours.node == theirs.node; });
    if (!waited_for) frontier_.push_back(theirs);
  }
  after_kernel_ = after_kernel_ && frontier_.size() == 1;
}

absl::Status Cursor::add_kernel(const KernelLaunch& launch, EdgeKind edge) {
  // As in a stream: after anything but a kernel the dependency is a full one.
  if (edge == EdgeKind::kProgrammatic && after_kernel_) frontier_.front().kind = EdgeKind::kProgrammatic;
  absl::StatusOr<KernelNode> node = internal::add_kernel(*state_, frontier_, launch);
  if (!node.ok()) {
    if (after_kernel_) frontier_.front().kind = EdgeKind::kFull;
    return std::move(node).status();
  }
  advance(*node);
  after_kernel_ = true;
  return absl::OkStatus();
}

absl::Status Cursor::add_copy(const CopyParams& copy) {
  CGRT_ASSIGN_OR_RETURN(MemcpyNode node, internal::add_copy(*state_, frontier_, copy));
  advance(node);
  after_kernel_ = false;
  return absl::OkStatus();
}

absl::Status Cursor::add_fill(const FillParams& fill) {
  CGRT_ASSIGN_OR_RETURN(MemsetNode node, internal::add_fill(*state_, frontier_, fill));
  advance(node);
  after_kernel_ = false;
  return absl::OkStatus();
}

absl::Status Cursor::add_empty() {
  CGRT_ASSIGN_OR_RETURN(EmptyNode node, internal::add_empty(*state_, frontier_));
  advance(node);
  after_kernel_ = false;
  return absl::OkStatus();
}

absl::StatusOr<CUcontext> Cursor::context() const { return state_->context; }

}  // namespace cgrt
