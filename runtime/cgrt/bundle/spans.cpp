#include "cgrt/bundle/spans.h"

#include <algorithm>
#include <cstddef>

namespace cgrt {
namespace {

std::uint64_t line_of(std::uint64_t address) { return address / kLineBytes * kLineBytes; }

}  // namespace

std::uint64_t bytes_of(const Spans& spans) {
  std::uint64_t bytes = 0;
  for (const Span& span : spans) bytes += span.bytes();
  return bytes;
}

Spans united(Spans spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Spans result;
  for (const Span& span : spans) {
    if (span.begin >= span.end) continue;
    if (!result.empty() && span.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(span);
    }
  }
  return result;
}

Spans united(Spans a, const Spans& b) {
  a.insert(a.end(), b.begin(), b.end());
  return united(std::move(a));
}

Spans without(const Spans& a, const Spans& b) {
  Spans result;
  std::size_t next = 0;
  for (Span span : a) {
    while (next < b.size() && b[next].end <= span.begin) ++next;
    for (std::size_t i = next; i < b.size() && b[i].begin < span.end; ++i) {
      if (b[i].begin > span.begin) result.push_back({span.begin, b[i].begin});
      span.begin = std::min(b[i].end, span.end);
    }
    if (span.begin < span.end) result.push_back(span);
  }
  return result;
}

Spans common(const Spans& a, const Spans& b) {
  Spans result;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Span both = {std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) result.push_back(both);
    ++(a[i].end < b[j].end ? i : j);
  }
  return result;
}

Spans within(const Spans& spans, Span span) {
  auto next = std::upper_bound(spans.begin(), spans.end(), span.begin,
                               [](std::uint64_t begin, const Span& one) { return begin < one.end; });
  Spans result;
  for (; next != spans.end() && next->begin < span.end; ++next) {
    result.push_back({std::max(next->begin, span.begin), std::min(next->end, span.end)});
  }
  return result;
}

Spans whole_lines(const Spans& spans) {
  Spans result;
  for (const Span& span : spans) {
    const Span lines = {line_of(span.begin + kLineBytes - 1), line_of(span.end)};
    if (lines.begin < lines.end) result.push_back(lines);
  }
  return result;
}

Spans touched_lines(const Spans& spans) {
  Spans result;
  result.reserve(spans.size());
  for (const Span& span : spans) result.push_back({line_of(span.begin), line_of(span.end + kLineBytes - 1)});
  return united(std::move(result));
}

std::pair<Spans, Spans> halves(const Spans& lines) {
  std::uint64_t left = (bytes_of(lines) / kLineBytes + 1) / 2 * kLineBytes;
  std::pair<Spans, Spans> result;
  for (const Span& span : lines) {
    const std::uint64_t lower = std::min(left, span.bytes());
    left -= lower;
    if (lower > 0) result.first.push_back({span.begin, span.begin + lower});
    if (lower < span.bytes()) result.second.push_back({span.begin + lower, span.end});
  }
  return result;
}

Spans at_least(Spans spans, std::uint64_t min_bytes) {
  std::erase_if(spans, [min_bytes](const Span& span) { return span.bytes() < min_bytes; });
  return spans;
}

Spans spans_of(const saved::Manifest& manifest, const std::vector<saved::Range>& ranges) {
  Spans spans;
  spans.reserve(ranges.size());
  for (const saved::Range& range : ranges) {
    const std::uint64_t begin = manifest.blocks[range.block].address + range.offset;
    spans.push_back({begin, begin + range.bytes});
  }
  return united(std::move(spans));
}

std::vector<saved::Range> ranges_of(const saved::Manifest& manifest, const Spans& spans) {
  std::vector<saved::Range> ranges;
  std::size_t next = 0;
  for (const Span& span : spans) {
    while (next < manifest.blocks.size() && manifest.blocks[next].address + manifest.blocks[next].bytes <= span.begin) {
      ++next;
    }
    for (std::size_t i = next; i < manifest.blocks.size() && manifest.blocks[i].address < span.end; ++i) {
      const saved::Block& block = manifest.blocks[i];
      const std::uint64_t begin = std::max(block.address, span.begin);
      const std::uint64_t end = std::min(block.address + block.bytes, span.end);
      ranges.push_back({static_cast<std::uint32_t>(i), begin - block.address, end - begin});
    }
  }
  return ranges;
}

}  // namespace cgrt
