// The fault loop: every public operation, run again with its 1st, 2nd, ... driver call failing.
//
//   FAULT("Stream::create", { return Stream::create(w.device).status(); });
//
// The body is one operation on the objects of `w`, which are made before the faults begin. The list
// of operations comes from the headers: tests/scripts/public_operations.py fails when one is missing.
#pragma once

#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

// What operations work on. Made anew for every N.
struct FaultWorld {
  FaultWorld();

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
  float* x;

  static constexpr LaunchConfig kConfig{.grid = 1, .block = 64};
  absl::Status step(LaunchTarget target) const { return launch(target, kConfig, scale_kernel(), x, x, 2.0f, 32); }
};

struct FaultCase {
  const char* operation;
  absl::Status (*run)(FaultWorld& w);
  const char* failing_entry = nullptr;  // an entry point that always fails
};
std::vector<FaultCase>& fault_cases();

struct RegisterFault {
  RegisterFault(const char* operation, absl::Status (*run)(FaultWorld&), const char* failing_entry = nullptr) {
    fault_cases().push_back({operation, run, failing_entry});
  }
};

}  // namespace cgrt::testing

// The same while every call of `entry` fails: for paths that begin with a failure.
#define FAULT_WHILE_FAILING(entry, operation, ...)                         \
  static const cgrt::testing::RegisterFault CGRT_CONCAT(fault_, __LINE__)( \
      operation, []([[maybe_unused]] cgrt::testing::FaultWorld & w) -> absl::Status __VA_ARGS__, entry)

#define FAULT(operation, ...)                                              \
  static const cgrt::testing::RegisterFault CGRT_CONCAT(fault_, __LINE__)( \
      operation, []([[maybe_unused]] cgrt::testing::FaultWorld & w) -> absl::Status __VA_ARGS__)
