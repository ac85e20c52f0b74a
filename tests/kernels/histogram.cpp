#include "cgrt_kernels/histogram/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/histogram/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using namespace kernels;

template <class T>
Bytes to_bytes(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

absl::StatusOr<Bytes> counts_of(const HistogramDesc& desc, const Bytes& in, std::size_t shift = 0) {
  CGRT_ASSIGN_OR_RETURN(const HistogramPlan plan, plan_histogram(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  HistogramArgs args;
  CGRT_ASSIGN_OR_RETURN(void* const counts, trial.output(static_cast<std::size_t>(desc.bins) * 4, shift));
  args.counts = static_cast<std::int32_t*>(counts);
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in, shift));
  const auto launch_twice = [&](LaunchTarget target) {
    const absl::Status status = launch_histogram(target, plan, args);
    return status.ok() ? launch_histogram(target, plan, args) : status;
  };
  CGRT_RETURN_IF_ERROR(trial.run(launch_twice));
  return trial.found(counts);
}

absl::Status compare(const HistogramDesc& desc, const void* in, const Bytes& found) {
  std::vector<std::int32_t> expected(static_cast<std::size_t>(desc.bins));
  histogram_reference(desc, {.counts = expected.data(), .in = in});
  for (std::size_t bin = 0; bin < expected.size(); ++bin) {
    std::int32_t counted;
    std::memcpy(&counted, &found[bin * 4], 4);
    if (counted == expected[bin]) continue;
    return absl::InternalError(absl::StrCat("bin ", bin, " has ", counted, ", expected ", expected[bin]));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status check_numbers_of(const HistogramDesc& desc, std::uint32_t different, std::size_t shift) {
  std::mt19937 engine(7);
  std::vector<T> values(desc.count);
  for (T& value : values) value = static_cast<T>(static_cast<int>(engine() % different) - 50);
  CGRT_ASSIGN_OR_RETURN(const Bytes found, counts_of(desc, to_bytes(values), shift));
  return compare(desc, values.data(), found);
}

// Whole numbers from -50 on: also outside of the range, at its ends and at those of bins.
absl::Status check_numbers(const HistogramDesc& desc, std::uint32_t different, std::size_t shift) {
  if (desc.type == DType::kInt32) return check_numbers_of<std::int32_t>(desc, different, shift);
  return check_numbers_of<float>(desc, different, shift);
}

// Numbers at the ends of the range and of each bin, and as close to them as the type has some.
template <class T>
std::vector<T> at_edges(const HistogramDesc& desc) {
  const double lower = static_cast<double>(static_cast<T>(desc.lower)), width = (desc.upper - lower) / desc.bins;
  std::vector<T> values;
  const auto add = [&](double value) {
    if constexpr (std::is_same_v<T, float>) {
      const auto at = static_cast<float>(value);
      values.insert(values.end(), {at, std::nextafter(at, -INFINITY), std::nextafter(at, INFINITY)});
    } else {
      for (const double beside : {-1.0, 0.0, 1.0}) {
        const double at = std::floor(value) + beside;
        if (at >= -0x1p31 && at < 0x1p31) values.push_back(static_cast<T>(at));
      }
    }
  };
  const int bins = std::min(desc.bins, 1000);
  for (int i = 0; i <= bins; ++i) add(lower + i * width);
  for (int i = 0; i <= bins; ++i) add(desc.upper - i * width);
  if constexpr (std::is_same_v<T, float>) values.insert(values.end(), {NAN, INFINITY, -INFINITY, 0.0f, -0.0f});
  if constexpr (!std::is_same_v<T, float>) values.insert(values.end(), {INT32_MIN, INT32_MAX, 0});
  return values;
}

// None of the range is lost, each is where its edges say in long double, and none else is counted. `blurred`: how much
// of a bin's width its edges may be off.
template <class T>
absl::Status check_edges_of(HistogramDesc desc, long double blurred) {
  const std::vector<T> values = at_edges<T>(desc);
  desc.count = values.size();
  CGRT_ASSIGN_OR_RETURN(const Bytes found, counts_of(desc, to_bytes(values)));

  const auto bins = static_cast<std::size_t>(desc.bins);
  const auto lower = static_cast<long double>(static_cast<T>(desc.lower));
  const auto upper = std::is_same_v<T, float> ? static_cast<long double>(static_cast<float>(desc.upper))
                                              : static_cast<long double>(std::trunc(desc.upper));
  std::vector<std::int32_t> least(bins),
      most(bins);  // where a number is so close to an edge that it may be in two bins
  std::int64_t inside = 0, all = 0;
  for (const T value : values) {
    const auto x = static_cast<long double>(value);
    if (!(x >= lower && x < upper)) continue;
    ++inside;
    const long double exact = (x - lower) * desc.bins / (upper - lower), last = desc.bins - 1;
    const auto first_bin = static_cast<std::size_t>(std::clamp(std::floor(exact - blurred), 0.0L, last));
    const auto last_bin = static_cast<std::size_t>(std::clamp(std::floor(exact + blurred), 0.0L, last));
    if (first_bin == last_bin) ++least[first_bin];
    for (std::size_t bin = first_bin; bin <= last_bin; ++bin) ++most[bin];
  }
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::int32_t counted;
    std::memcpy(&counted, &found[bin * 4], 4);
    all += counted;
    if (counted >= least[bin] && counted <= most[bin]) continue;
    return absl::InternalError(
        absl::StrCat("bin ", bin, " has ", counted, ", expected ", least[bin], " to ", most[bin]));
  }
  if (all != inside) return absl::InternalError(absl::StrCat(all, " are counted of ", inside));
  return compare(desc, values.data(), found);
}

void check_edges(Report& report) {
  for (const int bins : {1, 2, 3, 7, 10, 49, 255, 256, 257, 1000, 100000, 1 << 24}) {
    if (report.is_simulated() && bins > 1 << 20) continue;
    for (const auto& [lower, upper] : {std::pair{-1.0, 1.0},
                                       {0.0, 1.0},
                                       {0.1, 0.7},
                                       {-3e38, 3e38},
                                       {1e-40, 1e-38},
                                       {1e6, 1e6 + 1},
                                       {-1000.0, 2401.0}}) {
      report.check(absl::StrCat("edges of ", bins, " bins from ", lower, " to ", upper),
                   check_edges_of<float>({DType::kFloat32, 0, bins, lower, upper}, 1e-6L));
    }
    for (const auto& [lower, upper] :
         {std::pair{0.0, 16777216.0}, {-20000000.0, 30000000.5}, {-0x1p31, 0x1p31}, {-2e9, 2e9}, {-0x1p31, 0.0}}) {
      report.check(absl::StrCat("edges of ", bins, " bins of integers from ", lower, " to ", upper),
                   check_edges_of<std::int32_t>({DType::kInt32, 0, bins, lower, upper}, 0));
    }
  }
}

absl::Status check_refusals() {
  CGRT_RETURN_IF_ERROR(
      refused(plan_histogram(kDevice, {.count = 9, .bins = 0, .upper = 1}).status(), "there are 0 bins"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_histogram(kDevice, {.count = 9, .bins = 4, .lower = 1, .upper = 1}).status(), "is empty"));
  const auto of = [](DType type, std::int32_t bins, double lower, double upper) {
    return plan_histogram(kDevice, {type, 9, bins, lower, upper}).status();
  };
  CGRT_RETURN_IF_ERROR(refused(of(DType::kInt32, 4, 0.1, 0.9), "is empty: both are 0 as int32"));
  CGRT_RETURN_IF_ERROR(refused(of(DType::kFloat32, 4, 1, 1 + 1e-12), "is empty: both are 1 as float32"));
  CGRT_RETURN_IF_ERROR(refused(of(DType::kInt32, 11, 0, 10), "has 10 integers for 11 bins"));
  CGRT_RETURN_IF_ERROR(refused(of(DType::kInt32, 11, 0, 3e9), "not one of int32"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_histogram(kDevice, {.type = DType::kInt64, .count = 9, .bins = 4, .upper = 1}).status(),
              "no kernel for int64"));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(kDevice));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, 1 << 12));
  CGRT_ASSIGN_OR_RETURN(const HistogramPlan plan, plan_histogram(kDevice, {.count = 9, .bins = 4, .upper = 4}));
  auto* const counts = buffer.as<std::int32_t>();
  CGRT_RETURN_IF_ERROR(refused(launch_histogram(stream.ref(), plan, {.in = counts}), "histogram: counts is null"));
  return refused(launch_histogram(stream.ref(), plan, {counts, buffer.as<unsigned char>() + 2}),
                 "is not aligned to 4 bytes");
}

}  // namespace

