#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/tensor_map.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "attention";
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 60;

#ifdef CGRT_HOPPER
constexpr bool kHasHopper = true;
Kernel<AttentionParams> hopper_kernel(const AttentionDesc& desc) {
  return attention_hopper_kernel(desc.type, desc.head_size);
}
#else
constexpr bool kHasHopper = false;
Kernel<AttentionParams> hopper_kernel(const AttentionDesc&) { return {}; }
#endif

absl::Status check_size(const char* field, std::uint64_t size) {
  if (size >= 1 && size <= kMaxCount) return absl::OkStatus();
  return refuse(kName, absl::StrCat(field, " is ", size, "; it can be 1 to ", kMaxCount, "."));
}

absl::Status check_stride(const char* array, const char* stride, std::uint64_t value, std::uint64_t count) {
  const auto refuse_stride = [&](auto... why) {
    return refuse(kName, absl::StrCat("the ", stride, " stride of ", array, " is ", value, why...));
  };
  if (value % 8 != 0) return refuse_stride("; it must be a multiple of 8, which are 16 bytes.");
  if (value > kMaxElements / count) return refuse_stride("; it can be at most ", kMaxElements / count, ".");
  return absl::OkStatus();
}

absl::Status check_strides(const char* array, const AttentionStrides& strides, const AttentionDesc& desc,
                           std::uint64_t tokens, std::uint64_t heads) {
  CGRT_RETURN_IF_ERROR(check_stride(array, "head", strides.head, heads));
  CGRT_RETURN_IF_ERROR(check_stride(array, "token", strides.token, tokens));
  return check_stride(array, "batch", strides.batch, desc.batch);
}

// Of sizes below 2^31, and head sizes of at most 256. Too large a product is refused as a stride.
AttentionStrides with_defaults(AttentionStrides strides, const AttentionDesc& desc, std::uint64_t tokens,
                               std::uint64_t heads) {
  if (strides.head == 0) strides.head = desc.head_size;
  if (strides.token == 0) strides.token = heads * desc.head_size;
  if (strides.batch == 0) {
    strides.batch = strides.token > kMaxElements / tokens ? kMaxElements : tokens * strides.token;
  }
  return strides;
}

absl::Status check_sizes(const AttentionDesc& desc) {
  if (desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return refuse_type(kName, desc.type, "float16 and bfloat16");
  }
  CGRT_RETURN_IF_ERROR(check_enum(kName, "mask", desc.mask, AttentionMask::kCausal));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "kernel", desc.kernel, AttentionKernel::kHopper));
  CGRT_RETURN_IF_ERROR(check_size("batch", desc.batch));
  CGRT_RETURN_IF_ERROR(check_size("queries", desc.queries));
  CGRT_RETURN_IF_ERROR(check_size("keys", desc.keys));
  CGRT_RETURN_IF_ERROR(check_size("heads", desc.heads));
  CGRT_RETURN_IF_ERROR(check_size("kv_heads", desc.kv_heads));
  if (desc.heads % desc.kv_heads != 0) {
    return refuse(
        kName, absl::StrCat("heads is ", desc.heads, "; it must be a multiple of ", desc.kv_heads, ", the kv_heads."));
  }
  if (desc.head_size != 64 && desc.head_size != 128 && desc.head_size != 256) {
    return refuse(kName, absl::StrCat("head_size is ", desc.head_size, "; it can be 64, 128 or 256."));
  }
  return check_not_negative(kName, "scale", desc.scale);
}

absl::Status check_strides(const AttentionDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_strides("q", desc.q, desc, desc.queries, desc.heads));
  CGRT_RETURN_IF_ERROR(check_strides("k", desc.k, desc, desc.keys, desc.kv_heads));
  CGRT_RETURN_IF_ERROR(check_strides("v", desc.v, desc, desc.keys, desc.kv_heads));
  return check_strides("out", desc.out, desc, desc.queries, desc.heads);
}

