// Hash: which content a file of a bundle has. XXH3 with 128 bits (Yann Collet, xxHash 0.8): tells damaged files, is no
// protection against somebody who wants two files with one hash.
//
//   const saved::Hash hash = saved::hash_of(bytes);
//   const std::string name = to_string(hash);   // 32 hexadecimal digits
//
// Thread-safe: functions of their arguments.
#pragma once

#include "cgrt/base/language.h"  // first

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cgrt::saved {

struct Hash {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash&) const = default;
};

Hash hash_of(std::span<const std::byte> bytes);
// XXH3 with 64 bits, for the many that ExpectedMemory has.
std::uint64_t short_hash_of(std::span<const std::byte> bytes);

std::string to_string(Hash hash);  // 32 digits, lower case
// The inverse; nullopt for any other text.
std::optional<Hash> parse_hash(std::string_view text);

}  // namespace cgrt::saved
