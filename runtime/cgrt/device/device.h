// DeviceRef: a CUDA device by its ordinal.
//
//   CGRT_ASSIGN_OR_RETURN(int devices, device_count());
//   CGRT_ASSIGN_OR_RETURN(std::string name, DeviceRef(0).name());
//
// A value; thread-safe. Nothing here needs or makes a context. kUnavailable, with what to do, on a machine without a
// driver or a device.
#pragma once

#include <cuda.h>

#include <string>

#include "absl/status/statusor.h"

namespace cgrt {

class DeviceRef {
 public:
  explicit constexpr DeviceRef(int ordinal) : ordinal_(ordinal) {}

  constexpr int ordinal() const { return ordinal_; }

  // kInvalidArgument when the process sees fewer devices.
  absl::StatusOr<CUdevice> get() const;
  absl::StatusOr<std::string> name() const;
  // kInvalidArgument for an attribute that the driver does not know.
  absl::StatusOr<int> attribute(CUdevice_attribute attribute) const;

  bool operator==(const DeviceRef&) const = default;

 private:
  int ordinal_;
};

// Devices that this process may use.
absl::StatusOr<int> device_count();

// As the driver says it: 13000 is CUDA 13.0.
absl::StatusOr<int> driver_version();

// True while a Simulator is in force.
bool is_simulated();

}  // namespace cgrt
