// Every public operation, once: for the fault loop (fault/fault_loop_test.cpp), which runs each again with its 1st,
// 2nd, ... driver call failing, and for the behaviour suite (behaviour/inside_capture_rows.cpp), which runs each inside
// captures.
//
//   OPERATION("Stream::create", { return Stream::create(w.device).status(); });
//
// The body is one operation on the objects of `w`, which are made anew for each run. The list of operations comes
// from the headers: tests/scripts/public_operations.py fails when one is missing. "and::..." are paths that begin
// with a failure, for the fault loop alone.
#pragma once

#include <vector>

#include "cgrt/cgrt.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

// What operations work on.
struct Objects {
  enum class Semaphore { kNone, kTimeline };
  explicit Objects(Semaphore wanted = Semaphore::kNone);

  DeviceRef device{0};
  Stream stream, side;
  Event event, timed;
  DeviceBuffer buffer;
  PinnedBuffer pinned;
  Graph graph;
  KernelNode kernel;
  MemcpyNode copied;
  MemsetNode filled;
  HostNode host;
  EventRecordNode recorded;
  EventWaitNode waited;
  ChildGraphNode child;
  GraphExec exec;
  ExternalSemaphore semaphore;  // empty unless it is wanted, and where there is none (support/test_semaphore.h)
  float* x;

  static constexpr LaunchConfig kConfig{.grid = 1, .block = 64};
  absl::Status step(LaunchTarget target) const { return launch(target, kConfig, scale_kernel(), x, x, 2.0f, 32); }
};

struct Operation {
  const char* name;
  absl::Status (*run)(Objects& w);
  const char* failing_entry = nullptr;  // an entry point that always fails
  absl::Status (*check)() = nullptr;    // a skip (support/skip.h) where this machine cannot run it

  // That it runs on.
  Objects objects() const {
    return Objects(check != nullptr ? Objects::Semaphore::kTimeline : Objects::Semaphore::kNone);
  }
};
std::vector<Operation>& operations();

struct RegisterOperation {
  RegisterOperation(const char* name, absl::Status (*run)(Objects&), const char* failing_entry = nullptr,
                    absl::Status (*check)() = nullptr) {
    operations().push_back({name, run, failing_entry, check});
  }
};

}  // namespace cgrt::testing

// The same while every call of `entry` fails: for paths that begin with a failure.
#define OPERATION_WHILE_FAILING(entry, name, ...)                                  \
  static const cgrt::testing::RegisterOperation CGRT_CONCAT(operation_, __LINE__)( \
      name, []([[maybe_unused]] cgrt::testing::Objects & w) -> absl::Status __VA_ARGS__, entry)

#define OPERATION(name, ...)                                                       \
  static const cgrt::testing::RegisterOperation CGRT_CONCAT(operation_, __LINE__)( \
      name, []([[maybe_unused]] cgrt::testing::Objects & w) -> absl::Status __VA_ARGS__)
