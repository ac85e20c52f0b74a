// A graph as Graphviz DOT: what `graphdump show --format dot` prints.
//
//   graphdump show step.cgrt.json --format dot | dot -Tsvg -o step.svg
//
//   digraph cgrt {
//     node [shape=ellipse, style=filled, fillcolor="#ffffff"];
//     n0 [label="0 memset", shape=parallelogram, fillcolor="#d9ead3"];
//     subgraph cluster_0 {
//       label="layer0";
//       n1 [label="1 scale\ngrid (4,1,1) block (256,1,1)", shape=box, fillcolor="#cfe2f3"];
//     }
//     n0 -> n1;
//   }
//
// Node 3 is n3. Scopes are nested clusters, in the order in which the nodes first mention them.
// Programmatic edges are dashed; ports other than 0 stand at the ends of their edge. Names are shown
// as ir::printable writes them, whatever they hold.
//
// The same bytes on every run. Of a graph that is not valid the picture says why instead.
// Thread-safe: a pure function.
#pragma once

#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

std::string to_dot(const ir::GraphIr& graph);

}  // namespace cgrt::inspect
