// Fills GraphIr::functions: each function once, numbered as they come.
//
//   ir::FunctionTable functions(graph.functions);
//   kernel.function = functions.add({"scale", {{0, 8}, {8, 4}}});
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

class FunctionTable {
 public:
  // Appends to `functions`, which outlives this and is empty.
  explicit FunctionTable(std::vector<Function>& functions) : functions_(functions) {}

  std::uint32_t add(const Function& function) {
    const auto [place, is_new] = indices_.try_emplace(function, static_cast<std::uint32_t>(functions_.size()));
    if (is_new) functions_.push_back(function);
    return place->second;
  }

 private:
  std::vector<Function>& functions_;
  std::map<Function, std::uint32_t> indices_;
};

}  // namespace cgrt::ir
