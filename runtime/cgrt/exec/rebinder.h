// The fourth target: calls that run again on a finished executable. The k-th call meets the k-th node, and what it
// launches differently is noted; nothing changes before all calls have met theirs. Where the graph has alternatives, a
// call meets the first node from there on that can be its, and those that are passed over do not run. Internal to
// exec/.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/target/launch_target.h"

namespace cgrt::internal {

class Rebinder final : public LaunchSink {
 public:
  // `change` is empty, and gets what is to be taken over.
  Rebinder(RebindState& state, CUcontext context, RebindState::Change& change)
      : state_(state), context_(context), change_(change) {
    change_.used.emplace();
  }

  // After the last call: the first failure of one, though the caller may have ignored it; kFailedPrecondition when
  // nodes are left that no call has met.
  absl::Status finish();

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
  absl::Status add_captured(absl::FunctionRef<absl::Status(CUstream)> call, CallKey key) override;
  absl::Status keep(std::shared_ptr<const void> resource) override;
  absl::StatusOr<CUcontext> context() const override { return context_; }

 private:
  // The node that the next call meets, of that type. `call`: "kernel \"scale\"".
  absl::StatusOr<const RebindState::Node*> next(CUgraphNodeType type, const std::string& call);
  // The same where the graph has alternatives: `found`, or a refusal when it is null.
  absl::StatusOr<const RebindState::Node*> meet(absl::StatusOr<const RebindState::Node*> found,
                                                const std::string& call);
  absl::Status leave_out(std::size_t until);
  absl::Status pass_over();  // a call that makes no node
  absl::Status set(const std::string& call, const CUgraphNodeParams& params);
  absl::Status fail(const absl::Status& status);    // of the call that is counted already
  absl::Status refuse(const absl::Status& status);  // of one that is not
  absl::StatusOr<std::shared_ptr<const RebindState::CapturedCall>> capture(
      absl::FunctionRef<absl::Status(CUstream)> call);
  absl::Status add_node(const RebindState::CapturedNode& wanted);

  RebindState& state_;
  CUcontext context_;
  std::size_t position_ = 0;  // of the node that the next call meets, or of the first that it may
  std::size_t calls_ = 0;     // so far; a library's kernels count one by one
  absl::Status failure_;      // the first
  RebindState::Change& change_;
};

}  // namespace cgrt::internal
