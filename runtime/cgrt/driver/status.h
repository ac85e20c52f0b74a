// CUresult -> absl::Status.
//
//   return driver::to_status(driver::api().StreamSynchronize(stream), "cuStreamSynchronize");
//
// The status code says what a caller can do about it; the CUresult survives as a payload:
//   kInvalidArgument     bad values or handles
//   kResourceExhausted   out of memory, a launch larger than the device
//   kFailedPrecondition  a call that does not fit the state (capture, context, update)
//   kUnavailable         no driver, no device: the text says what to do
//   kUnimplemented       the driver, the device or the simulator lacks it
//   kNotFound            a kernel or symbol that is not there
//   kInternal            the rest; "sticky" in the text when the context is lost
#pragma once

#include <cuda.h>

#include <optional>
#include <string_view>

#include "absl/base/optimization.h"
#include "absl/status/status.h"

namespace cgrt::driver {

absl::Status to_status_slow(CUresult result, const char* call);

inline absl::Status to_status(CUresult result, const char* call) {
  return ABSL_PREDICT_TRUE(result == CUDA_SUCCESS) ? absl::OkStatus() : to_status_slow(result, call);
}

// For an answer that no call gave: the same status, which FirstFailure does not see.
absl::Status make_status(CUresult result, const char* call);

// The CUresult behind a status of this library; nullopt if it has none.
std::optional<CUresult> cuda_result(const absl::Status& status);

// `status` with "`context`: " before its message; code and payload stay.
absl::Status annotate(const absl::Status& status, std::string_view context);

// True if the error means that the context is lost: every later call on it fails as well.
bool is_sticky(CUresult result);

// While one lives, the first call that failed on this thread is kept (its text and its code).
class FirstFailure {
 public:
  FirstFailure() : outer_(innermost) { innermost = this; }
  ~FirstFailure() { innermost = outer_; }
  FirstFailure(const FirstFailure&) = delete;
  FirstFailure& operator=(const FirstFailure&) = delete;

  const absl::Status& status() const { return status_; }  // ok if none failed

 private:
  friend absl::Status to_status_slow(CUresult, const char*);
  static inline thread_local constinit FirstFailure* innermost = nullptr;
  absl::Status status_;
  FirstFailure* outer_;
};

}  // namespace cgrt::driver

namespace cgrt {
using driver::cuda_result;
}  // namespace cgrt
