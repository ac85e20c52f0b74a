// measure: two ways to do one thing, timed beside each other.
//
//   Side own{.run = [&](int repeats) { ... }}, raw{...};
//   CGRT_ASSIGN_OR_RETURN(Figures figures, measure(own, &raw, {.pairs = 31, .repeats = 20}));
//
// The two sides take turns in A B B A order, so that a clock that drifts or a machine that gets warm
// meets both alike. Work never piles up: each interval is settled, outside of the timed part, before
// the next.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace graphbench {

struct Side {
  std::function<absl::Status(int repeats)> prepare = {};  // before each interval, not timed; may be empty
  std::function<absl::Status(int repeats)> run = {};      // timed: does the operation that many times
  std::function<absl::Status()> settle = {};              // after each interval, not timed; may be empty
};

enum class Sampling {
  kFull,
  kOnce,  // runs everything once: the times mean nothing
};

struct Pace {
  int pairs = 31;
  int repeats = 1;  // operations in one timed interval
  Sampling sampling = Sampling::kFull;
};

// Nanoseconds per operation. Without a baseline the last three are 0.
struct Figures {
  double median = 0, p95 = 0;
  double baseline_median = 0;
  double speedup = 0;  // the median of the pairs' baseline / own
  double spread = 0;   // half the distance between the quartiles of those ratios, over their median
};

// `baseline` may be null. The first error of either side ends the measurement.
absl::StatusOr<Figures> measure(const Side& own, const Side* baseline, const Pace& pace);

}  // namespace graphbench
