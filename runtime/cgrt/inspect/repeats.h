// Where a list goes on with the same again: blocks of labels that follow one another. Internal to inspect/.
//
//   const std::vector<Repeat> repeats = longest_repeats({7, 1, 2, 1, 2, 1, 2, 9});   // at 1: 2 labels, 3 times
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cgrt::inspect {

struct Repeat {
  std::size_t begin, period, times;  // `times` is 2 or more
};

// For each position the longest run that begins there, of periods up to 256; `times` is 0 where there is none.
std::vector<Repeat> longest_repeats(const std::vector<std::uint32_t>& labels);

}  // namespace cgrt::inspect