// Whether the device has the kernel of sm_90a, and its copies can have the strides.
absl::StatusOr<bool> has_hopper(const Machine& machine, const AttentionDesc& desc) {
  if (!kHasHopper) return false;
  CGRT_ASSIGN_OR_RETURN(const int major, machine.device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CGRT_ASSIGN_OR_RETURN(const int minor, machine.device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  if (major != 9 || minor != 0) return false;
  constexpr std::uint64_t kMaxStrideBytes = std::uint64_t{1} << 40;
  for (const AttentionStrides& strides : {desc.q, desc.k, desc.v}) {
    if (std::max({strides.token, strides.head, strides.batch}) >= kMaxStrideBytes / size_of(desc.type)) return false;
  }
  CGRT_ASSIGN_OR_RETURN(const Machine of_code, machine_of(machine.context, hopper_kernel(desc)));
  return of_code.has_programmatic_edges;  // so it is not translated
}

// Of q, or of k or v, with boxes of `rows` tokens of a head: see tensor_copy.cuh.
absl::StatusOr<CUtensorMap> map_of(const AttentionDesc& desc, const void* array, const AttentionStrides& strides,
                                   std::uint64_t tokens, std::uint64_t heads, std::uint32_t rows) {
  return make_tensor_map(array, desc.type,
                         {{64, 1, 64},
                          {tokens, strides.token, rows},
                          {desc.head_size / 64, 64, static_cast<std::uint32_t>(desc.head_size / 64)},
                          {heads, strides.head, 1},
                          {desc.batch, strides.batch, 1}});
}

absl::Status add_maps(LaunchTarget target, const AttentionDesc& desc, AttentionParams& params) {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));  // as the driver requires
  // Where packed tokens end only the device knows: boxes there are within a sequence.
  const auto tokens = [](const std::int32_t* offsets, std::uint64_t dense) {
    return offsets == nullptr ? dense : kMaxCount;
  };
  const AttentionArgs& args = params.args;
  const std::uint64_t queries = tokens(args.q_offsets, desc.queries), keys = tokens(args.k_offsets, desc.keys);
  const auto head_size = static_cast<std::uint32_t>(desc.head_size);
  const std::uint32_t query_rows = AttentionHopper::queries(head_size), key_rows = AttentionHopper::keys(head_size);
  CGRT_ASSIGN_OR_RETURN(params.q_map, map_of(desc, args.q, desc.q, queries, desc.heads, query_rows));
  CGRT_ASSIGN_OR_RETURN(params.k_map, map_of(desc, args.k, desc.k, keys, desc.kv_heads, key_rows));
  CGRT_ASSIGN_OR_RETURN(params.v_map, map_of(desc, args.v, desc.v, keys, desc.kv_heads, key_rows));
  return absl::OkStatus();
}

// Of all heads.
bool has_at_most(const AttentionDesc& desc, std::uint64_t tiles, std::uint64_t max) {
  return desc.batch <= max / desc.heads && desc.batch * desc.heads <= max / tiles;
}

absl::StatusOr<std::uint32_t> count_tiles(const AttentionDesc& desc, std::uint32_t queries) {
  const auto tiles = ceil_divide<std::uint64_t>(desc.queries, queries);
  if (has_at_most(desc, tiles, kMaxCount)) return static_cast<std::uint32_t>(tiles);
  return refuse(kName, absl::StrCat(desc.batch, " sequences of ", desc.heads, " heads and ", desc.queries,
                                    " queries are more than ", kMaxCount, " tiles of ", queries, " queries."));
}

absl::Status plan_portable(const Machine& machine, AttentionPlan& plan) {
  const AttentionDesc& desc = plan.desc;
  // Large blocks where there are at least two for each multiprocessor, which has room for two (8.0, 9.0).
  const auto large = ceil_divide<std::uint64_t>(desc.queries, attention_queries(AttentionBlock::kLarge));
  const bool is_large = desc.head_size != 256 && desc.queries > attention_queries(AttentionBlock::kSmall) &&
                        !has_at_most(desc, large, std::uint64_t{2} * machine.sms - 1);
  const AttentionBlock block = is_large ? AttentionBlock::kLarge : AttentionBlock::kSmall;
  const auto head_size = static_cast<std::uint32_t>(desc.head_size);
  plan.kernel = attention_kernel(desc.type, head_size, block);
  CGRT_ASSIGN_OR_RETURN(plan.query_tiles, count_tiles(desc, attention_queries(block)));
  plan.tiles_at_once = 1;
  plan.config = {.grid = static_cast<std::uint32_t>(desc.batch * desc.heads) * plan.query_tiles,
                 .block = kAttentionThreads,
                 .shared_bytes = attention_shared_bytes(head_size, block)};
  return absl::OkStatus();
}

