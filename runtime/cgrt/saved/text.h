// A bundle as text for people: what `graphdump show` prints of one.
//
//   CGRT_ASSIGN_OR_RETURN(const std::string text, saved::to_text(folder));
//
//   1 graph, 1 module (8 bytes), 1 piece of memory (4.1 kB)
//   NVIDIA H200, compute capability 9.0, 132 multiprocessors, driver 13.0
//
//   graph  nodes  launch  kept memory  inputs          outputs
//   step   2      1       4.1 kB       token int64[1]
//
//   module  size     kernels  variables  code
//   0       8 bytes  1        0          6be559594e456ff526789b8be5741c13
//
//   memory  blocks  size
//   device  1       4.1 kB
//
// Memory is kept as it was before the launch where it is not all zeros; a piece that several graphs have in common is
// one. The same bytes on every run. Thread-safe: functions of their arguments and the folder's files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cgrt/saved/folder.h"

namespace cgrt::saved {

// "3 graphs, 2 modules (1.2 MB), 57 pieces of memory (48.2 MB)"
std::string summary(const Manifest& manifest);

// Reads the graphs; their errors are those of Folder::read_graph.
absl::StatusOr<std::string> to_text(const Folder& folder);

}  // namespace cgrt::saved
