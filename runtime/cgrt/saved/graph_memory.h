// Memory of one graph of a bundle, read by range instead of by piece. Internal to saved/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

class GraphMemory {
 public:
  GraphMemory(const Folder& folder, const SavedGraph& graph) : folder_(folder), pieces_(graph.memory) {}

  // Sets `out` to what is there, and `known` to where something is: parts of `out`, ascending. `piece_bytes` is room.
  absl::Status read(const Range& range, std::vector<std::byte>& out, std::vector<std::byte>& piece_bytes,
                    std::vector<std::pair<std::uint64_t, std::uint64_t>>& known) const;

  // Whether the range is a piece with this hash.
  bool has(const Range& range, const Hash& hash) const;

 private:
  const Folder& folder_;
  const std::vector<Piece>& pieces_;
};

}  // namespace cgrt::saved