// The most that a block has to do in this order, in blocks of keys. A tile takes about one more than it has.
std::uint64_t longest_of(const AttentionDesc& desc, const AttentionOrder& order, std::uint32_t blocks) {
  const auto head_size = static_cast<std::uint32_t>(desc.head_size);
  const std::uint32_t tile_queries = AttentionHopper::queries(head_size);
  const auto queries = static_cast<std::uint32_t>(desc.queries), keys = static_cast<std::uint32_t>(desc.keys);
  const auto cost_of = [&](std::uint32_t tile) {
    const std::uint32_t last = std::min((tile + 1) * tile_queries, queries) - 1;
    return 1 + ceil_divide(seen_by(desc.mask, last, queries, keys), AttentionHopper::keys(head_size));
  };
  std::uint64_t longest = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::uint64_t cost = 0;
    for (std::uint32_t turn = block;; turn += blocks) {
      const std::uint32_t at = order.step_at(turn, blocks);
      if (at >= order.steps()) break;
      const AttentionOrder::Step step = order.at(at);
      cost += cost_of(step.last);
      if (order.tiles_at_once == 2 && step.first != step.last) cost += cost_of(step.first);
    }
    longest = std::max(longest, cost);
  }
  return longest;
}

absl::Status plan_hopper(const Machine& machine, AttentionPlan& plan) {
  const AttentionDesc& desc = plan.desc;
  const auto head_size = static_cast<std::uint32_t>(desc.head_size);
  plan.kernel = hopper_kernel(desc);
  CGRT_ASSIGN_OR_RETURN(plan.query_tiles, count_tiles(desc, AttentionHopper::queries(head_size)));
  const auto heads = static_cast<std::uint32_t>(desc.batch * desc.heads);
  const auto kv_heads = static_cast<std::uint32_t>(desc.batch * desc.kv_heads);
  const auto use = [&](std::uint32_t tiles_at_once, std::uint32_t heads_at_once) {
    plan.tiles_at_once = tiles_at_once, plan.heads_at_once = heads_at_once;
    plan.config.grid = std::min(machine.sms, heads * ceil_divide(plan.query_tiles, tiles_at_once));
  };
  plan.config = {.grid = 1,
                 .block = AttentionHopper::threads(head_size),
                 .shared_bytes = AttentionHopper::shared_bytes(head_size)};
  const std::uint32_t in_cache = plan.heads_at_once;
  if (desc.mask == AttentionMask::kNone || has_at_most(desc, plan.query_tiles, machine.sms)) {
    use(1, in_cache);
    return absl::OkStatus();
  }
  // Pairs of tiles take equally long, but there may be a few more of them than blocks. Single tiles are spread best
  // over sections of equal length: as many as let each fit into the cache, or half as many.
  constexpr std::uint64_t kMaxTilesOfBlock = 16;
  const auto cost_of = [&](std::uint32_t tiles_at_once, std::uint32_t heads_at_once) {
    use(tiles_at_once, heads_at_once);
    const std::uint32_t group = heads / kv_heads;
    return longest_of(desc, {heads, heads_at_once * group, plan.query_tiles, tiles_at_once}, plan.config.grid.x);
  };
  std::uint32_t tiles_at_once = 2, heads_at_once = in_cache;
  if (has_at_most(desc, plan.query_tiles, kMaxTilesOfBlock * machine.sms)) {
    std::uint64_t least = cost_of(2, in_cache);
    const std::uint32_t sections = ceil_divide(kv_heads, in_cache);
    for (const std::uint32_t equal : {ceil_divide(kv_heads, sections), ceil_divide(kv_heads, (sections + 1) / 2)}) {
      if (const std::uint64_t cost = cost_of(1, equal); 100 * cost < 97 * least) {
        least = cost, tiles_at_once = 1, heads_at_once = equal;
      }
    }
  }
  use(tiles_at_once, heads_at_once);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttentionPlan> plan_attention(ContextRef context, const AttentionDesc& given) {
  AttentionPlan plan{
      .desc = given, .kernel = {}, .config = {}, .query_tiles = 0, .tiles_at_once = 0, .heads_at_once = 0};
  AttentionDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_sizes(desc));
  desc.q = with_defaults(desc.q, desc, desc.queries, desc.heads);
  desc.k = with_defaults(desc.k, desc, desc.keys, desc.kv_heads);
  desc.v = with_defaults(desc.v, desc, desc.keys, desc.kv_heads);
  desc.out = with_defaults(desc.out, desc, desc.queries, desc.heads);
  CGRT_RETURN_IF_ERROR(check_strides(desc));
  if (desc.scale == 0) desc.scale = 1 / std::sqrt(static_cast<float>(desc.head_size));

  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  if (desc.kernel != AttentionKernel::kPortable) {
    CGRT_ASSIGN_OR_RETURN(const bool is_there, has_hopper(machine, desc));
    if (desc.kernel == AttentionKernel::kHopper && !is_there) {
      return refuse(kName, "kernel is hopper, which this device, this build or these strides do not have. Say best.");
    }
    // With fewer of either the small blocks of the other are faster on an H100: 64 of both take 4.0 us, not 10.1.
    const bool is_best = is_there && desc.queries > attention_queries(AttentionBlock::kSmall) && desc.keys >= 256;
    if (desc.kernel == AttentionKernel::kBest) {
      desc.kernel = is_best ? AttentionKernel::kHopper : AttentionKernel::kPortable;
    }
  }
  // As many heads as have their keys and values in a part of the cache.
  constexpr std::uint64_t kCacheBytes = 16 << 20;
  const std::uint64_t head_bytes = 2 * desc.keys * desc.head_size * size_of(desc.type);
  plan.heads_at_once =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kCacheBytes / head_bytes, 1, desc.batch * desc.kv_heads));
  CGRT_RETURN_IF_ERROR(desc.kernel == AttentionKernel::kHopper ? plan_hopper(machine, plan)
                                                               : plan_portable(machine, plan));
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(plan.kernel, machine, plan.config.shared_bytes));
  CGRT_RETURN_IF_ERROR(preload(plan.kernel, context));
  return plan;
}

