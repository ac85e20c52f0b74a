#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/kv_cache_plan.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/decode_attention/decode_attention.h"
#include "cgrt_kernels/decode_attention/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "decode attention";

absl::Status check_multiple_of_8(const char* stride, std::uint64_t value) {
  if (value % 8 == 0) return absl::OkStatus();
  return refuse(kName, absl::StrCat(stride, " is ", value, "; it must be a multiple of 8, which are 16 bytes."));
}

absl::Status check(const DecodeAttentionDesc& desc) {
  const KvCacheDesc& cache = desc.cache;
  if (desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return refuse_type(kName, desc.type, "float16 and bfloat16");
  }
  CGRT_RETURN_IF_ERROR(check_kv_cache(kName, cache));
  if (cache.head_size != 64 && cache.head_size != 128 && cache.head_size != 256) {
    return refuse(kName, absl::StrCat("head_size is ", cache.head_size, "; it can be 64, 128 or 256."));
  }
  if (desc.heads == 0 || desc.heads % cache.kv_heads != 0 || desc.heads / cache.kv_heads > kDecodeMaxGroup) {
    return refuse(kName, absl::StrCat("heads is ", desc.heads, "; it can be 1 to ", kDecodeMaxGroup, " times ",
                                      cache.kv_heads, ", the kv_heads."));
  }
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("position_stride", cache.position_stride));
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("head_stride", cache.head_stride));
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("block_stride", cache.block_stride));
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("q_stride", desc.q_stride));
  constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 60;
  if (desc.q_stride > kMaxStride / cache.sequences) {
    return refuse(
        kName, absl::StrCat("q_stride is ", desc.q_stride, "; it can be at most ", kMaxStride / cache.sequences, "."));
  }
  if (desc.window > kMaxCount) {
    return refuse(kName, absl::StrCat("window is ", desc.window, "; it can be at most ", kMaxCount, "."));
  }
  return check_not_negative(kName, "scale", desc.scale);
}

// How many blocks each sequence and head of the cache get: those with which the longest sequences take least, as bytes
// that one block reads. The blocks of a wave share the memory's bandwidth equally.
std::uint32_t best_splits(const DecodeAttentionDesc& desc, std::uint64_t pairs, std::uint64_t slots,
                          std::uint64_t tile) {
  const std::uint64_t position_bytes = 2 * desc.cache.head_size * size_of(desc.type);
  const std::uint64_t positions = desc.window == 0 ? desc.cache.positions : std::min(desc.window, desc.cache.positions);
  if (positions <= kDecodeUnsplit) return 1;
  constexpr std::uint64_t kMaxWaves = 4;  // each costs time also where lengths are short and most blocks have nothing
  constexpr std::uint64_t kStartBytes = 48 * 1024;  // what a block could read while it starts and ends
  constexpr std::uint64_t kMergeBytes = 32 * 1024;  // and while the last one finds the parts
  const std::uint64_t part_bytes = desc.heads / desc.cache.kv_heads * desc.cache.head_size * sizeof(float);
  std::uint32_t best = 1;
  std::uint64_t best_bytes = ~std::uint64_t{0};
  const std::uint64_t max_splits =
      std::min(ceil_divide<std::uint64_t>(positions, std::max<std::uint64_t>(tile, kDecodeMinPart)),
               std::max<std::uint64_t>(kMaxWaves * slots / pairs, 1));
  for (std::uint32_t splits = 1; splits <= max_splits; ++splits) {
    const std::uint64_t waves = ceil_divide<std::uint64_t>(pairs * splits, slots);
    const std::uint64_t part = ceil_divide<std::uint64_t>(ceil_divide<std::uint64_t>(positions, tile), splits) * tile;
    const std::uint64_t merge = splits == 1 ? 0 : kMergeBytes + splits * part_bytes / 2;
    const std::uint64_t bytes = waves * (part * position_bytes + kStartBytes) + merge;
    if (bytes < best_bytes) best = splits, best_bytes = bytes;
  }
  return best;
}

}  // namespace

