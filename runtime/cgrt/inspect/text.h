// A graph as text for people: what `graphdump show` prints.
//
//   std::fputs(inspect::to_text(graph).c_str(), stdout);
//
//   graph: 2 nodes, 1 edge, depth 2, width 1, 1 root, 1 leaf
//
//   0  memset  device#0  1024 x 4 bytes = 0x0
//   1  kernel  scale     grid (4,1,1) block (256,1,1) shared 0  (device#0, 2.0f, 1024)  after 0
//
//   allocations
//   device#0  4096 bytes  device 0
//
// One line per node in the order of ids, indented by scope, with its median time where there is one; the same bytes on
// every run. Nodes that repeat those before them, but for
// arguments, are counted in one line. Kernels' names are without namespaces. Scalar arguments are guesses (see
// ir/describe.h). Of a graph that is not valid it says why instead.
// Thread-safe: a pure function.
#pragma once

#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

struct TextOptions {
  bool fold = true;         // false: a line for every node
  bool short_names = true;  // "norm<float>" for "ns::norm<float>"
};

std::string to_text(const ir::GraphIr& graph, const TextOptions& options = {});

}  // namespace cgrt::inspect
