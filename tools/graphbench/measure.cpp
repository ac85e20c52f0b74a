#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/record/statistics.h"

namespace graphbench {
namespace {

using cgrt::record::median;
using cgrt::record::quantile;
using cgrt::record::spread;
using Clock = std::chrono::steady_clock;

// A read of the clock costs some 25 ns and its steps are as large: below 0.1 % of this.
constexpr double kSampleNanoseconds = 50'000;
constexpr double kMaxIntervals = 500;
constexpr int kWarmUps = 3;

absl::StatusOr<double> time_interval(const Side& side, int repeats) {
  if (side.prepare) CGRT_RETURN_IF_ERROR(side.prepare(repeats));
  const Clock::time_point start = Clock::now();
  absl::Status status = side.run(repeats);
  const Clock::time_point end = Clock::now();
  if (side.settle) status.Update(side.settle());
  if (!status.ok()) return status;
  return std::chrono::duration<double, std::nano>(end - start).count();
}

absl::StatusOr<double> sample(const Side& side, int repeats, int intervals) {
  double total = 0;
  for (int i = 0; i < intervals; ++i) {
    CGRT_ASSIGN_OR_RETURN(const double interval, time_interval(side, repeats));
    total += interval;
  }
  return total / intervals / repeats;
}

// Runs the side until it is warm; the fastest interval is what the others are judged by.
absl::StatusOr<double> warm_up(const Side& side, int repeats) {
  double fastest = HUGE_VAL;
  for (int i = 0; i < kWarmUps; ++i) {
    CGRT_ASSIGN_OR_RETURN(const double interval, time_interval(side, repeats));
    fastest = std::min(fastest, interval);
  }
  return std::max(fastest, 1.0);
}

}  // namespace

absl::StatusOr<Figures> measure(const Side& own, const Side* baseline, const Pace& pace) {
  const bool is_full = pace.sampling == Sampling::kFull;
  const int repeats = is_full ? pace.repeats : std::min(pace.repeats, 2);
  int intervals = 1;
  if (is_full) {
    CGRT_ASSIGN_OR_RETURN(double fastest, warm_up(own, repeats));
    if (baseline != nullptr) {
      CGRT_ASSIGN_OR_RETURN(const double baseline_fastest, warm_up(*baseline, repeats));
      fastest = std::min(fastest, baseline_fastest);
    }
    intervals = static_cast<int>(std::clamp(std::ceil(kSampleNanoseconds / fastest), 1.0, kMaxIntervals));
  }

  const int pairs = is_full ? pace.pairs : 2;
  std::vector<double> own_times, baseline_times, ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    double own_time = 0, baseline_time = 0;
    const bool is_own_first = pair % 2 == 0;
    for (const bool is_own : {is_own_first, !is_own_first}) {
      if (!is_own && baseline == nullptr) continue;
      CGRT_ASSIGN_OR_RETURN((is_own ? own_time : baseline_time), sample(is_own ? own : *baseline, repeats, intervals));
    }
    own_times.push_back(own_time);
    if (baseline == nullptr) continue;
    baseline_times.push_back(baseline_time);
    ratios.push_back(baseline_time / own_time);
  }

  Figures figures;
  figures.median = median(own_times);
  figures.p95 = quantile(own_times, 0.95);
  if (baseline != nullptr) {
    figures.baseline_median = median(std::move(baseline_times));
    figures.speedup = median(ratios);
    figures.spread = spread(ratios);
  }
  return figures;
}

}  // namespace graphbench
