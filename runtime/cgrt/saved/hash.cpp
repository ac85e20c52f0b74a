#include "cgrt/saved/hash.h"

#include <charconv>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cgrt::saved {

Hash hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

std::uint64_t short_hash_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string to_string(Hash hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

std::optional<Hash> parse_hash(std::string_view text) {
  constexpr std::size_t kHalf = 16;
  if (text.size() != 2 * kHalf || text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
  Hash hash;
  std::from_chars(text.data(), text.data() + kHalf, hash.high, 16);
  std::from_chars(text.data() + kHalf, text.data() + 2 * kHalf, hash.low, 16);
  return hash;
}

}  // namespace cgrt::saved
