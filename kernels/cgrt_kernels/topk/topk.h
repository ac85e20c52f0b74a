// The largest of each row with their softmax, as a mixture of experts routes its tokens: plan once, launch into any
// target.
//
//   CGRT_ASSIGN_OR_RETURN(TopkPlan plan, plan_topk(DeviceRef(0), {.type = DType::kBFloat16, .tokens = tokens,
//                                                                 .experts = 128, .k = 8}));
//   CGRT_RETURN_IF_ERROR(launch_topk(stream.ref(), plan, {.weights = weights, .chosen = chosen, .logits = x}));
//
// The number of tokens is read on the device: one executable serves all steps of at most `tokens` tokens, and nothing
// of the others is written. A plan is a value and depends on the device and the descriptor only. One kernel, a warp or
// a part of one for each token, no workspace, no allocation, the same bits in every run.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/topk/topk_desc.h"

namespace cgrt::kernels {

struct TopkParams;

struct TopkPlan {
  TopkDesc desc;
  Kernel<TopkParams> kernel;
  LaunchConfig config;

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for other types, for sizes of 0, for 2^31 tokens and more, for more experts than kTopkMaxExperts,
// and for a k above kTopkMaxChosen or the number of experts.
absl::StatusOr<TopkPlan> plan_topk(ContextRef context, const TopkDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_topk(LaunchTarget target, const TopkPlan& plan, const TopkArgs& args);

}  // namespace cgrt::kernels
