// The blocks of a bundle by address. Internal to saved/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

class BlockIndex {
 public:
  explicit BlockIndex(const std::vector<Block>& blocks) : blocks_(blocks) {}

  // That `address` is in, and that which ends there.
  struct Found {
    std::optional<std::uint32_t> in, before;
  };
  Found find(std::uint64_t address) const {
    if (blocks_.empty() || address < blocks_.front().address) return {};
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                        [](std::uint64_t value, const Block& block) { return value < block.address; });
    Found found;
    const auto last = static_cast<std::uint32_t>(after - blocks_.begin()) - 1;
    if (address - blocks_[last].address < blocks_[last].bytes) {
      found.in = last;
      if (address == blocks_[last].address && last > 0 && end_of(last - 1) == address) found.before = last - 1;
    } else if (address == end_of(last)) {
      found.before = last;
    }
    return found;
  }
  const Block& operator[](std::uint32_t i) const { return blocks_[i]; }
  std::uint64_t end_of(std::uint32_t i) const { return blocks_[i].address + blocks_[i].bytes; }

 private:
  const std::vector<Block>& blocks_;
};

}  // namespace cgrt::saved
