#include "cgrt_kernels/cub/cub.h"

#include <algorithm>
#include <memory>
#include <random>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/library.h"
#include "cgrt_kernels/histogram/histogram.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/raw_cub.h"

namespace cgrt::bench {
namespace {

using kernels::DType;

struct Set {
  DeviceBuffer out, in, flags, selected, workspace;
};

// Of each element by chance whether it is taken, again and again after a million.
absl::StatusOr<DeviceBuffer> make_flags(StreamRef stream, std::uint64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint8_t> flags(std::min<std::uint64_t>(count, std::uint64_t{1} << 20));
  for (std::uint8_t& flag : flags) flag = static_cast<std::uint8_t>(engine() & 1);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, count));
  for (std::uint64_t done = 0; done < count; done += flags.size()) {
    const std::uint64_t next = std::min<std::uint64_t>(flags.size(), count - done);
    CGRT_RETURN_IF_ERROR(copy(stream, buffer.as<std::uint8_t>() + done, flags.data(), next));
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

// count; half of the elements are selected
absl::StatusOr<Work> make_select(const Case& test, bool is_raw) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  if (is_raw && test.type != DType::kFloat32) return absl::InvalidArgumentError("raw_cub_select takes float32.");
  CGRT_ASSIGN_OR_RETURN(const kernels::SelectPlan plan,
                        kernels::plan_select(kDevice, {.type = test.type, .count = count}));
  const std::uint64_t bytes = count * size_of(test.type);
  std::size_t workspace_bytes = plan.workspace_bytes;
  if (is_raw && !raw_cub_select(nullptr, workspace_bytes, nullptr, nullptr, nullptr, nullptr,
                                static_cast<std::int64_t>(count), nullptr)) {
    return absl::InternalError("cub::DeviceSelect failed.");
  }
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, bytes));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, test.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer flags, make_flags(stream, count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer selected, DeviceBuffer::create(kDevice, sizeof(std::int64_t)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, workspace_bytes));
    const auto set = std::make_shared<Set>(
        Set{std::move(out), std::move(in), std::move(flags), std::move(selected), std::move(workspace)});
    if (!is_raw) {
      return [=](LaunchTarget target) {
        return launch_select(target, plan,
                             {.out = set->out.data(),
                              .in = set->in.data(),
                              .flags = set->flags.as<std::uint8_t>(),
                              .selected = set->selected.as<std::int64_t>(),
                              .workspace = workspace_in(set->workspace)});
      };
    }
    return [=](LaunchTarget target) {
      return kernels::launch_library(target, [&](CUstream into) {
        std::size_t given = workspace_bytes;
        return raw_cub_select(set->workspace.data(), given, set->in.as<float>(), set->flags.as<std::uint8_t>(),
                              set->out.as<float>(), set->selected.as<std::int64_t>(), static_cast<std::int64_t>(count),
                              into)
                   ? absl::OkStatus()
                   : absl::InternalError("cub::DeviceSelect failed.");
      });
    };
  };
  return Work{bytes + bytes / 2 + count, make};
}

// count, bins; of numbers up to two
absl::StatusOr<Work> make_histogram(const Case& test, bool is_raw) {
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t count, test.size("count"));
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t bins, test.size("bins"));
  if (is_raw && test.type != DType::kFloat32) return absl::InvalidArgumentError("raw_cub_histogram takes float32.");
  const kernels::HistogramDesc desc{
      .type = test.type, .count = count, .bins = static_cast<std::int32_t>(bins), .lower = 0, .upper = 2};
  CGRT_ASSIGN_OR_RETURN(const kernels::HistogramPlan plan, kernels::plan_histogram(kDevice, desc));
  std::size_t workspace_bytes = 0;  // of CUB
  if (is_raw && !raw_cub_histogram(nullptr, workspace_bytes, nullptr, nullptr, desc.bins, 0, 2,
                                   static_cast<std::int64_t>(count), nullptr)) {
    return absl::InternalError("cub::DeviceHistogram failed.");
  }
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer counts, DeviceBuffer::create(kDevice, bins * sizeof(std::int32_t)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, test.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer none, DeviceBuffer::create(kDevice, 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer nothing, DeviceBuffer::create(kDevice, 1));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, workspace_bytes));
    const auto set = std::make_shared<Set>(
        Set{std::move(counts), std::move(in), std::move(none), std::move(nothing), std::move(workspace)});
    if (!is_raw) {
      return [=](LaunchTarget target) {
        return launch_histogram(target, plan, {.counts = set->out.as<std::int32_t>(), .in = set->in.data()});
      };
    }
    return [=](LaunchTarget target) {
      return kernels::launch_library(target, [&](CUstream into) {
        std::size_t given = workspace_bytes;
        return raw_cub_histogram(set->workspace.data(), given, set->in.as<float>(), set->out.as<std::int32_t>(),
                                 plan.desc.bins, 0, 2, static_cast<std::int64_t>(count), into)
                   ? absl::OkStatus()
                   : absl::InternalError("cub::DeviceHistogram failed.");
      });
    };
  };
  return Work{count * size_of(test.type), make};
}

}  // namespace

absl::StatusOr<Work> make_cub(const Case& test) {
  if (test.kernel == "select" || test.kernel == "raw_cub_select") return make_select(test, test.kernel[0] == 'r');
  if (test.kernel == "histogram" || test.kernel == "raw_cub_histogram") {
    return make_histogram(test, test.kernel[0] == 'r');
  }
  return absl::NotFoundError("");
}

}  // namespace cgrt::bench