void check_histogram(Report& report) {
  std::vector<std::uint64_t> counts = {1, 3, 31, 1000, 4097, 65536};
  if (!report.is_simulated()) counts.insert(counts.end(), {1 << 20, (1 << 21) + 3});
  for (const std::uint64_t count : counts) {
    for (const DType type : {DType::kInt32, DType::kFloat32}) {
      for (const std::size_t shift : {0, 4, 8, 12}) {
        for (const int bins : {1, 64, 256, 512, 10000, 65536}) {
          const int upper = type == DType::kInt32 ? std::max(bins, 512) : 512;
          report.check(absl::StrCat("histogram of ", count, " ", to_string(type), " in ", bins, " bins + ", shift),
                       check_numbers({type, count, bins, 0, static_cast<double>(upper)}, 600, shift));
        }
      }
    }
  }
  // More in each bin of each block than 16 bits count, in few bins and in one.
  if (!report.is_simulated()) {
    for (const int bins : {16, 65535, 100000, 1 << 20}) {
      for (const std::uint32_t different : {51, 53, 10000}) {
        report.check(absl::StrCat("histogram of ", different, " different numbers in ", bins, " bins"),
                     check_numbers({DType::kFloat32, (std::uint64_t{1} << 25) + 5, bins, 0, 32768}, different, 0));
      }
    }
  }
  check_edges(report);
  report.check("histogram refuses", check_refusals());
}

