// The transposition between heads and tokens around an attention, with and without padding: plan once, launch into any
// target.
//
//   CGRT_ASSIGN_OR_RETURN(TransposeHeadsPlan plan, plan_transpose_heads(DeviceRef(0), {.op = TransposeHeadsOp::kSplit,
//       .type = DType::kBFloat16, .rows = TokenRows::kPacked, .sequences = sequences, .positions = positions,
//       .heads = 8, .head_size = 64, .tokens = sequences * positions}));
//   CGRT_RETURN_IF_ERROR(launch_transpose_heads(stream.ref(), plan, {.out = y, .in = x, .offsets = offsets}));
//
// Offsets are read on the device: one executable serves all lengths. A plan is a value and depends on the device and
// the descriptor only. One kernel, no workspace, no allocation. Elements are read 16 bytes at a time where arrays and
// heads are aligned to them, 8, 4 or 2 where they are aligned to less.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/launch.h"
#include "cgrt_kernels/common/topology.h"
#include "cgrt_kernels/transpose_heads/transpose_heads_desc.h"

namespace cgrt::kernels {

struct TransposeHeadsParams;

struct TransposeHeadsPlan {
  struct Launch {
    Kernel<TransposeHeadsParams> kernel;
    LaunchConfig config;
    std::uint32_t head_packs;  // of a head
    std::uint32_t tiles;       // of a sequence: a thread has some positions
  };

  TransposeHeadsDesc desc;
  Launch by_alignment[4];  // for arrays that are aligned to 16, 8, 4 and 2 bytes

  // See common/topology.h.
  std::uint64_t topology_id() const { return topology_of_kernels({by_alignment[0].config.attributes}); }
};

// kInvalidArgument for other types, for sizes of 0 or of 2^31 and more, the elements of a token and, with packed rows,
// `tokens` among them, for more elements than a grid has threads for, and for more than some 2^31 tiles, which are of
// one position or more: sequences of one position can be 2^31 - 257 at most.
absl::StatusOr<TransposeHeadsPlan> plan_transpose_heads(ContextRef context, const TransposeHeadsDesc& desc);

// kInvalidArgument, with the name of the argument, for a null or misaligned pointer, and for out == in.
absl::Status launch_transpose_heads(LaunchTarget target, const TransposeHeadsPlan& plan,
                                    const TransposeHeadsArgs& args);

}  // namespace cgrt::kernels
