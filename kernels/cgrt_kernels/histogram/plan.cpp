#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/histogram/histogram.h"
#include "cgrt_kernels/histogram/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 40;
constexpr std::int32_t kMaxBins = 1 << 24;
constexpr std::uint32_t kPackElements = 4;

constexpr std::uint32_t kOtherShared = 1024;         // bytes of reserved shared memory
constexpr std::uint32_t kBytesOfCopies = 64 * 1024;  // where each bin has several counters
constexpr std::uint32_t kMaxCopies = 32;
// Blocks zero and read all their counters. Where bins are more than these and elements few, that takes longer than to
// add each element to the result.
constexpr std::uint64_t kFewBins = 4096, kElementsOfBin = 32;

// An int32 may be up to 2^31, which no element is.
absl::Status check_range(const HistogramDesc& desc) {
  const bool is_integer = desc.type == DType::kInt32;
  const double limit = is_integer ? 0x1p31 : static_cast<double>(std::numeric_limits<float>::max());
  const std::string range = absl::StrCat("the range from ", desc.lower, " to ", desc.upper);
  if (!(desc.lower < desc.upper) || !(std::abs(desc.lower) <= limit) || !(std::abs(desc.upper) <= limit)) {
    return refuse("histogram", absl::StrCat(range, " is empty or not one of ", to_string(desc.type), "."));
  }
  const auto as_element = [&](double bound) {
    return is_integer ? std::trunc(bound) : static_cast<double>(static_cast<float>(bound));
  };
  const double lower = as_element(desc.lower), upper = as_element(desc.upper);
  if (lower == upper) {
    return refuse("histogram", absl::StrCat(range, " is empty: both are ", lower, " as ", to_string(desc.type), "."));
  }
  if (is_integer && upper - lower < desc.bins) {
    return refuse("histogram", absl::StrCat(range, " has ", upper - lower, " integers for ", desc.bins,
                                            " bins; a bin of int32 must have one at least."));
  }
  return absl::OkStatus();
}

std::uint32_t bytes_of(std::uint64_t counters, std::uint32_t size) {
  return static_cast<std::uint32_t>(ceil_divide<std::uint64_t>(counters * size, 16) * 16);
}

void choose(const Machine& machine, HistogramPlan& plan) {
  const HistogramDesc& desc = plan.desc;
  const auto bins = static_cast<std::uint64_t>(desc.bins);
  const std::uint64_t counters = bins + 1;  // and one of those that are in no bin
  const std::uint64_t limit = machine.shared_per_block - kOtherShared;
  std::uint32_t bytes = 0;
  plan.shape = {.bins = static_cast<std::uint32_t>(bins)};
  const bool is_sparse = bins > kFewBins && desc.count / kElementsOfBin < bins;
  if (is_sparse || counters * 2 > limit) {
    plan.regime = HistogramRegime::kGlobal;
  } else if (counters * 4 <= limit) {
    plan.regime = HistogramRegime::kWords;
    const std::uint64_t copies = std::bit_floor(std::max<std::uint64_t>(kBytesOfCopies / (counters * 4), 1));
    plan.shape.copies = static_cast<std::uint32_t>(std::min<std::uint64_t>(copies, kMaxCopies));
    bytes = bytes_of(counters * plan.shape.copies, 4);
  } else {
    plan.regime = HistogramRegime::kHalves;
    bytes = bytes_of(ceil_divide<std::uint64_t>(counters, 2), 4);
  }
  plan.shape.words = bytes / 4;
  const std::uint32_t sms = machine.sms;
  const std::uint64_t blocks = ceil_divide<std::uint64_t>(desc.count, kPackElements * kHistogramBlock);
  plan.config = {.grid = static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, sms)),
                 .block = kHistogramBlock,
                 .shared_bytes = bytes};
}

template <class T>
absl::Status count_bins(LaunchTarget target, const HistogramPlan& plan, const HistogramArgs& args) {
  const HistogramParams<T> params{args.counts, static_cast<const T*>(args.in), plan.desc.count, BinOf<T>(plan.desc),
                                  plan.shape};
  return launch(target, plan.config, histogram_kernel<T>(plan.regime), params);
}

}  // namespace

absl::StatusOr<HistogramPlan> plan_histogram(ContextRef context, const HistogramDesc& desc) {
  const bool is_integer = desc.type == DType::kInt32;
  if (desc.count == 0 || desc.count > kMaxElements) {
    return refuse("histogram",
                  absl::StrCat("there are ", desc.count, " elements; there must be from 1 to ", kMaxElements, "."));
  }
  if (!is_integer && desc.type != DType::kFloat32) {
    return refuse_type("histogram", desc.type, "int32 and float32");
  }
  if (desc.bins < 1 || desc.bins > kMaxBins) {
    return refuse("histogram", absl::StrCat("there are ", desc.bins, " bins; there must be from 1 to ", kMaxBins, "."));
  }
  CGRT_RETURN_IF_ERROR(check_range(desc));
  HistogramPlan plan{desc, HistogramRegime::kGlobal, {}, {}, EdgeKind::kProgrammatic};
  const auto of_type = [&](HistogramRegime regime) {
    return is_integer ? KernelRef(histogram_kernel<std::int32_t>(regime)) : KernelRef(histogram_kernel<float>(regime));
  };
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, of_type(plan.regime)));
  choose(machine, plan);
  if (!machine.has_programmatic_edges) plan.edges = EdgeKind::kFull;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(of_type(plan.regime), machine, plan.config.shared_bytes));
  CGRT_RETURN_IF_ERROR(preload(clear_counts_kernel(), context));
  CGRT_RETURN_IF_ERROR(preload(of_type(plan.regime), context));
  return plan;
}

std::uint64_t HistogramPlan::topology_id() const {
  return topology_of_kernels({LaunchAttributes{}, config.attributes}, edges);
}

absl::Status launch_histogram(LaunchTarget target, const HistogramPlan& plan, const HistogramArgs& args) {
  const char* const name = "histogram";
  CGRT_RETURN_IF_ERROR(check_pointer(name, "counts", args.counts, 4));
  CGRT_RETURN_IF_ERROR(check_pointer(name, "in", args.in, 4));
  const auto bins = static_cast<std::uint32_t>(plan.desc.bins);
  const LaunchConfig clear{.grid = ceil_divide(bins, kClearCountsBlock), .block = kClearCountsBlock};
  CGRT_RETURN_IF_ERROR(launch(target, clear, clear_counts_kernel(), args.counts, bins));
  if (plan.edges == EdgeKind::kProgrammatic) target = target.programmatic();
  if (plan.desc.type == DType::kInt32) return count_bins<std::int32_t>(target, plan, args);
  return count_bins<float>(target, plan, args);
}

}  // namespace cgrt::kernels
