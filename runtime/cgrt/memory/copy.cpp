#include "cgrt/memory/copy.h"

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt {
namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

absl::Status refuse_programmatic(LaunchTarget target, const char* what) {
  if (target.edge() == EdgeKind::kFull) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "A ", what, " cannot have a programmatic dependency: only kernels can. Pass the target without programmatic()."));
}

absl::Status fill(LaunchTarget target, const FillParams& params) {
  CGRT_RETURN_IF_ERROR(refuse_programmatic(target, "memset"));
  if (target.sink() != nullptr) return target.sink()->add_fill(params);
  const CUdeviceptr address = address_of(params.destination);
  const CUstream stream = target.stream().get();
  switch (params.element_bytes) {
    case 1:
      return driver::to_status(
          driver::api().MemsetD8Async(address, static_cast<unsigned char>(params.value), params.count, stream),
          "cuMemsetD8Async");
    case 2:
      return driver::to_status(
          driver::api().MemsetD16Async(address, static_cast<unsigned short>(params.value), params.count, stream),
          "cuMemsetD16Async");
    default:
      return driver::to_status(driver::api().MemsetD32Async(address, params.value, params.count, stream),
                               "cuMemsetD32Async");
  }
}

}  // namespace

absl::Status copy(LaunchTarget target, void* destination, const void* source, std::size_t bytes) {
  CGRT_RETURN_IF_ERROR(refuse_programmatic(target, "copy"));
  if (target.sink() != nullptr) return target.sink()->add_copy({destination, source, bytes});
  return driver::to_status(
      driver::api().MemcpyAsync(address_of(destination), address_of(source), bytes, target.stream().get()),
      "cuMemcpyAsync");
}

absl::Status fill8(LaunchTarget target, void* destination, std::uint8_t value, std::size_t count) {
  return fill(target, {destination, value, 1, count});
}
absl::Status fill16(LaunchTarget target, void* destination, std::uint16_t value, std::size_t count) {
  return fill(target, {destination, value, 2, count});
}
absl::Status fill32(LaunchTarget target, void* destination, std::uint32_t value, std::size_t count) {
  return fill(target, {destination, value, 4, count});
}

}  // namespace cgrt
