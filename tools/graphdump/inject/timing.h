// The times of nodes, as CUPTI's activity records have them, written into the graphs' files when the process ends.
// Only where `graphdump time` asks for them: with CUPTI a launch takes the host longer, node by node. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "inject/cupti.h"

namespace graphdump::timing {

// Begins to measure. False with a sentence in `error` where CUPTI refuses.
bool start(const Cupti& cupti, std::string* error);

// An executable was made of the graph in the file `path`, whose nodes are `nodes`, in the order of their ids: its own
// nodes are among the clones of these.
struct Clone {
  CUgraphNode original, clone;
  std::uint64_t id;  // CUPTI's, of the clone, when it was made
  bool is_inside;    // of a child graph: the clone has another id by now
};
void on_instantiated(const std::string& path, const std::vector<CUgraphNode>& nodes, const std::vector<Clone>& clones);

}  // namespace graphdump::timing
