// Words, as in word.cuh, at any address: those of halves may be cut by a multiple of 4.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/word.cuh"

namespace cgrt::kernels {

template <class T>
__device__ __forceinline__ bool is_word(const T* at) {
  return sizeof(T) == 4 || reinterpret_cast<std::uintptr_t>(at) % 4 == 0;
}

// What there is of a word; it has_all, or its first half.
template <class T>
__device__ __forceinline__ std::uint32_t load_word(const T* at, bool is_aligned, bool has_first, bool has_all) {
  if (is_aligned && has_all) return *reinterpret_cast<const std::uint32_t*>(at);
  std::uint32_t word = 0;
  if constexpr (sizeof(T) == 2) {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(at);
    if (has_first) word = halves[0];
    if (has_all) word |= std::uint32_t{halves[1]} << 16;
  }
  return word;
}

template <class T>
__device__ __forceinline__ void store_halves(T* at, std::uint32_t word, bool has_first, bool has_all) {
  if constexpr (sizeof(T) == 2) {
    auto* const halves = reinterpret_cast<std::uint16_t*>(at);
    if (has_first) halves[0] = static_cast<std::uint16_t>(word);
    if (has_all) halves[1] = static_cast<std::uint16_t>(word >> 16);
  }
}

// Words of a warp, one after the other, all of them cut: the second half goes out with the first of the next lane, and
// those of the warp's ends go alone. `is_cut`: or none of them is.
template <class T>
__device__ __forceinline__ void store_cut_words(T* at, std::uint32_t word, bool is_cut = true) {
  if constexpr (sizeof(T) == 2) {
    const std::uint32_t next = __shfl_down_sync(~0u, word, 1), lane = threadIdx.x % 32;
    const std::uint32_t whole = __byte_perm(word, next, is_cut ? 0x5432 : 0x3210);
    auto* const halves = reinterpret_cast<std::uint16_t*>(at);
    if (!is_cut || lane != 31) *reinterpret_cast<std::uint32_t*>(halves + (is_cut ? 1 : 0)) = whole;
    if (is_cut && lane == 0) halves[0] = static_cast<std::uint16_t>(word);
    if (is_cut && lane == 31) halves[1] = static_cast<std::uint16_t>(word >> 16);
  }
}
// The same of floats, too, without a branch.
template <class T>
__device__ __forceinline__ void store_words(T* at, std::uint32_t word) {
  if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<std::uint32_t*>(at) = word;
  } else {
    store_cut_words(at, word, !is_word(at));
  }
}

}  // namespace cgrt::kernels
