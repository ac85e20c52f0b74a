// What the operations mean, in plain C++: the tests' reference and the simulator's host functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "cgrt_kernels/cub/cub_desc.h"
#include "cgrt_kernels/scan/reference.h"

namespace cgrt::kernels {

// The bits of key `i` by which it is sorted, as a number that is larger where the key is.
inline std::uint64_t sorted_bits(const RadixSortDesc& desc, const void* keys, std::uint64_t i) {
  const int bits = static_cast<int>(8 * size_of(desc.key)), end = desc.end_bit == 0 ? bits : desc.end_bit;
  std::uint64_t key = 0;
  if (desc.key == SortKey::kUInt64) {
    key = static_cast<const std::uint64_t*>(keys)[i];
  } else {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const std::uint32_t*>(keys) + i, 4);
    if (desc.key == SortKey::kFloat32) {
      if (word == 0x80000000u) word = 0;  // -0 is 0
      word = (word & 0x80000000u) != 0 ? ~word : word | 0x80000000u;
    }
    key = word;
  }
  if (end < 64) key &= (std::uint64_t{1} << end) - 1;
  return desc.begin_bit < 64 ? key >> desc.begin_bit : 0;
}

// Positions in the input, in the order of the output.
inline std::vector<std::uint64_t> sorted_order(const RadixSortDesc& desc, const void* keys) {
  std::vector<std::uint64_t> order(desc.count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return sorted_bits(desc, keys, a) < sorted_bits(desc, keys, b);
  });
  return order;
}

inline void radix_sort_reference(const RadixSortDesc& desc, const RadixSortArgs& args) {
  const std::vector<std::uint64_t> order = sorted_order(desc, args.keys_in);
  const auto move = [&](void* out, const void* in, std::size_t size) {
    for (std::uint64_t i = 0; i < desc.count; ++i) {
      std::memcpy(static_cast<unsigned char*>(out) + i * size, static_cast<const unsigned char*>(in) + order[i] * size,
                  size);
    }
  };
  move(args.keys_out, args.keys_in, size_of(desc.key));
  if (desc.has_values) move(args.values_out, args.values_in, 4);
}

inline void select_reference(const SelectDesc& desc, const SelectArgs& args) {
  const std::size_t size = size_of(desc.type);
  std::int64_t selected = 0;
  for (std::uint64_t i = 0; i < desc.count; ++i) {
    if (args.flags[i] == 0) continue;
    std::memcpy(static_cast<unsigned char*>(args.out) + static_cast<std::size_t>(selected++) * size,
                static_cast<const unsigned char*>(args.in) + i * size, size);
  }
  *args.selected = selected;
}

template <class T, class Sum>
void cub_scan_reference(const CubScanDesc& desc, const CubScanArgs& args) {
  const T* const in = static_cast<const T*>(args.in);
  T* const out = static_cast<T*>(args.out);
  scan_reference<Sum>(
      desc.kind, desc.count, [&](std::uint64_t i) { return static_cast<Sum>(in[i]); },
      [&](std::uint64_t i, Sum sum) { out[i] = static_cast<T>(sum); });
}
inline void cub_scan_reference(const CubScanDesc& desc, const CubScanArgs& args) {
  switch (desc.type) {
    case DType::kFloat32: return cub_scan_reference<float, double>(desc, args);
    case DType::kInt32: return cub_scan_reference<std::uint32_t, std::uint32_t>(desc, args);
    default: return cub_scan_reference<std::uint64_t, std::uint64_t>(desc, args);
  }
}

}  // namespace cgrt::kernels
