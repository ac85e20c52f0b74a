#include "cgrt/inspect/repeats.h"

#include <algorithm>

namespace cgrt::inspect {

std::vector<Repeat> longest_repeats(const std::vector<std::uint32_t>& labels) {
  constexpr std::size_t kMaxPeriod = 256;
  std::vector<Repeat> longest(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) longest[i].begin = i;
  for (std::size_t period = 1; period <= std::min(kMaxPeriod, labels.size() / 2); ++period) {
    std::size_t run = 0;  // labels from `begin` on that are those a period behind
    for (std::size_t begin = labels.size() - period; begin-- > 0;) {
      run = labels[begin] == labels[begin + period] ? run + 1 : 0;
      Repeat& best = longest[begin];
      const std::size_t times = run / period + 1;
      if (times >= 2 && times * period > best.times * best.period) best = {begin, period, times};
    }
  }
  return longest;
}

}  // namespace cgrt::inspect
