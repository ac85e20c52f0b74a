// A graph as one HTML page to look around in: what `graphdump show --format html` prints.
//
//   CGRT_RETURN_IF_ERROR(write_text_file("step.html", inspect::to_html(graph)));
//
// The page needs nothing but a browser: no network, no other file. It draws the graph in levels, with child graphs,
// bodies of conditional nodes and scopes as boxes that can be folded, coloured by kind, kernel, scope or the graph's
// times; it searches, and it lists each node's parameters and times and which nodes touch each allocation. Its parts
// are in page/.
//
// Names are shown as ir::printable writes them, whatever they hold. Scalar arguments are guesses (see ir/describe.h).
// The same bytes on every run. Of a graph that is not valid the page says why instead.
// Thread-safe: a pure function.
#pragma once

#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

std::string to_html(const ir::GraphIr& graph);

}  // namespace cgrt::inspect
