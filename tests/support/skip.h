// What a test answers that this machine cannot run: neither a pass nor a failure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace cgrt::testing {

inline constexpr char kSkip[] = "cgrt.tests/skip";

inline absl::Status skip(const std::string& reason) {
  absl::Status status = absl::UnavailableError(reason);
  status.SetPayload(kSkip, absl::Cord());
  return status;
}
inline bool is_skip(const absl::Status& status) { return status.GetPayload(kSkip).has_value(); }

}  // namespace cgrt::testing