absl::Status launch_attention(LaunchTarget target, const AttentionPlan& plan, const AttentionArgs& args) {
  const AttentionDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "out", args.out, 16));
  CGRT_RETURN_IF_ERROR(check_array(kName, "lse", args.lse, DType::kFloat32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "q", args.q, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "k", args.k, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "v", args.v, 16));
  CGRT_RETURN_IF_ERROR(check_array(kName, "q_offsets", args.q_offsets, DType::kInt32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "k_offsets", args.k_offsets, DType::kInt32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "q_lengths", args.q_lengths, DType::kInt32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "k_lengths", args.k_lengths, DType::kInt32, Need::kOptional));
  constexpr double kLog2E = 1.4426950408889634;
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  AttentionParams params{.args = args,
                         .q = desc.q,
                         .k = desc.k,
                         .v = desc.v,
                         .out = desc.out,
                         .batch = narrow(desc.batch),
                         .queries = narrow(desc.queries),
                         .keys = narrow(desc.keys),
                         .heads = narrow(desc.heads),
                         .kv_heads = narrow(desc.kv_heads),
                         .group = narrow(desc.heads / desc.kv_heads),
                         .query_tiles = plan.query_tiles,
                         .heads_at_once = plan.heads_at_once,
                         .tiles_at_once = plan.tiles_at_once,
                         .scale = static_cast<float>(static_cast<double>(desc.scale) * kLog2E),
                         .mask = desc.mask,
                         .q_map = {},
                         .k_map = {},
                         .v_map = {}};
  if (desc.kernel == AttentionKernel::kHopper) CGRT_RETURN_IF_ERROR(add_maps(target, desc, params));
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
