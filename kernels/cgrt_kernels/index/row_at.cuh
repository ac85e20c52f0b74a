// Which row an index names, in the kernels of index.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

inline constexpr std::uint32_t kNoRow = ~0u;

// kNoRow where the index is not a row. Params: index, is_long and rows.
template <class Params>
__host__ __device__ __forceinline__ std::uint32_t row_at(const Params& p, std::uint64_t i) {
  const std::int64_t index = p.is_long ? static_cast<const std::int64_t*>(p.index)[i]  //
                                       : static_cast<const std::int32_t*>(p.index)[i];
  return index >= 0 && index < p.rows ? static_cast<std::uint32_t>(index) : kNoRow;
}

}  // namespace cgrt::kernels
