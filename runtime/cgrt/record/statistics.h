// What a row of a record says of its samples.
//
//   std::vector<double> times = {2.3, 2.5, 2.4}, ratios = {0.98, 1.01, 1.0};   // of pairs, baseline over own
//   record::Row row{.median = record::median(times), .p95 = record::quantile(times, 0.95)};
//   row.speedup = record::median(ratios);
//   row.spread = record::spread(ratios);
//
// Samples come in any order. Thread-safe: pure functions.
#pragma once

#include <vector>

namespace cgrt::record {

// Of no samples, not a number.
double median(std::vector<double> samples);
double quantile(std::vector<double> samples, double q);  // q in [0, 1], linear between samples

// Half the distance between the quartiles, over the median.
double spread(std::vector<double> samples);

}  // namespace cgrt::record
