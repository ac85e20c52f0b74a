// CUB's operations as cgrt's: each against its meaning, on every target.
#include "cgrt_kernels/cub/cub.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/cub/reference.h"
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

template <class T, class Make>
Bytes generate(std::uint64_t count, Make make) {
  std::mt19937_64 engine(7);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(make(engine));
  return to_bytes(values);
}

absl::Status compare(const Bytes& expected, const Bytes& found, const char* name) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] != found[i]) return absl::InternalError(absl::StrCat(name, " differs at byte ", i));
  }
  return absl::OkStatus();
}

// Not an array of the trial: what CUB leaves in a workspace is CUB's.
absl::StatusOr<DeviceBuffer> workspace_of(std::size_t bytes) { return DeviceBuffer::create(kDevice, bytes); }

// Twice on one workspace.
template <class Plan, class Args>
absl::Status run_twice(Trial& trial, absl::Status (*launch)(LaunchTarget, const Plan&, const Args&), const Plan& plan,
                       const Args& args) {
  return trial.run([&](LaunchTarget target) {
    CGRT_RETURN_IF_ERROR(launch(target, plan, args));
    return launch(target, plan, args);
  });
}

// Small whole numbers, so that sums of floats are exact in any order.
absl::Status check_scan_of(const CubScanDesc& desc) {
  Bytes in;
  if (desc.type == DType::kInt64) {
    in = generate<std::uint64_t>(desc.count, [](auto& engine) { return engine() >> 1; });
  } else if (desc.type == DType::kInt32) {
    in = generate<std::uint32_t>(desc.count, [](auto& engine) { return engine(); });
  } else {
    in = generate<float>(desc.count, [](auto& engine) { return static_cast<float>(engine() % 3) - 1; });
  }
  CGRT_ASSIGN_OR_RETURN(const CubScanPlan plan, plan_cub_scan(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, workspace_of(plan.workspace_bytes));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  CubScanArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(in.size()));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in));
  CGRT_RETURN_IF_ERROR(run_twice(trial, launch_cub_scan, plan, args));
  Bytes expected(in.size());
  cub_scan_reference(desc, {.out = expected.data(), .in = in.data()});
  return compare(expected, trial.found(args.out), "out");
}

absl::Status check_sort_of(const RadixSortDesc& desc) {
  Bytes keys;
  switch (desc.key) {
    case SortKey::kUInt32: keys = generate<std::uint32_t>(desc.count, [](auto& engine) { return engine(); }); break;
    case SortKey::kUInt64: keys = generate<std::uint64_t>(desc.count, [](auto& engine) { return engine(); }); break;
    case SortKey::kFloat32:
      keys = generate<float>(desc.count, [](auto& engine) {
        const auto value = static_cast<std::int64_t>(engine() % 2001) - 1000;
        return value == 77 ? -0.0f : static_cast<float>(value) / 8;
      });
  }
  std::uint32_t next = 0;
  const Bytes values = generate<std::uint32_t>(desc.count, [&](auto&) { return next++; });
  CGRT_ASSIGN_OR_RETURN(const RadixSortPlan plan, plan_radix_sort(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, workspace_of(plan.workspace_bytes));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  RadixSortArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(args.keys_out, trial.output(keys.size()));
  CGRT_ASSIGN_OR_RETURN(args.keys_in, trial.input(keys));
  if (desc.has_values) {
    CGRT_ASSIGN_OR_RETURN(args.values_out, trial.output(values.size()));
    CGRT_ASSIGN_OR_RETURN(args.values_in, trial.input(values));
  }
  CGRT_RETURN_IF_ERROR(run_twice(trial, launch_radix_sort, plan, args));
  Bytes expected_keys(keys.size()), expected_values(values.size());
  radix_sort_reference(desc, {.keys_out = expected_keys.data(),
                              .keys_in = keys.data(),
                              .values_out = expected_values.data(),
                              .values_in = values.data()});
  CGRT_RETURN_IF_ERROR(compare(expected_keys, trial.found(args.keys_out), "keys"));
  return desc.has_values ? compare(expected_values, trial.found(args.values_out), "values") : absl::OkStatus();
}

absl::Status check_select_of(const SelectDesc& desc) {
  const Bytes in = random_elements(desc.type, desc.count, 0, 100, 1);
  const Bytes flags = generate<std::uint8_t>(desc.count, [](auto& engine) { return engine() % 3 == 0 ? 5 : 0; });
  CGRT_ASSIGN_OR_RETURN(const SelectPlan plan, plan_select(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, workspace_of(plan.workspace_bytes));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  SelectArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(args.out, trial.output(in.size()));
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in));
  CGRT_ASSIGN_OR_RETURN(void* const device_flags, trial.input(flags));
  CGRT_ASSIGN_OR_RETURN(void* const selected, trial.output(sizeof(std::int64_t)));
  args.flags = static_cast<const std::uint8_t*>(device_flags);
  args.selected = static_cast<std::int64_t*>(selected);
  CGRT_RETURN_IF_ERROR(run_twice(trial, launch_select, plan, args));
  Bytes expected(in.size());
  std::int64_t count = 0;
  select_reference(desc, {.out = expected.data(), .in = in.data(), .flags = flags.data(), .selected = &count});
  CGRT_RETURN_IF_ERROR(compare(to_bytes(std::vector{count}), trial.found(selected), "selected"));
  expected.resize(static_cast<std::size_t>(count) * size_of(desc.type));
  return compare(expected, trial.found(args.out), "out");
}

