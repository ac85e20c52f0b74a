// Where a position of a sequence stands in a cache of keys and values. Internal.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/kv_cache.h"

namespace cgrt::kernels {

// Of a descriptor that was checked (kv_cache_plan.h), as kernels take it.
struct KvCacheShape {
  KvLayout layout;
  std::uint32_t sequences, positions, blocks, pages_per_sequence;
  Divisor block_size;  // positions of a block
  std::uint64_t position_stride, head_stride, block_stride;
};

// The block with a position, from 0 to shape.positions - 1, of a sequence that the cache has. What the table says may
// be no block.
__host__ __device__ inline std::int32_t block_of(const KvCacheShape& shape, const std::int32_t* block_table,
                                                 std::uint32_t sequence, std::uint32_t position) {
  if (shape.layout == KvLayout::kDense) return static_cast<std::int32_t>(sequence);
  return block_table[std::uint64_t{sequence} * shape.pages_per_sequence + shape.block_size.quotient(position)];
}

// The element of the arrays with which a position of a block begins, in head 0; kNowhere: there is no such block.
inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
__host__ __device__ inline std::uint64_t offset_in(const KvCacheShape& shape, std::int32_t block,
                                                   std::uint32_t position) {
  if (static_cast<std::uint32_t>(block) >= shape.blocks) return kNowhere;
  return static_cast<std::uint32_t>(block) * shape.block_stride +
         shape.block_size.remainder(position) * shape.position_stride;
}

}  // namespace cgrt::kernels
