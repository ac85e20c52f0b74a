// The kernels that a call launches, recorded instead of run.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cgrt/cgrt.h"
#include "support/catch.h"
#include "support/idle_sink.h"
#include "support/status_matchers.h"

namespace cgrt::testing {

// In their order; each vector has one element of every launch.
class Launches final : public IdleSink {
 public:
  std::vector<LaunchAttributes> attributes;
  std::vector<KernelRef> kernels;
  std::vector<Dim3> grids, blocks;

  absl::Status add_kernel(const KernelLaunch& launch, EdgeKind) override {
    attributes.push_back(launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{});
    kernels.emplace_back(launch.kernel);
    grids.push_back(launch.grid);
    blocks.push_back(launch.block);
    return absl::OkStatus();
  }
};

// What `launch` launches, which has to succeed.
inline Launches launches_of(const std::string& name, absl::FunctionRef<absl::Status(LaunchTarget)> launch) {
  Launches found;
  INFO(name);
  REQUIRE_OK(launch(LaunchTarget::into(found)));
  return found;
}

}  // namespace cgrt::testing
