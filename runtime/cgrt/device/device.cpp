#include "cgrt/device/device.h"

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt {

absl::StatusOr<CUdevice> DeviceRef::get() const {
  CUdevice device = 0;
  const CUresult result = driver::api().DeviceGet(&device, ordinal_);
  if (result == CUDA_ERROR_INVALID_DEVICE) {
    CGRT_ASSIGN_OR_RETURN(int count, device_count());
    return driver::annotate(driver::to_status(result, "cuDeviceGet"),
                            absl::StrCat("Device ", ordinal_, " does not exist: this process sees ",
                                         counted(static_cast<std::uint64_t>(count), "device")));
  }
  CGRT_RETURN_IF_ERROR(driver::to_status(result, "cuDeviceGet"));
  return device;
}

absl::StatusOr<std::string> DeviceRef::name() const {
  CGRT_ASSIGN_OR_RETURN(CUdevice device, get());
  char name[256] = {};
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().DeviceGetName(name, sizeof(name), device), "cuDeviceGetName"));
  return std::string(name);
}

absl::StatusOr<int> DeviceRef::attribute(CUdevice_attribute attribute) const {
  CGRT_ASSIGN_OR_RETURN(CUdevice device, get());
  int value = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute"));
  return value;
}

absl::StatusOr<int> device_count() {
  int count = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().DeviceGetCount(&count), "cuDeviceGetCount"));
  return count;
}

absl::StatusOr<int> driver_version() {
  int version = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().DriverGetVersion(&version), "cuDriverGetVersion"));
  return version;
}

bool is_simulated() { return driver::api().simulated; }

}  // namespace cgrt
