// Cursor: a place in a graph being built, used as a launch target. What is launched into it becomes
// a node that waits for the cursor's frontier, and is the frontier from then on: a cursor is to a
// graph what a stream is to a device.
//
//   Cursor a = graph.cursor();
//   CGRT_RETURN_IF_ERROR(launch(a, config, kernel, x, n));   // a root
//   Cursor b = a;                                            // a copy is a fork
//   CGRT_RETURN_IF_ERROR(launch(a, config, kernel, y, n));
//   CGRT_RETURN_IF_ERROR(launch(b, config, kernel, z, n));   // beside the one before
//   a.join(b);                                               // what comes next waits for both
//
// Valid as long as its graph, the one that this was moved into, or an executable of either. Used by one
// thread at a time. A LaunchTarget made from a cursor refers to it: `launch(graph.cursor(), ...)` is one root, and a
// target that is kept needs a cursor that is kept.
#pragma once

#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/node.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

class Cursor final : public LaunchSink {
 public:
  operator LaunchTarget() { return LaunchTarget::into(*this); }
  LaunchTarget programmatic() { return LaunchTarget::into(*this).programmatic(); }

  // Adds the frontier of `other`, a cursor of the same graph, to this one's. That of another graph is refused by the
  // next node.
  void join(const Cursor& other);

  // A node that does nothing: one frontier for what came from many.
  absl::Status add_empty();
  // See Graph::add_child.
  absl::Status add_child(const Graph& child);
  absl::Status add_child(Graph&& child);
  // See Graph::add_if. What comes next waits for the bodies that run.
  absl::StatusOr<Conditional> add_if(CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_if_else(CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_while(CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_switch(CUgraphConditionalHandle handle, unsigned bodies);

  // What the next node will wait for. Valid until the next node or join.
  Dependencies frontier() const { return frontier_; }

  absl::Status add_kernel(const KernelLaunch& launch, EdgeKind edge) override;
  absl::Status add_copy(const CopyParams& copy) override;
  absl::Status add_fill(const FillParams& fill) override;
  absl::Status add_host(const HostParams& host) override;
  absl::Status add_event_record(EventRef event) override;
  absl::Status add_event_wait(EventRef event) override;
  absl::StatusOr<void*> add_alloc(std::size_t bytes) override;
  absl::Status add_free(void* address) override;
  absl::Status add_memory_ops(absl::Span<const MemoryOp> ops) override;
  absl::Status add_semaphores(SemaphoreAction action, absl::Span<const SemaphoreValue> values) override;
  absl::Status add_captured(absl::FunctionRef<absl::Status(CUstream)> call,
                            CallKey key) override;  // as one child graph
  absl::Status fork_join(absl::Span<const Branch> branches) override;
  absl::Status keep(std::shared_ptr<const void> resource) override;
  absl::StatusOr<CUcontext> context() const override;

 private:
  friend class Graph;
  Cursor(internal::GraphState* state, Dependencies dependencies);
  friend absl::Status capture_into(Cursor& place, StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                                   CaptureOptions options);
  template <class Node>
  void advance(Node node);
  bool is_at(const Cursor& other) const;
  absl::StatusOr<Conditional> add_conditional(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                              unsigned bodies);

  internal::GraphState* state_;  // null: of an empty Graph
  absl::InlinedVector<Dependency, 4> frontier_;
};

}  // namespace cgrt
