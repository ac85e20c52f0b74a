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
// Each costs time also where lengths are short and most blocks have nothing.
constexpr std::uint64_t kMaxWaves = 4;

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
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("head_stride", cache.head_stride));  // others may follow from it
  CGRT_RETURN_IF_ERROR(check_multiple_of_8("position_stride", cache.position_stride));
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

// How a sequence and a head of the cache are divided among blocks.
struct Split {
  std::uint32_t count = 1;
  bool is_cluster = false;
};

// Of the longest sequences.
std::uint64_t tiles_of(const DecodeAttentionDesc& desc) {
  const std::uint64_t positions = desc.window == 0 ? desc.cache.positions : std::min(desc.window, desc.cache.positions);
  return ceil_divide<std::uint64_t>(positions, kDecodeTile);
}

// What these take, as bytes that a block reads while all multiprocessors read.
class Cost {
 public:
  Cost(const DecodeAttentionDesc& desc, std::uint64_t pairs, std::uint64_t slots) : pairs_(pairs), slots_(slots) {
    const KvCacheDesc& cache = desc.cache;
    tiles = tiles_of(desc);
    tile_bytes_ = 2 * kDecodeTile * cache.head_size * size_of(desc.type);
    part_bytes_ = desc.heads / cache.kv_heads * cache.head_size * sizeof(float);
  }

  // `pairs_at_once`: that have all of their blocks on the device.
  std::uint64_t of(const Split& split, std::uint64_t pairs_at_once) const {
    const std::uint64_t waves = ceil_divide<std::uint64_t>(pairs_, pairs_at_once);
    const std::uint64_t blocks = std::min(ceil_divide<std::uint64_t>(pairs_, waves) * split.count, slots_);
    // The blocks of a wave share the memory's bandwidth: one alone gets at most 11 / 4 of its share, half as many as
    // there could be leave a fortieth (H100).
    const std::uint64_t part = ceil_divide<std::uint64_t>(tiles, split.count) * tile_bytes_;
    const std::uint64_t all = part * blocks / slots_, lost = blocks * 4 < slots_ * 3 ? all / 40 : 0;
    const std::uint64_t shared = std::max(all + lost, part * 4 / 11);
    constexpr std::uint64_t kStart = 48 * 1024, kClusterMerge = 16 * 1024, kMerge = 32 * 1024;
    const std::uint64_t merge = split.count == 1   ? 0
                                : split.is_cluster ? kClusterMerge
                                                   : kMerge + split.count * part_bytes_ / 2;
    return waves * (shared + kStart) + merge;
  }

  std::uint64_t tiles;

 private:
  std::uint64_t pairs_, slots_, tile_bytes_, part_bytes_;
};

std::uint32_t shared_bytes_of(const DecodeAttentionDesc& desc, DecodeBlock block, const Split& split) {
  const auto head_size = static_cast<std::uint32_t>(desc.cache.head_size);
  const auto group = static_cast<std::uint32_t>(desc.heads / desc.cache.kv_heads);
  return decode_warps(head_size, block) * decode_ring_bytes(head_size) +
         (split.is_cluster ? decode_sent_bytes(head_size, group, split.count) : 0);
}

