// What a thread has of a row, for rows that are not whole 16 bytes, too: see SumPack.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/index/kernels.h"

namespace cgrt::kernels {

// Elements of one word or two, for rows that are not whole 16 bytes.
template <class T, class Words>
struct WordPack {
  Words words;
};
template <class T>
__device__ __forceinline__ void unpack(const WordPack<T, std::uint32_t>& pack, float (&values)[Word<T>::kSize]) {
  Word<T>::unpack(pack.words, values);
}
template <class T>
__device__ __forceinline__ void pack_into(WordPack<T, std::uint32_t>& pack, const float (&values)[Word<T>::kSize]) {
  pack.words = Word<T>::pack(values);
}
template <class T>
__device__ __forceinline__ void unpack(const WordPack<T, uint2>& pack, float (&values)[2 * Word<T>::kSize]) {
  constexpr int kHalf = Word<T>::kSize;
  float first[kHalf], second[kHalf];
  Word<T>::unpack(pack.words.x, first);
  Word<T>::unpack(pack.words.y, second);
#pragma unroll
  for (int k = 0; k < kHalf; ++k) values[k] = first[k], values[kHalf + k] = second[k];
}
template <class T>
__device__ __forceinline__ void pack_into(WordPack<T, uint2>& pack, const float (&values)[2 * Word<T>::kSize]) {
  constexpr int kHalf = Word<T>::kSize;
  float first[kHalf], second[kHalf];
#pragma unroll
  for (int k = 0; k < kHalf; ++k) first[k] = values[k], second[k] = values[kHalf + k];
  pack.words = {Word<T>::pack(first), Word<T>::pack(second)};
}
// Elements as far apart as there are threads side by side, for rows that begin anywhere.
template <class T>
struct SpreadPack {
  T elements[kSpreadSize];
};
template <class T>
__device__ __forceinline__ void unpack(const SpreadPack<T>& pack, float (&values)[kSpreadSize]) {
#pragma unroll
  for (std::uint32_t k = 0; k < kSpreadSize; ++k) values[k] = to_float(pack.elements[k]);
}
template <class T>
__device__ __forceinline__ void pack_into(SpreadPack<T>& pack, const float (&values)[kSpreadSize]) {
#pragma unroll
  for (std::uint32_t k = 0; k < kSpreadSize; ++k) pack.elements[k] = from_float<T>(values[k]);
}

template <class T, class Pack>
inline constexpr bool kIsSpreadPack = std::is_same_v<Pack, SpreadPack<T>>;

// each(k, elements from `column` on) for those of a spread pack that begins at `column` of the row.
template <class Each>
__device__ __forceinline__ void for_spread(std::uint32_t column, std::uint32_t lanes, std::uint32_t columns,
                                           Each each) {
#pragma unroll
  for (std::uint32_t k = 0; k < kSpreadSize; ++k) {
    if (column + k * lanes < columns) each(k, k * lanes);
  }
}

// `row`: its element at `column`.
template <class T, class Pack>
__device__ __forceinline__ void load_pack(Pack& pack, const T* row, std::uint32_t column, std::uint32_t lanes,
                                          std::uint32_t columns) {
  if constexpr (kIsSpreadPack<T, Pack>) {
    for_spread(column, lanes, columns, [&](std::uint32_t k, std::uint32_t at) { pack.elements[k] = row[at]; });
  } else {
    pack = *reinterpret_cast<const Pack*>(row);
  }
}

// `row` likewise.
template <class T, class Pack>
__device__ __forceinline__ void store_pack(T* row, const Pack& pack, std::uint32_t column, std::uint32_t lanes,
                                           std::uint32_t columns) {
  if constexpr (kIsSpreadPack<T, Pack>) {
    for_spread(column, lanes, columns, [&](std::uint32_t k, std::uint32_t at) { row[at] = pack.elements[k]; });
  } else {
    *reinterpret_cast<Pack*>(row) = pack;
  }
}

// get<T, Pack>()
template <class Get>
auto of_row_pack(DType type, SumPack pack, Get get) {
  return of_float_type(type, [=]<class T>() {
    if (pack == SumPack::kBytes16) return get.template operator()<T, PackFor<T, Alignment::kAligned>>();
    if (pack == SumPack::kBytes8) return get.template operator()<T, WordPack<T, uint2>>();
    if constexpr (sizeof(T) == 2) {  // else an element
      if (pack == SumPack::kBytes4) return get.template operator()<T, WordPack<T, std::uint32_t>>();
    }
    return pack == SumPack::kSpread ? get.template operator()<T, SpreadPack<T>>() : get.template operator()<T, T>();
  });
}

}  // namespace cgrt::kernels
