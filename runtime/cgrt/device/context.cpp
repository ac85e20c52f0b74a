#include "cgrt/device/context.h"

#include <atomic>
#include <mutex>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"

namespace cgrt {
namespace {

struct Primary {
  std::atomic<std::uint32_t> generation{0};
  std::atomic<CUcontext> context{nullptr};
};

absl::StatusOr<CUcontext> retain_primary(DeviceRef device) {
  CGRT_ASSIGN_OR_RETURN(CUdevice handle, device.get());
  CUcontext context = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().DevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain"));
  return context;
}

absl::StatusOr<CUcontext> primary(DeviceRef device) {
  constexpr int kRemembered = 64;
  static Primary remembered[kRemembered];
  if (device.ordinal() < 0 || device.ordinal() >= kRemembered) return retain_primary(device);
  Primary& slot = remembered[device.ordinal()];
  const std::uint32_t generation = driver::generation();
  if (slot.generation.load(std::memory_order_acquire) == generation) {
    return slot.context.load(std::memory_order_relaxed);
  }
  CGRT_ASSIGN_OR_RETURN(CUcontext context, retain_primary(device));
  slot.context.store(context, std::memory_order_relaxed);
  slot.generation.store(generation, std::memory_order_release);
  return context;
}

absl::Status null_context() {
  return absl::InvalidArgumentError(
      "The CUcontext is null. Pass the context in which the work is to run, or DeviceRef(ordinal) for the primary "
      "context of a device.");
}

}  // namespace

void forget_contexts() { driver::forget_handles(); }

absl::StatusOr<CUcontext> ContextRef::get() const {
  if (context_ != nullptr) return context_;
  if (ordinal_ == kGiven) return null_context();
  return primary(DeviceRef(ordinal_));
}

absl::StatusOr<DeviceRef> ContextRef::device() const {
  if (context_ == nullptr && ordinal_ == kGiven) return null_context();
  if (context_ == nullptr) return DeviceRef(ordinal_);
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context_));
  CUdevice device = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetDevice(&device), "cuCtxGetDevice"));
  return DeviceRef(device);
}

absl::StatusOr<ScopedContext> ScopedContext::enter(CUcontext context) {
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxPushCurrent(context), "cuCtxPushCurrent"));
  return ScopedContext();
}

ScopedContext::~ScopedContext() {
  if (entered_) driver::pop_context();
}

}  // namespace cgrt
