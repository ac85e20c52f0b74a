// Rotary position embedding (Su et al., "RoFormer", 2021), as a transformer runs it between the projection of queries,
// keys and values and the attention: bias, rotation, transposition and the append to a cache in one kernel. Plan once,
// launch into any target.
//
//   CGRT_ASSIGN_OR_RETURN(RopePlan plan, plan_rope(DeviceRef(0), {.type = DType::kBFloat16, .tokens = tokens,
//       .heads = 32, .kv_heads = 8, .head_size = 128, .positions = positions,
//       .cache = KvCacheDesc{.sequences = sequences}}));
//   const std::vector<float> angles = rope_table(positions, 128);   // on the host: copy it to `table` once
//   CGRT_RETURN_IF_ERROR(launch_rope(stream.ref(), plan, {.q = q, .k = k_cache, .v = v_cache, .qkv = qkv,
//       .table = table, .position = position, .sequence = sequence}));
//
// Positions, sequences, the block table and the number of tokens are read on the device: one executable serves all
// steps of at most `tokens` tokens. A plan is a value and depends on the device and the descriptor only. One kernel, no
// workspace, no allocation, the same bits in every run. Packs of 16 bytes where arrays, heads and halves of what is
// rotated are aligned to them, single elements elsewhere.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/rope/rope_desc.h"

namespace cgrt::kernels {

struct RopeParams;

struct RopePlan {
  struct Launch {
    Kernel<RopeParams> kernel;
    LaunchConfig config;
    std::uint32_t head_items;  // pairs of packs of a head
  };

  RopeDesc desc;              // with its rotary_size
  Launch aligned, unaligned;  // for arrays that are aligned to 16 bytes, and others

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({aligned.config.attributes}); }
};

// kInvalidArgument for other types, for sizes of 0 or of 2^31 and more, a row of qkv among them, for more threads than
// a grid has, for a rotary_size that is odd or larger than a head, for a cache of other heads, for a row of the block
// table whose pages hold fewer positions than the cache has, and for strides of a cache that make blocks of more than
// 2^60 elements.
absl::StatusOr<RopePlan> plan_rope(ContextRef context, const RopeDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer.
absl::Status launch_rope(LaunchTarget target, const RopePlan& plan, const RopeArgs& args);

// The table of the original embedding: [positions, rotary_size / 2, 2], the cos and the sin of each angle. Pair i of
// position p is rotated by p * base^(-2 i / rotary_size). Angles are computed in double: in float those of late
// positions are off by some hundredths. rotary_size must be even, which is not checked.
std::vector<float> rope_table(std::uint64_t positions, std::uint64_t rotary_size, double base = 10000);

}  // namespace cgrt::kernels