absl::StatusOr<DecodeAttentionPlan> plan_decode_attention(ContextRef context, const DecodeAttentionDesc& given) {
  DecodeAttentionDesc desc = given;
  desc.cache = with_strides(desc.cache);
  CGRT_RETURN_IF_ERROR(check(desc));
  const auto head_size = static_cast<std::uint32_t>(desc.cache.head_size);
  if (desc.scale == 0) desc.scale = 1 / std::sqrt(static_cast<float>(head_size));
  if (desc.q_stride == 0) desc.q_stride = desc.heads * head_size;

  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const std::uint64_t pairs = desc.cache.sequences * desc.cache.kv_heads;
  const auto shared_bytes_of = [&](DecodeBlock block) {
    return decode_warps(head_size, block) * decode_ring_bytes(head_size);
  };
  const bool is_whole = pairs <= machine.sms && shared_bytes_of(DecodeBlock::kWhole) <= machine.shared_per_block;
  const DecodeBlock block = is_whole ? DecodeBlock::kWhole : DecodeBlock::kHalf;
  const std::uint32_t warps = decode_warps(head_size, block);
  DecodeAttentionPlan plan{desc, decode_attention_kernel(desc.type, head_size, block), {}, 1, 0};
  plan.config = {.grid = 0, .block = warps * 32, .shared_bytes = shared_bytes_of(block)};
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(plan.kernel, machine, plan.config.shared_bytes));
  CGRT_ASSIGN_OR_RETURN(const Occupancy fill,
                        occupancy(plan.kernel, context, plan.config.block, plan.config.shared_bytes));
  const std::uint64_t slots = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(fill.blocks_per_sm);
  if (pairs <= WorkspaceHeader::kCounters) plan.splits = best_splits(desc, pairs, slots, warps * kDecodeTile);
  if (pairs > kMaxCount / plan.splits) {
    return refuse(kName, absl::StrCat(desc.cache.sequences, " sequences of ", desc.cache.kv_heads,
                                      " heads are more than ", kMaxCount, " blocks."));
  }
  plan.config.grid = static_cast<std::uint32_t>(pairs * plan.splits);
  if (plan.splits > 1) {
    const std::uint64_t group = desc.heads / desc.cache.kv_heads;
    plan.workspace_bytes = workspace_with(pairs * plan.splits * group * (head_size * sizeof(float) + sizeof(float2)));
  }
  CGRT_RETURN_IF_ERROR(preload(plan.kernel, context));
  return plan;
}

absl::Status launch_decode_attention(LaunchTarget target, const DecodeAttentionPlan& plan,
                                     const DecodeAttentionArgs& args) {
  const DecodeAttentionDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "out", args.out, 16));
  CGRT_RETURN_IF_ERROR(check_array(kName, "lse", args.lse, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "q", args.q, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "k", args.k, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "v", args.v, 16));
  CGRT_RETURN_IF_ERROR(check_array(kName, "lengths", args.lengths, DType::kInt32));
  if (desc.cache.layout == KvLayout::kPaged) {
    CGRT_RETURN_IF_ERROR(check_array(kName, "block_table", args.block_table, DType::kInt32));
  }
  CGRT_RETURN_IF_ERROR(check_workspace(kName, args.workspace, plan.workspace_bytes));
  constexpr double kLog2E = 1.4426950408889634;
  DecodeAttentionParams params{};
  params.args = args;
  params.cache = shape_of(desc.cache);
  params.kv_heads = Divisor(static_cast<std::uint32_t>(desc.cache.kv_heads));
  params.splits = Divisor(plan.splits);
  params.group = static_cast<std::uint32_t>(desc.heads / desc.cache.kv_heads);
  params.window = static_cast<std::uint32_t>(desc.window);
  params.q_stride = desc.q_stride;
  params.scale = static_cast<float>(static_cast<double>(desc.scale) * kLog2E);
  if (plan.splits > 1) {
    params.counters = header_of(args.workspace)->counters;
    params.part_values = reinterpret_cast<float4*>(scratch_of(args.workspace));
    params.part_sums = reinterpret_cast<float2*>(params.part_values + std::uint64_t{plan.config.grid.x} * params.group *
                                                                          (desc.cache.head_size / 4));
  }
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
