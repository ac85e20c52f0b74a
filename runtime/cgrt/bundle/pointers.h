// The addresses in a graph. Internal to bundle/.
#pragma once

#include <variant>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

// Calls visit(pointer) for the operands of a node that is no kernel, and for the window of one that is. In the order in
// which a snapshot numbers allocations, those of a kernel's arguments coming before.
template <class AnyNode, class Visit>
void visit_operands(AnyNode& node, Visit visit) {
  if (auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
    if (kernel->attributes.access_policy.bytes != 0) visit(kernel->attributes.access_policy.base);
  } else if (auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
    if (copy->destination.has_value()) visit(*copy->destination);
    if (copy->source.has_value()) visit(*copy->source);
  } else if (auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
    visit(set->destination);
  } else if (auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
    visit(alloc->address);
  } else if (auto* free = std::get_if<ir::MemFreeParams>(&node.params)) {
    visit(free->address);
  } else if (auto* operations = std::get_if<ir::BatchMemOpParams>(&node.params)) {
    for (auto& one : operations->operations) visit(one.address);
  }
}

}  // namespace cgrt::internal
