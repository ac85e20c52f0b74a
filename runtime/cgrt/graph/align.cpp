#include "cgrt/graph/align.h"

#include <algorithm>

namespace cgrt::internal {
namespace {

using Sequence = absl::Span<const std::size_t>;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// By position j: how long a common subsequence of `a` and the first j elements of `b` is; of the last j when reversed.
std::vector<std::size_t> lengths(Sequence a, Sequence b, bool is_reversed) {
  std::vector<std::size_t> row(b.size() + 1, 0);
  const auto at = [&](Sequence of, std::size_t i) { return is_reversed ? of[of.size() - 1 - i] : of[i]; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = 0;  // of the row above
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = at(a, i) == at(b, j) ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row;
}

void align_parts(Sequence a, Sequence b, std::size_t a_first, std::size_t b_first, Pairs& pairs) {
  std::size_t head = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) {
    pairs.emplace_back(a_first + head, b_first + head);
    ++head;
  }
  a.remove_prefix(head);
  b.remove_prefix(head);
  a_first += head;
  b_first += head;
  std::size_t tail = 0;
  while (tail < std::min(a.size(), b.size()) && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  a.remove_suffix(tail);
  b.remove_suffix(tail);
  if (a.size() == 1) {
    const auto found = std::find(b.begin(), b.end(), a.front());
    if (found != b.end()) pairs.emplace_back(a_first, b_first + static_cast<std::size_t>(found - b.begin()));
  } else if (!a.empty() && !b.empty()) {
    const std::size_t middle = a.size() / 2;
    const std::vector<std::size_t> before = lengths(a.subspan(0, middle), b, false);
    const std::vector<std::size_t> after = lengths(a.subspan(middle), b, true);
    std::size_t cut = 0;
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (before[j] + after[b.size() - j] > before[cut] + after[b.size() - cut]) cut = j;
    }
    align_parts(a.subspan(0, middle), b.subspan(0, cut), a_first, b_first, pairs);
    align_parts(a.subspan(middle), b.subspan(cut), a_first + middle, b_first + cut, pairs);
  }
  for (std::size_t i = 0; i < tail; ++i) pairs.emplace_back(a_first + a.size() + i, b_first + b.size() + i);
}

}  // namespace

Pairs align(Sequence a, Sequence b) {
  Pairs pairs;
  align_parts(a, b, 0, 0, pairs);
  return pairs;
}

}  // namespace cgrt::internal
