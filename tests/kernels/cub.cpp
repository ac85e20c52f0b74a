// CUB's operations as cgrt's: each against its meaning, on every target.
#include "cgrt_kernels/cub/cub.h"

#include <cstring>
#include <random>

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

absl::Status check_refusals() {
  CGRT_RETURN_IF_ERROR(refused(plan_cub_scan(kDevice, {.count = 0}).status(), "inclusive scan: there are 0 elements"));
  CGRT_RETURN_IF_ERROR(
      refused(plan_cub_scan(kDevice, {.type = DType::kFloat16, .count = 1}).status(), "no kernel for float16"));
  CGRT_RETURN_IF_ERROR(refused(plan_radix_sort(kDevice, {.count = 9, .begin_bit = 8, .end_bit = 4}).status(),
                               "bits 8 to 4 of a uint32"));
  CGRT_RETURN_IF_ERROR(refused(plan_radix_sort(kDevice, {.count = 9, .end_bit = 33}).status(), "which has 32"));
  CGRT_RETURN_IF_ERROR(refused(plan_select(kDevice, {.count = 0}).status(), "select: there are 0 elements"));
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
  }
  report.check("cub refuses", check_refusals());
}

}  // namespace cgrt::testing
