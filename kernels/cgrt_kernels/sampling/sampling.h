// One token of each row of logits, the largest or drawn at random, as a language model decodes: plan once, launch into
// any target.
//
//   CGRT_ASSIGN_OR_RETURN(SamplingPlan plan, plan_sampling(DeviceRef(0), {.op = SamplingOp::kFiltered,
//       .type = DType::kBFloat16, .rows = sequences, .vocabulary = vocabulary}));
//   const RandomState seeded{.seed = 42};
//   CGRT_RETURN_IF_ERROR(copy(stream.ref(), state, &seeded, sizeof(seeded)));   // once
//   CGRT_RETURN_IF_ERROR(launch_sampling(stream.ref(), plan, {.token = sampled, .logits = x,
//       .temperature = temperature, .top_k = top_k, .top_p = top_p, .state = state}));
//
// Temperature, top-k and top-p of each row and the number of rows are read on the device: one executable serves all
// steps of at most `rows` rows, and nothing of the others is written. But for kFiltered, blocks share the rows that
// there are then: few of a thousand take little longer than with a plan for a few. A plan for many thousands launches
// a block for each, and those without a row end at once. The state is on the device and moves on with each launch:
// every replay of a graph draws anew, and the same state gives the same tokens, whatever the target. A plan is a value
// and depends on the device and the descriptor only. One kernel, no allocation.
//
// Nothing is sorted. A filtered row is read from global memory once where it fits the shared memory of a cluster of 8
// blocks (1.4 MB on an H100; of one block below sm_90), else some five times.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/common/workspace.h"
#include "cgrt_kernels/sampling/sampling_desc.h"

namespace cgrt::kernels {

struct SamplingParams;

struct SamplingPlan {
  SamplingDesc desc;
  Kernel<SamplingParams> aligned, unaligned;  // for logits whose rows begin at multiples of 16 bytes, and others
  LaunchConfig config;                        // of launches with row_count; some without have fewer blocks
  std::uint32_t slices = 1, slice = 0;        // blocks that share a row of as many as the plan has, and logits of each
  std::uint32_t blocks = 0;                   // that share rows; not of kFiltered
  std::size_t workspace_bytes = 0;            // 0 for a vocabulary of at most 4096, and for kFiltered

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for other types, and for sizes of 0 or of 2^31 and more.
absl::StatusOr<SamplingPlan> plan_sampling(ContextRef context, const SamplingDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for a workspace that is too
// small.
absl::Status launch_sampling(LaunchTarget target, const SamplingPlan& plan, const SamplingArgs& args);

}  // namespace cgrt::kernels
