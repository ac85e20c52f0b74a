// Which elements of two sequences stand for each other. Internal to graph/.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace cgrt::internal {

// The positions of a longest common subsequence, ascending in both. Takes (a.size() + 1) * (b.size() + 1) steps at most
// and space for one row of them, by D. S. Hirschberg's way of dividing (Communications of the ACM 18, 1975); what the
// sequences begin and end alike with costs one step an element.
std::vector<std::pair<std::size_t, std::size_t>> align(absl::Span<const std::size_t> a,
                                                       absl::Span<const std::size_t> b);

}  // namespace cgrt::internal
