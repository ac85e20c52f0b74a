#include "cgrt/saved/graph_memory.h"

#include <algorithm>
#include <cstring>

#include "cgrt/base/status_macros.h"

namespace cgrt::saved {

absl::Status GraphMemory::read(const Range& range, std::vector<std::byte>& out, std::vector<std::byte>& piece_bytes,
                               std::vector<std::pair<std::uint64_t, std::uint64_t>>& known) const {
  out.assign(range.bytes, std::byte{0});
  known.clear();
  const std::uint64_t end = range.offset + range.bytes;
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), range, [](const Range& wanted, const Piece& one) {
    return std::pair(wanted.block, wanted.offset) < std::pair(one.range.block, one.range.offset + one.range.bytes);
  });
  for (; piece != pieces_.end() && piece->range.block == range.block && piece->range.offset < end; ++piece) {
    const std::uint64_t first = std::max(range.offset, piece->range.offset);
    const std::uint64_t last = std::min(end, piece->range.offset + piece->range.bytes);
    if (!known.empty() && known.back().second == first - range.offset) {
      known.back().second = last - range.offset;
    } else {
      known.emplace_back(first - range.offset, last - range.offset);
    }
    if (!piece->hash.has_value()) continue;
    piece_bytes.resize(piece->range.bytes);
    CGRT_RETURN_IF_ERROR(folder_.read_piece(*piece, piece_bytes));
    std::memcpy(out.data() + (first - range.offset), piece_bytes.data() + (first - piece->range.offset), last - first);
  }
  return absl::OkStatus();
}

bool GraphMemory::has(const Range& range, const Hash& hash) const {
  const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), range, [](const Piece& one, const Range& wanted) {
    return std::pair(one.range.block, one.range.offset) < std::pair(wanted.block, wanted.offset);
  });
  return found != pieces_.end() && found->range == range && found->hash == hash;
}

}  // namespace cgrt::saved
