// What the page of a graph says of one node. Internal to inspect/: html.cpp writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

struct DetailRow {
  const char* name;
  std::string value;
  std::optional<std::uint32_t> allocation = {};  // that the value is an address in
};

enum class Access { kRead, kWrite, kAllocate, kFree, kTouch };  // a kernel touches: which of the two is not known

const char* to_string(Access access);  // "read", "write", ...

// Beyond its kind and its place.
struct NodeDetails {
  std::string title, note;  // the two lines of its box; no title: its kind
  std::vector<DetailRow> rows = {};
  std::vector<ir::Argument> arguments = {};
  std::vector<std::pair<std::uint32_t, Access>> uses = {};  // allocations; ascending, none twice
};

// The graph must be valid, and live as long as the arguments are looked at.
NodeDetails details_of(const ir::GraphIr& graph, const ir::Node& node);

}  // namespace cgrt::inspect
