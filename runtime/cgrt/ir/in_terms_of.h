// A graph with the ids of another, to compare both field by field. Internal to ir/ and saved/.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// `b` with the ids and numbers of `a`, without edges. `matches`: see match_nodes. Where `b` has no node that matches
// stands that of `a`.
GraphIr in_terms_of(const GraphIr& a, const GraphIr& b, const std::vector<std::uint32_t>& matches);

}  // namespace cgrt::ir
