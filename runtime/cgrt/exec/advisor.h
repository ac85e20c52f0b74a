// advise: what the ways to change a graph between its launches cost, and which is the cheapest.
//
//   CGRT_ASSIGN_OR_RETURN(const Advice advice, advise(graph, {.arguments = 1000, .grids = 1000}));
//   std::puts(advice.text.c_str());   // "Of 1000 kernels, 1000 change their arguments ...: cheapest is rebind ..."
//
// An estimate from figures of an H200 (docs/performance.md), for host and device together, beyond what a launch of the
// plain executable costs. It measures nothing; hosts differ by factors, the order of the ways rarely.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"

namespace cgrt {

// What differs from one launch to the next.
struct ChangePattern {
  std::size_t arguments = 0;     // kernel nodes with other arguments
  std::size_t grids = 0;         // of these, those with another grid
  std::size_t alternatives = 0;  // kernel nodes that a graph of build_alternatives has and a step leaves out
  double launches = 1;           // for each change
};

enum class UpdateWay {
  kSetParams,    // GraphExec::set_params of each node that changes
  kUpdate,       // captured again, and GraphExec::update
  kInstantiate,  // captured again, and instantiated
  kRebind,       // GraphExec::rebind with the step's calls
  kBinding,      // GraphExec::rebind with a prepared binding
};
const char* to_string(UpdateWay way);  // "set_params", "capture and update", ...

struct Estimate {
  UpdateWay way;
  double microseconds;  // for each launch
};

struct Advice {
  std::vector<Estimate> estimates;  // ascending; ways that the graph does not allow are not among them
  std::string text;                 // some sentences, with what the graph would lose
};

// Reads the graph: a few driver calls for each node. kInvalidArgument for a pattern with more nodes than it has
// kernels.
absl::StatusOr<Advice> advise(const Graph& graph, const ChangePattern& pattern);

}  // namespace cgrt
