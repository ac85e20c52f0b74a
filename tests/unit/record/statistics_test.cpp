#include "cgrt/record/statistics.h"

#include <cmath>

#include "support/catch.h"

namespace cgrt::record {
namespace {

TEST_CASE("the median is the middle sample or the mean of the middle two", "[record]") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("the median of no samples is no number", "[record]") {
  CHECK(std::isnan(median({})));
  CHECK(std::isnan(quantile({}, 0.95)));
}

TEST_CASE("quantiles lie linearly between samples", "[record]") {
  CHECK(quantile({30, 10, 20}, 0) == 10);
  CHECK(quantile({30, 10, 20}, 1) == 30);
  CHECK(quantile({30, 10, 20}, 0.25) == 15);
  CHECK(quantile({7}, 0.95) == 7);
}

TEST_CASE("the spread is half the distance between the quartiles, over the median", "[record]") {
  CHECK(spread({10, 30, 20}) == 0.25);
  CHECK(spread({5, 5, 5}) == 0);
  CHECK(std::isnan(spread({})));
}

}  // namespace
}  // namespace cgrt::record