// The split that takes least.
absl::StatusOr<Split> split_of(const Machine& machine, const DecodeAttentionPlan& plan, DecodeBlock block,
                               std::uint64_t pairs) {
  const DecodeAttentionDesc& desc = plan.desc;
  Split best;
  CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm,
                        occupancy(plan.kernel, machine.context, plan.config.block, shared_bytes_of(desc, block, best)));
  const std::uint64_t slots = std::uint64_t{machine.sms} * static_cast<std::uint64_t>(of_sm.blocks_per_sm);
  const Cost cost(desc, pairs, slots);
  std::uint64_t best_cost = cost.of(best, slots);
  const auto consider = [&](const Split& split, std::uint64_t pairs_at_once) {
    const std::uint64_t some = cost.of(split, pairs_at_once);
    if (some < best_cost) best = split, best_cost = some;
  };
  if (machine.has_clusters) {
    const std::uint64_t max_count = std::min<std::uint64_t>(cost.tiles, kDecodeMaxCluster);
    for (std::uint32_t count = 2; count <= max_count && pairs * count <= kMaxWaves * slots; ++count) {
      const Split split{count, true};
      CGRT_ASSIGN_OR_RETURN(const int clusters,
                            max_active_clusters(plan.kernel, machine.context, count, plan.config.block,
                                                shared_bytes_of(desc, block, split)));
      if (clusters > 0) consider(split, static_cast<std::uint64_t>(clusters));
    }
  }
  if (cost.tiles * kDecodeTile <= kDecodeUnsplit || pairs > WorkspaceHeader::kCounters) return best;
  const std::uint64_t max_count =
      std::min(ceil_divide<std::uint64_t>(cost.tiles, kDecodeMinPart / kDecodeTile), kMaxWaves * slots / pairs);
  for (std::uint32_t count = 2; count <= max_count; ++count) {
    consider({count, false}, std::max<std::uint64_t>(slots / count, 1));
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

  const auto kernel_of = [&](DecodeBlock block) { return decode_attention_kernel(desc.type, head_size, block); };
  CGRT_ASSIGN_OR_RETURN(Machine machine, machine_of(context, kernel_of(DecodeBlock::kWhole)));
  const std::uint64_t pairs = desc.cache.sequences * desc.cache.kv_heads;
  Split most{kDecodeMaxCluster, machine.has_clusters};
  if (shared_bytes_of(desc, DecodeBlock::kHalf, most) > machine.shared_per_block) {  // devices of 12.x have 99 KiB
    machine = without_clusters(machine);
    most.is_cluster = false;
  }
  const bool is_whole =
      pairs <= machine.sms && shared_bytes_of(desc, DecodeBlock::kWhole, most) <= machine.shared_per_block;
  DecodeAttentionPlan plan{desc, {}, {}, 1, 0};
  DecodeBlock block = DecodeBlock::kWhole;
  const auto use = [&](DecodeBlock some) {
    block = some;
    plan.kernel = kernel_of(block);
    plan.config.block = decode_warps(head_size, block) * 32;
    return allow_shared_bytes(plan.kernel, machine, shared_bytes_of(desc, block, most));
  };
  CGRT_RETURN_IF_ERROR(use(is_whole ? DecodeBlock::kWhole : DecodeBlock::kHalf));
  CGRT_ASSIGN_OR_RETURN(const Split split, split_of(machine, plan, block, pairs));
  // Halves start sooner where their warps have no more than a tile each.
  const std::uint64_t tiles_of_block = ceil_divide<std::uint64_t>(tiles_of(desc), split.count);
  if (tiles_of_block <= decode_warps(head_size, DecodeBlock::kHalf)) CGRT_RETURN_IF_ERROR(use(DecodeBlock::kHalf));
  if (pairs > kMaxCount / split.count) {
    return refuse(kName, absl::StrCat(desc.cache.sequences, " sequences of ", desc.cache.kv_heads,
                                      " heads are more than ", kMaxCount, " blocks."));
  }
  plan.splits = split.count;
  plan.config.grid = static_cast<std::uint32_t>(pairs * split.count);
  plan.config.shared_bytes = shared_bytes_of(desc, block, split);
  if (split.is_cluster) {
    plan.config.attributes.cluster = split.count;
  } else if (split.count > 1) {
    const std::uint64_t group = desc.heads / desc.cache.kv_heads;
    plan.workspace_bytes = workspace_with(pairs * split.count * group * (head_size * sizeof(float) + sizeof(float2)));
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
  params.is_cluster = plan.config.attributes.cluster.x > 1;
  if (plan.workspace_bytes > 0) {
    params.counters = header_of(args.workspace)->counters;
    params.part_values = reinterpret_cast<float4*>(scratch_of(args.workspace));
    params.part_sums = reinterpret_cast<float2*>(params.part_values + std::uint64_t{plan.config.grid.x} * params.group *
                                                                          (desc.cache.head_size / 4));
  }
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
