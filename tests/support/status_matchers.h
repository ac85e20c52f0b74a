// CHECK_THAT(status, StatusIs(absl::StatusCode::kAborted)) and CHECK_OK(expression).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "support/catch.h"

namespace cgrt::testing {

inline const absl::Status& status_of(const absl::Status& status) { return status; }
template <class T>
const absl::Status& status_of(const absl::StatusOr<T>& value) {
  return value.status();
}

class StatusMatcher : public Catch::MatcherBase<absl::Status> {
 public:
  StatusMatcher(absl::StatusCode code, std::string text) : code_(code), text_(std::move(text)) {}
  bool match(const absl::Status& status) const override {
    return status.code() == code_ && std::string(status.message()).find(text_) != std::string::npos;
  }
  std::string describe() const override {
    return "is " + absl::StatusCodeToString(code_) + (text_.empty() ? "" : " and says \"" + text_ + "\"");
  }

 private:
  absl::StatusCode code_;
  std::string text_;
};

// The code, and a part of the message when `text` is given.
inline StatusMatcher StatusIs(absl::StatusCode code, std::string text = "") { return {code, std::move(text)}; }

}  // namespace cgrt::testing

namespace Catch {
template <>
struct StringMaker<absl::Status> {
  static std::string convert(const absl::Status& status) { return status.ToString(); }
};
}  // namespace Catch

#define CHECK_OK(...)                                                           \
  do {                                                                          \
    const absl::Status check_ok_status = cgrt::testing::status_of(__VA_ARGS__); \
    INFO(check_ok_status.ToString());                                           \
    CHECK(check_ok_status.ok());                                                \
  } while (false)
#define REQUIRE_OK(...)                                                           \
  do {                                                                            \
    const absl::Status require_ok_status = cgrt::testing::status_of(__VA_ARGS__); \
    INFO(require_ok_status.ToString());                                           \
    REQUIRE(require_ok_status.ok());                                              \
  } while (false)
