#include "cgrt/bundle/trials.h"

#include <algorithm>
#include <cstring>

namespace cgrt {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Of the word number `index`. What a nudge flips differs from word to word: a copy of a nudged word is not what a nudge
// makes of its destination.
std::uint64_t mask_of(const Poison& poison, std::uint64_t index) {
  const std::uint64_t random = mixed((index + 1) * 0x9E3779B97F4A7C15 ^ poison.seed);
  switch (poison.fill) {
    case Poison::Fill::kLowestBit: return 1;
    case Poison::Fill::kNudge:
      return (random % 15 + 1) << 3;  // an address moves by at most 120 bytes and stays a multiple of 8
    case Poison::Fill::kRandom: return random;
    case Poison::Fill::kInverse: return ~random;
    case Poison::Fill::kZeros: break;
  }
  return 0;
}

}  // namespace

void apply(const Poison& poison, std::uint64_t address, std::span<std::byte> bytes) {
  const bool is_added = poison.fill == Poison::Fill::kLowestBit || poison.fill == Poison::Fill::kNudge;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::uint64_t at = address + i;
    const std::size_t first = at % kWordBytes;
    const std::size_t count = std::min(kWordBytes - first, bytes.size() - i);
    std::uint64_t word = 0;
    std::byte* const raw = reinterpret_cast<std::byte*>(&word);
    if (is_added) std::memcpy(raw + first, &bytes[i], count);
    word ^= mask_of(poison, at / kWordBytes);
    std::memcpy(&bytes[i], raw + first, count);
    i += count;
  }
}

LineFate fate_of(std::span<const std::byte> now, std::span<const std::byte> reference,
                 std::span<const std::byte> poison) {
  if (std::memcmp(now.data(), reference.data(), now.size()) == 0) return {};
  if (poison.empty()) return {.is_changed = true};
  LineFate fate;
  std::size_t left_words = 0, left_run = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (i % kWordBytes == 0) left_run = 0;
    if (now[i] == poison[i] && ++left_run == kWordBytes) ++left_words;
    if (now[i] == reference[i]) continue;
    (now[i] == poison[i] ? fate.is_left : fate.is_changed) = true;
  }
  // Where other poison came in, bytes are equal to that of this line by chance: with a nudge a word in 15 copies.
  if (fate.is_changed) fate.is_left = left_words * kWordBytes * 4 >= now.size();
  return fate;
}

}  // namespace cgrt