// Whole numbers, also outside of the range and at its ends; bins are one or two wide.
absl::Status check_histogram_of(const HistogramDesc& desc) {
  const Bytes in =
      desc.type == DType::kInt32
          ? generate<std::int32_t>(desc.count, [](auto& engine) { return static_cast<int>(engine() % 600) - 50; })
          : generate<float>(desc.count, [](auto& engine) { return static_cast<float>(engine() % 600) - 50; });
  CGRT_ASSIGN_OR_RETURN(const HistogramPlan plan, plan_histogram(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, workspace_of(plan.workspace_bytes));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  HistogramArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(void* const counts, trial.output(static_cast<std::size_t>(desc.bins) * 4));
  args.counts = static_cast<std::int32_t*>(counts);
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(in));
  CGRT_RETURN_IF_ERROR(run_twice(trial, launch_histogram, plan, args));
  std::vector<std::int32_t> expected(static_cast<std::size_t>(desc.bins));
  histogram_reference(desc, {.counts = expected.data(), .in = in.data()});
  return compare(to_bytes(expected), trial.found(counts), "counts");
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
  CGRT_ASSIGN_OR_RETURN(const HistogramPlan plan, plan_histogram(kDevice, desc));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, workspace_of(plan.workspace_bytes));
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  HistogramArgs args{.workspace = {workspace.data(), workspace.size_bytes()}};
  CGRT_ASSIGN_OR_RETURN(void* const counts, trial.output(static_cast<std::size_t>(desc.bins) * 4));
  args.counts = static_cast<std::int32_t*>(counts);
  CGRT_ASSIGN_OR_RETURN(args.in, trial.input(to_bytes(values)));
  CGRT_RETURN_IF_ERROR(run_twice(trial, launch_histogram, plan, args));
  const Bytes found = trial.found(counts);

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
  std::vector<std::int32_t> expected(bins);
  histogram_reference(desc, {.counts = expected.data(), .in = values.data()});
  return compare(to_bytes(expected), found, "counts");
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

absl::Status refused(const absl::Status& status, const char* text) {
  if (absl::IsInvalidArgument(status) && absl::StrContains(status.message(), text)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("wanted \"", text, "\", found: ", status.ToString()));
}

absl::Status check_refusals() {
  CGRT_RETURN_IF_ERROR(refused(plan_cub_scan(kDevice, {.count = 0}).status(), "inclusive scan: there are 0 elements"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_cub_scan(kDevice, {.type = DType::kFloat16, .count = 1}).status(), "no kernel for float16"));
  CGRT_RETURN_IF_ERROR(refused(plan_radix_sort(kDevice, {.count = 9, .begin_bit = 8, .end_bit = 4}).status(),
                               "bits 8 to 4 of a uint32"));
  CGRT_RETURN_IF_ERROR(refused(plan_radix_sort(kDevice, {.count = 9, .end_bit = 33}).status(), "which has 32"));
  CGRT_RETURN_IF_ERROR(refused(plan_select(kDevice, {.count = 0}).status(), "select: there are 0 elements"));
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
  CGRT_ASSIGN_OR_RETURN(const RadixSortPlan plan, plan_radix_sort(kDevice, {.has_values = true, .count = 9}));
  unsigned char* const data = buffer.as<unsigned char>();
  const auto sort = [&](void* out, const void* values, void* workspace) {
    return launch_radix_sort(stream.ref(), plan, {out, data, data, values, {workspace, plan.workspace_bytes}});
  };
  CGRT_RETURN_IF_ERROR(refused(sort(nullptr, data, data), "radix sort: keys_out is null"));
  CGRT_RETURN_IF_ERROR(refused(sort(data + 2, data, data), "is not aligned to 4 bytes"));
  CGRT_RETURN_IF_ERROR(refused(sort(data, nullptr, data), "values_in is null"));
  CGRT_RETURN_IF_ERROR(refused(sort(data, data, nullptr), "workspace is null"));
  return refused(sort(data, data, data + 16), "is not aligned to 256 bytes");
}

}  // namespace

void check_cub(Report& report) {
  std::vector<std::uint64_t> counts = {1, 31, 1000, 4097, 65536};
  if (!report.is_simulated()) counts.insert(counts.end(), {1 << 20, (1 << 21) + 3});
  for (const std::uint64_t count : counts) {
    for (const DType type : {DType::kFloat32, DType::kInt32, DType::kInt64}) {
      for (const ScanKind kind : {ScanKind::kInclusive, ScanKind::kExclusive}) {
        report.check(absl::StrCat("cub ", to_string(kind), " ", to_string(type), " ", count),
                     check_scan_of({type, count, kind}));
      }
    }
    for (const SortKey key : {SortKey::kUInt32, SortKey::kUInt64, SortKey::kFloat32}) {
      for (const bool has_values : {false, true}) {
        report.check(absl::StrCat("radix sort ", to_string(key), has_values ? " pairs " : " keys ", count),
                     check_sort_of({key, has_values, count}));
      }
    }
    report.check(absl::StrCat("radix sort by bits 4 to 12 of ", count),
                 check_sort_of({SortKey::kUInt32, true, count, 4, 12}));
    for (const DType type : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
      report.check(absl::StrCat("select ", to_string(type), " ", count), check_select_of({type, count}));
    }
    for (const DType type : {DType::kInt32, DType::kFloat32}) {
      report.check(absl::StrCat("histogram ", to_string(type), " ", count),
                   check_histogram_of({type, count, 256, 0, 512}));
      report.check(absl::StrCat("histogram ", to_string(type), " of one wide ", count),
                   check_histogram_of({type, count, 64, 0, 64}));
    }
  }
  check_edges(report);
  report.check("cub refuses", check_refusals());
}

}  // namespace cgrt::testing
