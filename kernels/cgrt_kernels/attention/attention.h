// Attention of many queries per sequence over their keys and values, as a transformer reads its prompt: plan once,
// launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(AttentionPlan plan, plan_attention(DeviceRef(0), {.mask = AttentionMask::kCausal,
//       .batch = sequences, .queries = tokens, .keys = tokens, .heads = 8, .kv_heads = 2, .head_size = 128}));
//   CGRT_RETURN_IF_ERROR(launch_attention(stream.ref(), plan, {.out = out, .q = q, .k = k, .v = v}));
//
// Offsets and lengths are read on the device: one executable serves all up to the plan's queries and keys. The products
// are tensor cores', and the softmax is computed as keys are read (Dao, "FlashAttention-2", 2023), so that no array of
// scores is written. A plan is a value and depends on the device and the descriptor only. One kernel, no workspace, no
// allocation, the same bits in every run. For one query per sequence see decode_attention.h, which splits the keys.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/attention/attention_desc.h"
#include "cgrt_kernels/common/topology.h"

namespace cgrt::kernels {

struct AttentionParams;

struct AttentionPlan {
  AttentionDesc desc;  // with its scale, strides and kernel
  Kernel<AttentionParams> kernel;
  LaunchConfig config;
  std::uint32_t query_tiles;    // of a head: parts of its queries
  std::uint32_t tiles_at_once;  // 2: a block takes one with many and one with few keys, so that all have as many
  std::uint32_t heads_at_once;  // of keys and values: their blocks are neighbours, so that the cache has what they read

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for other types, masks and head sizes, for sizes of 0 or of 2^31 and more, for heads that are no
// multiple of kv_heads, for strides that are no multiple of 8, for arrays of more than 2^60 elements, for a scale that
// is not finite or negative, for more than 2^31 - 1 tiles of queries, and for a kernel that the device does not have.
absl::StatusOr<AttentionPlan> plan_attention(ContextRef context, const AttentionDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_attention(LaunchTarget target, const AttentionPlan& plan, const AttentionArgs& args);

}  // namespace cgrt::kernels
