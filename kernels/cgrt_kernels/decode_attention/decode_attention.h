// Attention of one query per sequence over a cache of keys and values, dense or paged, as a transformer decodes: plan
// once, launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(DecodeAttentionPlan plan, plan_decode_attention(DeviceRef(0), {.heads = 32,
//       .cache = {.sequences = sequences, .positions = positions, .kv_heads = 8, .head_size = 128}}));
//   CGRT_RETURN_IF_ERROR(launch_decode_attention(stream.ref(), plan, {.out = out, .q = q, .k = k_cache, .v = v_cache,
//       .lengths = lengths, .workspace = workspace}));   // see common/workspace.h
//
// Lengths and the block table are read on the device: one executable serves all lengths up to the cache's positions,
// and a length of 0 stands for a sequence that is not there. The cache is read once. Where sequences and heads of the
// cache are few, one has several blocks, which take parts of equal length. They are the blocks of a cluster and send
// their results to each other; or more than these, or on a GPU without clusters (or without the shared memory for
// them), of which the one that ends last finds the results of all in the workspace. The number of blocks is planned for
// sequences of one length: where lengths of a launch differ much, it takes as long as the longest. A plan is a value
// and depends on the device and the descriptor only. One kernel, no allocation, the same bits in every run for the same
// lengths.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/decode_attention/decode_attention_desc.h"

namespace cgrt::kernels {

struct DecodeAttentionParams;

struct DecodeAttentionPlan {
  DecodeAttentionDesc desc;  // with its scale and strides
  Kernel<DecodeAttentionParams> kernel;
  LaunchConfig config;
  std::uint32_t splits;         // blocks that a sequence and a head of the cache have, at most
  std::size_t workspace_bytes;  // 0 where these are one or a cluster

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({config.attributes}); }
};

// kInvalidArgument for other types and head sizes, for sizes of 0 or of 2^31 and more, for heads that are no multiple
// of the cache's or more than kDecodeMaxGroup times as many, for strides that are no multiple of 8 or make arrays of
// more than 2^60 elements, for a window of 2^31 and more, for more blocks than a grid has, for a scale that is not
// finite or negative, and for a row of the block table whose pages hold fewer than `positions` positions.
absl::StatusOr<DecodeAttentionPlan> plan_decode_attention(ContextRef context, const DecodeAttentionDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer and a workspace that is too small.
absl::Status launch_decode_attention(LaunchTarget target, const DecodeAttentionPlan& plan,
                                     const DecodeAttentionArgs& args);

}  // namespace cgrt::kernels
