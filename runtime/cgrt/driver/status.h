// CUresult -> absl::Status.
//
//   return driver::to_status(driver::api().StreamSynchronize(stream), "cuStreamSynchronize");
//
// The code says what a caller can do: docs/errors.md. The CUresult survives as a payload.
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

// For an answer that no call gave: the same status, which no capture is blamed for. `verb`: "would return".
absl::Status make_status(CUresult result, const char* call, const char* verb);

// The CUresult behind a status of this library; nullopt if it has none.
std::optional<CUresult> cuda_result(const absl::Status& status);

// `status` with "`context`: " before its message; code and payload stay. A capture that the failed call has ended
// is told in the same words.
absl::Status annotate(const absl::Status& status, std::string_view context);
// The same, for what no capture is blamed for.
absl::Status prefix(const absl::Status& status, std::string_view context);

// `status` with another message; code and payload stay.
absl::Status with_message(const absl::Status& status, std::string_view message);

// `status` with another code; message and payload stay.
absl::Status with_code(const absl::Status& status, absl::StatusCode code);

// What an object answers that owns nothing: kFailedPrecondition. `type`: "Stream".
[[gnu::cold]] absl::Status empty_object(const char* type);
[[gnu::cold]] absl::Status empty_kernel();

// True if the error means that the context is lost: every later call on it fails as well.
bool is_sticky(CUresult result);

}  // namespace cgrt::driver

namespace cgrt {
using driver::cuda_result;
}  // namespace cgrt
