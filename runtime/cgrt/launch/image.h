// How many bytes an image of code has, by its head. Internal to launch/ and bundle/.
//
// Nullopt: 2^64 or more, so the head is damaged.
#pragma once

#include "cgrt/base/language.h"  // first

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace cgrt::internal {

inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

// fatBinaryHeader.
struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // that follow it
};

inline std::optional<std::uint64_t> image_bytes(const FatbinHeader& header) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(header.bytes, std::uint64_t{header.header_bytes}, &end)) return std::nullopt;
  return end;
}

// Either table may be the last: nvcc 13.0 writes the program headers behind the sections.
inline std::optional<std::uint64_t> image_bytes(const Elf64_Ehdr& header) {
  const std::uint64_t section_bytes = std::uint64_t{header.e_shnum} * header.e_shentsize;  // of 16 bits each
  const std::uint64_t segment_bytes = std::uint64_t{header.e_phnum} * header.e_phentsize;
  std::uint64_t sections_end = 0, segments_end = 0;
  if (__builtin_add_overflow(header.e_shoff, section_bytes, &sections_end)) return std::nullopt;
  if (__builtin_add_overflow(header.e_phoff, segment_bytes, &segments_end)) return std::nullopt;
  return std::max(sections_end, segments_end);
}

}  // namespace cgrt::internal
