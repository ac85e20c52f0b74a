#include "cgrt/base/status_macros.h"

#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt {
namespace {

// All that a macro expands to is on one line.
#define TAKE_TWO(a, first, b, second) \
  CGRT_ASSIGN_OR_RETURN(a, first);    \
  CGRT_ASSIGN_OR_RETURN(b, second)

absl::StatusOr<int> sum(const absl::StatusOr<int>& first, const absl::StatusOr<int>& second) {
  TAKE_TWO(const int a, first, const int b, second);
  return a + b;
}

TEST_CASE("one line may assign twice", "[base][status]") {
  CHECK(*sum(1, 2) == 3);
  CHECK(sum(1, absl::NotFoundError("second")).status() == absl::NotFoundError("second"));
}

}  // namespace
}  // namespace cgrt
