#include "cgrt/inspect/budget.h"

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/status_matchers.h"
#include "unit/ir/graphs.h"

namespace cgrt::inspect {
namespace {

using testing::small_graph;
using testing::StatusIs;
using Sentences = std::vector<std::string>;

Sentences broken(const std::string& text) {
  const absl::StatusOr<std::vector<Budget>> budgets = parse_budgets(text);
  REQUIRE_OK(budgets);
  return broken_budgets(small_graph(), *budgets);
}

TEST_CASE("each comparison holds or is said", "[inspect][budget]") {
  CHECK(broken("nodes<=3,edges < 3 , depth=3, kernel>=1, memcpy>0, child_graph=0, copied_bytes<=4096").empty());
  CHECK(broken("nodes<3") == Sentences{"nodes is 3, and is to be < 3."});
  CHECK(broken("nodes<=2") == Sentences{"nodes is 3, and is to be <= 2."});
  CHECK(broken("nodes=4") == Sentences{"nodes is 3, and is to be = 4."});
  CHECK(broken("nodes>=4") == Sentences{"nodes is 3, and is to be >= 4."});
  CHECK(broken("nodes>3") == Sentences{"nodes is 3, and is to be > 3."});
  CHECK(broken("memset=0, set_bytes<10").size() == 2);
}

TEST_CASE("a budget that cannot be read is refused with its place", "[inspect][budget]") {
  const auto refused = [](const char* text, const char* sentence) {
    INFO(text);
    CHECK_THAT(parse_budgets(text).status(), StatusIs(absl::StatusCode::kInvalidArgument, sentence));
  };

  refused("nods<=3", "column 1: expected one of allocated_bytes, allocations, ");
  refused("nods<=3", "width, found \"nods<=3\".");
  refused("nodes<=3, hosts=0", "column 11: expected one of ");
  refused("nodes 3", "column 7: expected one of <, <=, =, >=, >, found \"3\".");
  refused("nodes<=", "column 8: expected a number below 2^64, found the end.");
  refused("nodes<=-1", "column 8: expected a number below 2^64, found \"-1\".");
  refused("nodes<=18446744073709551616", "column 8: expected a number below 2^64");
  refused("nodes<=3 edges<=3", "column 10: expected \",\", found \"edges<=3\".");
  refused("nodes<=3,", "column 10: expected one of ");
  refused("", "column 1: expected one of ");
  refused("nodes==3", "column 7: expected a number");
}

TEST_CASE("a name that is none never holds", "[inspect][budget]") {
  CHECK(broken_budgets(small_graph(), {{"nods", Comparison::kLessOrEqual, 3}}).size() == 1);
}

}  // namespace
}  // namespace cgrt::inspect
