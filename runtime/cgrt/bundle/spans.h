// Spans: a set of addresses, as a list that ascends and has gaps between its members. Internal: for bundle/shrink.h.
//
// Thread-safe: functions of their arguments.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstdint>
#include <utility>
#include <vector>

#include "cgrt/saved/manifest.h"

namespace cgrt {

// Memory is dropped in multiples of this many bytes: allocators align to it.
inline constexpr std::uint64_t kLineBytes = 512;

struct Span {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t bytes() const { return end - begin; }
  bool operator==(const Span&) const = default;
};
using Spans = std::vector<Span>;

std::uint64_t bytes_of(const Spans& spans);

// Of members in any order, that may meet and overlap.
Spans united(Spans spans);
Spans united(Spans a, const Spans& b);
Spans without(const Spans& a, const Spans& b);
Spans common(const Spans& a, const Spans& b);
// common() with one span, in logarithmic time.
Spans within(const Spans& spans, Span span);

// The lines (multiples of kLineBytes) that are in it with all their bytes, and those that have any byte of it.
Spans whole_lines(const Spans& spans);
Spans touched_lines(const Spans& spans);
// Of whole lines: the lower half and the upper one; with one line the upper one is empty.
std::pair<Spans, Spans> halves(const Spans& lines);
// Without members of less than `min_bytes`.
Spans at_least(Spans spans, std::uint64_t min_bytes);

// At the addresses that blocks had in the process that was saved.
Spans spans_of(const saved::Manifest& manifest, const std::vector<saved::Range>& ranges);
// Of what is in blocks; ascending, each in one block.
std::vector<saved::Range> ranges_of(const saved::Manifest& manifest, const Spans& spans);

}  // namespace cgrt
