#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/kv_cache_plan.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/rope/kernels.h"
#include "cgrt_kernels/rope/rope.h"

namespace cgrt::kernels {
namespace {

struct Size {
  const char* name;
  std::uint64_t value;
};

absl::Status check_sizes(const char* name, std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value >= 1 && size.value <= kMaxCount) continue;
    return refuse(name, absl::StrCat(size.name, " is ", size.value, "; it can be 1 to ", kMaxCount, "."));
  }
  return absl::OkStatus();
}

const char* name_of(const RopeDesc& desc) {
  if (!desc.cache) return "rope";
  return desc.cache->layout == KvLayout::kPaged ? "rope with a paged cache" : "rope with a dense cache";
}

// With what is 0 there.
RopeDesc complete(RopeDesc desc) {
  if (desc.rotary_size == 0) desc.rotary_size = desc.head_size;
  if (desc.pairs == RopePairs::kNone) desc.rotary_size = 0;
  if (!desc.cache) return desc;
  KvCacheDesc& cache = *desc.cache;
  if (cache.kv_heads == 0) cache.kv_heads = desc.kv_heads;
  if (cache.head_size == 0) cache.head_size = desc.head_size;
  if (cache.positions == 0) cache.positions = desc.positions;
  cache = with_strides(cache);
  return desc;
}

absl::Status check(const RopeDesc& desc) {
  const char* const name = name_of(desc);
  CGRT_RETURN_IF_ERROR(check_enum(name, "pairs", desc.pairs, RopePairs::kNone));
  CGRT_RETURN_IF_ERROR(check_float(name, desc.type));
  CGRT_RETURN_IF_ERROR(check_sizes(name, {{"tokens", desc.tokens},
                                          {"heads", desc.heads},
                                          {"kv_heads", desc.kv_heads},
                                          {"head_size", desc.head_size},
                                          {"positions", desc.positions}}));
  const std::uint64_t rows = desc.heads + 2 * desc.kv_heads;
  if (rows > kMaxCount / desc.head_size) {
    return refuse(name, absl::StrCat("a row of qkv has ", rows, " heads of ", desc.head_size, " elements, more than ",
                                     kMaxCount, " in all."));
  }
  if (desc.rotary_size % 2 != 0 || desc.rotary_size > desc.head_size) {
    return refuse(name, absl::StrCat("rotary_size is ", desc.rotary_size, "; it can be an even number of at most ",
                                     desc.head_size, ", the head_size."));
  }
  if (!desc.cache) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(check_kv_cache(name, *desc.cache));
  if (desc.cache->kv_heads == desc.kv_heads && desc.cache->head_size == desc.head_size) return absl::OkStatus();
  return refuse(name, absl::StrCat("the cache has ", desc.cache->kv_heads, " heads of ", desc.cache->head_size,
                                   " elements, but rows of qkv have ", desc.kv_heads, " of ", desc.head_size, "."));
}

// Whether heads begin and end between packs, and pairs are not of one pack and the next.
bool has_packs(const RopeDesc& desc) {
  const std::uint64_t pack = 16 / size_of(desc.type);
  if (desc.head_size % pack != 0) return false;
  if (desc.pairs == RopePairs::kHalves && desc.rotary_size / 2 % pack != 0) return false;
  if (!desc.cache) return true;
  const KvCacheDesc& cache = *desc.cache;
  return cache.position_stride % pack == 0 && cache.head_stride % pack == 0 && cache.block_stride % pack == 0;
}

absl::StatusOr<RopePlan::Launch> plan_launch(ContextRef context, const RopeDesc& desc, Alignment alignment) {
  const std::uint64_t pack = alignment == Alignment::kAligned ? 16 / size_of(desc.type) : 1;
  RopePlan::Launch launch{rope_kernel(desc.type, desc.pairs, alignment), {}, 0};
  launch.head_items = ceil_divide(desc.head_size, 2 * pack);
  const std::uint64_t row_items = (desc.heads + 2 * desc.kv_heads) * launch.head_items;
  if (desc.tokens > kMaxCount * kRopeBlock / row_items) {
    return refuse(name_of(desc), absl::StrCat(desc.tokens, " tokens of ", row_items, " threads are more than ",
                                              kMaxCount, " blocks of ", kRopeBlock, "."));
  }
  launch.config = {.grid = ceil_divide(desc.tokens * row_items, kRopeBlock), .block = kRopeBlock};
  CGRT_RETURN_IF_ERROR(preload(launch.kernel, context));
  return launch;
}

}  // namespace

