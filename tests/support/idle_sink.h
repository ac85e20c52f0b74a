// A target that takes everything and does nothing: tests override what they look at.
#pragma once

#include <memory>

#include "cgrt/cgrt.h"

namespace cgrt::testing {

class IdleSink : public LaunchSink {
 public:
  absl::Status add_kernel(const KernelLaunch&, EdgeKind) override { return absl::OkStatus(); }
  absl::Status add_copy(const CopyParams&) override { return absl::OkStatus(); }
  absl::Status add_fill(const FillParams&) override { return absl::OkStatus(); }
  absl::Status add_host(const HostParams&) override { return absl::OkStatus(); }
  absl::Status add_event_record(EventRef) override { return absl::OkStatus(); }
  absl::Status add_event_wait(EventRef) override { return absl::OkStatus(); }
  absl::StatusOr<void*> add_alloc(std::size_t) override { return nullptr; }
  absl::Status add_free(void*) override { return absl::OkStatus(); }
  absl::Status add_memory_ops(absl::Span<const MemoryOp>) override { return absl::OkStatus(); }
  absl::Status add_semaphores(SemaphoreAction, absl::Span<const SemaphoreValue>) override { return absl::OkStatus(); }
  absl::Status add_captured(absl::FunctionRef<absl::Status(CUstream)>, CallKey) override { return absl::OkStatus(); }
  absl::Status keep(std::shared_ptr<const void>) override { return absl::OkStatus(); }
  absl::StatusOr<CUcontext> context() const override { return ContextRef(DeviceRef(0)).get(); }
};

}  // namespace cgrt::testing
