#include "cgrt/driver/status.h"

#include <charconv>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/live_capture.h"

namespace cgrt::driver {
namespace {

constexpr char kPayload[] = "type.cgrt.dev/cuda-result";

absl::StatusCode code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE: return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE: return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_ILLEGAL_STATE:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
    case CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: return absl::StatusCode::kFailedPrecondition;
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: return absl::StatusCode::kUnavailable;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU: return absl::StatusCode::kUnimplemented;
    case CUDA_ERROR_NOT_FOUND: return absl::StatusCode::kNotFound;
    case CUDA_ERROR_NOT_PERMITTED: return absl::StatusCode::kPermissionDenied;
    default: return absl::StatusCode::kInternal;
  }
}

absl::Status with_payloads_of(const absl::Status& from, absl::Status to) {
  from.ForEachPayload([&](auto url, const absl::Cord& payload) { to.SetPayload(url, payload); });
  return to;
}

}  // namespace

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return true;
    default: return false;
  }
}

absl::Status make_status(CUresult result, const char* call, const char* verb) {
  const char* name = nullptr;
  const char* text = nullptr;
  api().GetErrorName(result, &name);
  api().GetErrorString(result, &text);
  std::string message = absl::StrCat(call, " ", verb, " ", static_cast<int>(result));
  if (name != nullptr) absl::StrAppend(&message, " (", name, ")");
  if (text != nullptr) absl::StrAppend(&message, ": ", text);
  absl::StrAppend(&message, ".");
  if (is_sticky(result))
    absl::StrAppend(&message, " The error is sticky: the context is lost, and every later call on it fails.");
  if (result == CUDA_ERROR_STUB_LIBRARY) message = absl::StrCat(call, ": ", load_error());
  if (result == CUDA_ERROR_NOT_INITIALIZED) {
    absl::StrAppend(&message,
                    " CUDA cannot be used in a process that was forked after its parent had used it: fork "
                    "before the first use, or start another program.");
  }
  absl::Status status(code_of(result), message);
  status.SetPayload(kPayload, absl::Cord(std::to_string(static_cast<int>(result))));
  return status;
}

absl::Status to_status_slow(CUresult result, const char* call) {
  const absl::Status status = make_status(result, call, "returned");
  LiveCapture::note_failure(result, call, status);
  if (result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) return status;
  const std::string how = LiveCapture::how_it_ended();
  if (how.empty()) return status;
  return with_payloads_of(status, absl::Status(status.code(), absl::StrCat(status.message(), " ", how,
                                                                           absl::EndsWith(how, ".") ? "" : ".")));
}

absl::Status empty_object(const char* type) {
  return absl::FailedPreconditionError(
      absl::StrCat("This ", type, " is empty: it was moved from, or nothing was assigned to it yet."));
}

absl::Status empty_kernel() {
  return absl::FailedPreconditionError(
      "The kernel is empty: nothing was assigned to it yet. Assign what make_kernel returns.");
}

std::optional<CUresult> cuda_result(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  const std::string digits(*payload);
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<CUresult>(value);
}

absl::Status with_message(const absl::Status& status, std::string_view message) {
  return with_payloads_of(status, absl::Status(status.code(), absl::string_view(message.data(), message.size())));
}

absl::Status prefix(const absl::Status& status, std::string_view context) {
  return with_message(status, absl::StrCat(std::string(context), ": ", status.message()));
}

absl::Status annotate(const absl::Status& status, std::string_view context) {
  const absl::Status annotated = prefix(status, context);
  LiveCapture::reword(status, annotated);
  return annotated;
}

absl::Status with_code(const absl::Status& status, absl::StatusCode code) {
  const absl::Status changed = with_payloads_of(status, absl::Status(code, status.message()));
  LiveCapture::reword(status, changed);
  return changed;
}

}  // namespace cgrt::driver