void draw_histogram(Draw& draw, Report& report) {
  const DType type = draw.of({DType::kInt32, DType::kFloat32});
  const auto bins = static_cast<std::int32_t>(draw.size(draw.max_elements(16)));
  if (draw.one_in(3)) {
    const double lower =
        std::ldexp(static_cast<double>(draw.from(0, 2000)) - 1000, static_cast<int>(draw.from(0, 20)) - 10);
    const double width = std::ldexp(static_cast<double>(draw.from(1, 1000)), static_cast<int>(draw.from(0, 30)) - 10);
    const HistogramDesc desc{type, 0, bins, lower, lower + width};
    report.check(absl::StrCat("edges of ", bins, " bins from ", lower, " to ", desc.upper, " of ", to_string(type)),
                 type == DType::kInt32 ? check_edges_of<std::int32_t>(desc, 0) : check_edges_of<float>(desc, 1e-6L));
    return;
  }
  const double lower = static_cast<double>(draw.from(0, 200)) - 100;
  const HistogramDesc desc{type, draw.size(draw.max_elements(4)), bins, lower,
                           lower + static_cast<double>(draw.size(type == DType::kInt32 ? 1 << 24 : 5000))};
  const auto different = static_cast<std::uint32_t>(draw.size(5000));
  const std::size_t shift = 4 * draw.from(0, 3);
  report.check(absl::StrCat("histogram of ", desc.count, " ", to_string(type), " in ", bins, " bins from ", lower,
                            " to ", desc.upper, ", ", different, " different, shifted by ", shift),
               check_numbers(desc, different, shift));
}

}  // namespace cgrt::testing
