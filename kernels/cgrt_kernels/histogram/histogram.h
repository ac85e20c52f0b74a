// Histograms: plan once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(HistogramPlan plan, plan_histogram(DeviceRef(0), {.type = DType::kFloat32, .count = n,
//                                                                           .bins = 256, .lower = 0, .upper = 1}));
//   CGRT_RETURN_IF_ERROR(launch_histogram(stream.ref(), plan, {.counts = counts, .in = x}));
//
// Two kernels: one zeroes the counts, the other reads the input once, counts in shared memory and adds to them. The
// counts are exact: bin.h says in which bin a number is.
//
// A plan is a value and depends on the device and the descriptor only. Launching is asynchronous and allocates nothing.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/histogram/histogram_desc.h"
#include "cgrt_kernels/histogram/shape.h"

namespace cgrt::kernels {

struct HistogramPlan {
  HistogramDesc desc;
  HistogramRegime regime;
  HistogramShape shape;
  LaunchConfig config;
  EdgeKind edges;  // between the kernels; full where their code was compiled for 8.0

  std::uint64_t topology_id() const;  // see common/topology.h
};

// kInvalidArgument, with the value and its limit, for other types, no elements or more than 2^40, no bins or more than
// 2^24, and a range that is empty, beyond the type, or of fewer integers than bins.
absl::StatusOr<HistogramPlan> plan_histogram(ContextRef context, const HistogramDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_histogram(LaunchTarget target, const HistogramPlan& plan, const HistogramArgs& args);

}  // namespace cgrt::kernels
