// ContextRef: where streams, events, buffers and graph nodes live: the primary context of a device,
// or a CUcontext that the caller has (green, non-primary).
//
//   CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(DeviceRef(0)));
//   CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(my_context));
//
// What was found in a context (functions, the primary context itself) is remembered. After a context
// that this library was given has been destroyed, or cudaDeviceReset was called, say
// forget_contexts() before the next call: CUDA may give the same address to another context.
//
// A value; thread-safe. cgrt never selects a device for its caller: a context is made current only
// inside the calls that the driver requires it for (create, allocate, load, instantiate), and the
// caller's stack of contexts is as it was when they return.
#pragma once

#include <cuda.h>

#include <climits>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"

namespace cgrt {

class ContextRef {
 public:
  // The device's primary context. It is retained when first needed and kept for the life of the
  // process, as the CUDA runtime does.
  ContextRef(DeviceRef device) : ordinal_(device.ordinal()) {}
  // Must outlive what is made in it. Null at run time: every use is kInvalidArgument.
  ContextRef(CUcontext context) : context_(context) {}
  ContextRef(std::nullptr_t) = delete;

  // Retains the primary context at its first use, which may create it: blocks then. kInvalidArgument for a null context
  // and for a device that is not there, kUnavailable without a driver, kResourceExhausted without memory for it.
  absl::StatusOr<CUcontext> get() const;
  // Creates nothing. kInvalidArgument for a null context.
  absl::StatusOr<DeviceRef> device() const;

 private:
  static constexpr int kGiven = INT_MIN;  // a context, not a device
  CUcontext context_ = nullptr;
  int ordinal_ = kGiven;
};

// Forgets what was found in contexts. Cheap; the next use of each kernel asks the driver again.
void forget_contexts();

// Makes a context current for a scope, on the thread that entered it. It must be destroyed on that thread, those
// entered later before it: it takes the top context off the thread's stack, whichever that is.
//
//   CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context));
class ScopedContext {
 public:
  // kFailedPrecondition for a context that was destroyed.
  static absl::StatusOr<ScopedContext> enter(CUcontext context);
  ScopedContext(ScopedContext&& other) noexcept : entered_(other.entered_) { other.entered_ = false; }
  ScopedContext& operator=(ScopedContext&&) = delete;
  ~ScopedContext();

 private:
  ScopedContext() = default;
  bool entered_ = true;
};

}  // namespace cgrt
