// Caches of the keys and values of sequences: what plans are told of them. Plain: no Abseil.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

enum class KvLayout : std::uint8_t {
  kDense,  // [sequences, positions, kv_heads, head_size]
  kPaged,  // [pages, page_size, kv_heads, head_size], found by a block table of [sequences, pages_per_sequence] int32
};

// Keys and values are two arrays of the same layout. A block is what one sequence has in a dense cache, and a page of a
// paged one.
struct KvCacheDesc {
  KvLayout layout = KvLayout::kDense;
  std::uint64_t sequences = 0;
  std::uint64_t positions = 0;  // of a sequence, at most
  std::uint64_t kv_heads = 0, head_size = 0;
  std::uint64_t pages = 0, page_size = 0, pages_per_sequence = 0;  // of a paged cache
  // Elements from one position of a block to the next, from one head to the next, from one block to the next. 0 stands
  // for kv_heads * head_stride, for head_size, and for the larger of positions (or page_size) * position_stride and
  // kv_heads * head_stride, so that nothing overlaps. A cache of [sequences, kv_heads, positions, head_size] has
  // strides of head_size, positions * head_size and 0.
  std::uint64_t position_stride = 0, head_stride = 0, block_stride = 0;
};

}  // namespace cgrt::kernels
