// Whether the graphs of a bundle run on a machine. Internal to bundle/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/folder.h"

namespace cgrt::internal {

// kFailedPrecondition: the device has another architecture than the code; PTX is for all.
absl::Status check_architecture(const saved::Folder& folder, DeviceRef device);

// kFailedPrecondition: `context` has fewer multiprocessors than the graph was saved with, and a kernel of it needs its
// blocks to run at once; names it.
absl::Status check_multiprocessors(const saved::Machine& machine, const ir::GraphIr& graph, CUcontext context);

// `refused`, which loading code gave, with what an older driver has to do with it.
absl::Status explain_refused_code(const absl::Status& refused, const saved::Machine& machine);

// Limits of a context that were raised to those of a bundle: its stack, the buffer of printf, the heap. Those that are
// higher stay. Destroying it puts them back.
class RaisedLimits {
 public:
  static absl::StatusOr<RaisedLimits> raise(const saved::Machine& machine, CUcontext context);
  RaisedLimits() = default;
  RaisedLimits(RaisedLimits&& other) noexcept : context_(other.context_), before_(std::exchange(other.before_, {})) {}
  RaisedLimits& operator=(RaisedLimits&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(before_, other.before_);
    return *this;
  }
  ~RaisedLimits();

 private:
  CUcontext context_ = nullptr;
  std::vector<std::pair<CUlimit, std::size_t>> before_;
};

}  // namespace cgrt::internal
