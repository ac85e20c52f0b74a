#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/attention/attention.h"
#include "cgrt_kernels/attention/kernels.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "attention";
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 60;

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

}  // namespace

absl::StatusOr<AttentionPlan> plan_attention(ContextRef context, const AttentionDesc& given) {
  AttentionDesc desc = given;
  CGRT_RETURN_IF_ERROR(check_sizes(desc));
  desc.q = with_defaults(desc.q, desc, desc.queries, desc.heads);
  desc.k = with_defaults(desc.k, desc, desc.keys, desc.kv_heads);
  desc.v = with_defaults(desc.v, desc, desc.keys, desc.kv_heads);
  desc.out = with_defaults(desc.out, desc, desc.queries, desc.heads);
  CGRT_RETURN_IF_ERROR(check_strides(desc));
  if (desc.scale == 0) desc.scale = 1 / std::sqrt(static_cast<float>(desc.head_size));

  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const auto tiles_of = [&](AttentionBlock block) {
    return ceil_divide<std::uint64_t>(desc.queries, attention_queries(block));
  };
  const auto is_at_most = [&](std::uint64_t tiles, std::uint64_t blocks) {
    return desc.batch <= blocks / desc.heads && desc.batch * desc.heads <= blocks / tiles;
  };
  // Large blocks where there are at least two for each multiprocessor, which has room for two.
  const std::uint64_t large = tiles_of(AttentionBlock::kLarge);
  const bool is_large = desc.head_size != 256 && desc.queries > attention_queries(AttentionBlock::kSmall) &&
                        !is_at_most(large, std::uint64_t{2} * machine.sms - 1);
  const AttentionBlock block = is_large ? AttentionBlock::kLarge : AttentionBlock::kSmall;
  const std::uint64_t tiles = tiles_of(block);
  if (!is_at_most(tiles, kMaxCount)) {
    return refuse(kName, absl::StrCat(desc.batch, " sequences of ", desc.heads, " heads and ", desc.queries,
                                      " queries are more than ", kMaxCount, " blocks of ", attention_queries(block),
                                      " queries."));
  }
  // As many heads as have their keys and values in a part of the cache.
  constexpr std::uint64_t kCacheBytes = 16 << 20;
  const std::uint64_t head_bytes = 2 * desc.keys * desc.head_size * size_of(desc.type);
  const std::uint64_t heads_at_once =
      std::clamp<std::uint64_t>(kCacheBytes / head_bytes, 1, desc.batch * desc.kv_heads);
  const auto head_size = static_cast<std::uint32_t>(desc.head_size);
  AttentionPlan plan{desc,
                     attention_kernel(desc.type, head_size, block),
                     {},
                     static_cast<std::uint32_t>(tiles),
                     static_cast<std::uint32_t>(heads_at_once)};
  plan.config = {.grid = static_cast<std::uint32_t>(desc.batch * desc.heads * tiles),
                 .block = kAttentionThreads,
                 .shared_bytes = attention_shared_bytes(head_size, block)};
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
  return launch(target, plan.config, plan.kernel,
                AttentionParams{.args = args,
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
                                .scale = static_cast<float>(static_cast<double>(desc.scale) * kLog2E),
                                .mask = desc.mask});
}

}  // namespace cgrt::kernels
