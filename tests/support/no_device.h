// What test programs that are told to use a GPU do without one: say "skipped", or fail where CGRT_REQUIRE_GPU is set.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "cgrt/device/device.h"

namespace cgrt::testing {

// The code to exit with; nullopt when there is a device, or a simulator in force.
inline std::optional<int> exit_code_without_device() {
  const absl::StatusOr<int> devices = device_count();
  if (devices.ok() && *devices > 0) return std::nullopt;
  std::printf("skipped: no CUDA device (%s)\n", std::string(devices.status().message()).c_str());
  return std::getenv("CGRT_REQUIRE_GPU") != nullptr ? 1 : 77;
}

}  // namespace cgrt::testing
