#include "cgrt_kernels/common/kv_cache_plan.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 60;

struct Size {
  const char* name;
  std::uint64_t value;
};

absl::Status check_sizes(OperationName name, std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value >= 1 && size.value <= kMaxCount) continue;
    return refuse(name, absl::StrCat(size.name, " is ", size.value, "; it can be 1 to ", kMaxCount, "."));
  }
  return absl::OkStatus();
}

bool is_paged(const KvCacheDesc& cache) { return cache.layout == KvLayout::kPaged; }
std::uint64_t blocks_of(const KvCacheDesc& cache) { return is_paged(cache) ? cache.pages : cache.sequences; }
std::uint64_t positions_of_block(const KvCacheDesc& cache) {
  return is_paged(cache) ? cache.page_size : cache.positions;
}

// Beyond 64 bits: more than kMaxElements.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kMaxElements / b ? kMaxElements + 1 : a * b;
}

}  // namespace

KvCacheDesc with_strides(KvCacheDesc cache) {
  if (cache.head_stride == 0) cache.head_stride = cache.head_size;
  const std::uint64_t heads = product(cache.kv_heads, cache.head_stride);
  if (cache.position_stride == 0) cache.position_stride = heads;
  if (cache.block_stride == 0) {  // positions of all heads, or heads of all positions
    cache.block_stride = std::max(product(positions_of_block(cache), cache.position_stride), heads);
  }
  return cache;
}

absl::Status check_kv_cache(OperationName name, const KvCacheDesc& cache) {
  CGRT_RETURN_IF_ERROR(check_enum(name, "layout", cache.layout, KvLayout::kPaged));
  CGRT_RETURN_IF_ERROR(check_sizes(name, {{"sequences", cache.sequences},
                                          {"positions", cache.positions},
                                          {"kv_heads", cache.kv_heads},
                                          {"head_size", cache.head_size}}));
  if (is_paged(cache)) {
    CGRT_RETURN_IF_ERROR(check_sizes(
        name,
        {{"pages", cache.pages}, {"page_size", cache.page_size}, {"pages_per_sequence", cache.pages_per_sequence}}));
    if (cache.pages_per_sequence * cache.page_size < cache.positions) {
      return refuse(name, absl::StrCat("pages_per_sequence is ", cache.pages_per_sequence, ": pages of ",
                                       cache.page_size, " hold fewer than ", cache.positions, " positions."));
    }
  }
  const Size counts[] = {{"head_stride", cache.kv_heads},
                         {"position_stride", positions_of_block(cache)},
                         {"block_stride", blocks_of(cache)}};
  const std::uint64_t strides[] = {cache.head_stride, cache.position_stride, cache.block_stride};
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t max = kMaxElements / counts[i].value;
    if (strides[i] <= max) continue;
    return refuse(name, absl::StrCat(counts[i].name, " is ", strides[i], "; it can be at most ", max, "."));
  }
  return absl::OkStatus();
}

KvCacheShape shape_of(const KvCacheDesc& cache) {
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  return {.layout = cache.layout,
          .sequences = narrow(cache.sequences),
          .positions = narrow(cache.positions),
          .blocks = narrow(blocks_of(cache)),
          .pages_per_sequence = narrow(cache.pages_per_sequence),
          .block_size = Divisor(narrow(positions_of_block(cache))),
          .position_stride = cache.position_stride,
          .head_stride = cache.head_stride,
          .block_stride = cache.block_stride};
}

}  // namespace cgrt::kernels