absl::StatusOr<RopePlan> plan_rope(ContextRef context, const RopeDesc& desc) {
  RopePlan plan{complete(desc), {}, {}};
  CGRT_RETURN_IF_ERROR(check(plan.desc));
  CGRT_ASSIGN_OR_RETURN(plan.unaligned, plan_launch(context, plan.desc, Alignment::kUnaligned));
  plan.aligned = plan.unaligned;
  if (has_packs(plan.desc)) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned, plan_launch(context, plan.desc, Alignment::kAligned));
  }
  return plan;
}

absl::Status launch_rope(LaunchTarget target, const RopePlan& plan, const RopeArgs& args) {
  const RopeDesc& desc = plan.desc;
  const char* const name = name_of(desc);
  CGRT_RETURN_IF_ERROR(check_array(name, "q", args.q, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "k", args.k, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "v", args.v, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "qkv", args.qkv, desc.type));
  if (desc.has_bias) CGRT_RETURN_IF_ERROR(check_array(name, "bias", args.bias, desc.type));
  if (desc.pairs != RopePairs::kNone) CGRT_RETURN_IF_ERROR(check_pointer(name, "table", args.table, 8));
  CGRT_RETURN_IF_ERROR(check_array(name, "position", args.position, DType::kInt32));
  CGRT_RETURN_IF_ERROR(check_array(name, "token_count", args.token_count, DType::kInt32, Need::kOptional));
  if (desc.cache) {
    CGRT_RETURN_IF_ERROR(check_array(name, "sequence", args.sequence, DType::kInt32));
  }
  if (desc.cache && desc.cache->layout == KvLayout::kPaged) {
    CGRT_RETURN_IF_ERROR(check_array(name, "block_table", args.block_table, DType::kInt32));
  }

  RopeParams params{};
  params.args = args;
  if (!desc.has_bias) params.args.bias = nullptr;
  if (desc.pairs == RopePairs::kNone) params.args.table = nullptr;
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  const float* const packed = desc.pairs == RopePairs::kHalves ? args.table : nullptr;  // what is read by 16 bytes
  const Alignment alignment = alignment_of(args.q, args.k, args.v, args.qkv, params.args.bias, packed);
  const RopePlan::Launch& chosen = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  params.tokens = narrow(desc.tokens), params.positions = narrow(desc.positions);
  params.heads = narrow(desc.heads), params.kv_heads = narrow(desc.kv_heads);
  params.head_size = narrow(desc.head_size), params.rotary_size = narrow(desc.rotary_size);
  if (desc.cache) {
    params.cache = shape_of(*desc.cache);
  } else {
    params.args.sequence = nullptr;
    params.cache.position_stride = desc.kv_heads * desc.head_size, params.cache.head_stride = desc.head_size;
  }
  params.head_items = Divisor(chosen.head_items);
  params.row_items = WideDivisor((params.heads + 2 * params.kv_heads) * chosen.head_items);
  return launch(target, chosen.config, chosen.kernel, params);
}

std::vector<float> rope_table(std::uint64_t positions, std::uint64_t rotary_size, double base) {
  std::vector<float> table;
  table.reserve(positions * rotary_size);
  for (std::uint64_t position = 0; position < positions; ++position) {
    for (std::uint64_t i = 0; i < rotary_size / 2; ++i) {
      const double exponent = 2 * static_cast<double>(i) / static_cast<double>(rotary_size);
      const double angle = static_cast<double>(position) * std::pow(base, -exponent);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

}  // namespace cgrt::kernels
