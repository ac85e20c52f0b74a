// The numbers by which nodes name allocations, events, conditional handles and semaphores. They depend on the order in
// which the nodes were made. Internal to ir/ and saved/.
#pragma once

#include <cstdint>
#include <variant>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

enum class Named { kAllocation, kEvent, kHandle, kSemaphore };
inline constexpr int kNamed = 4;

// Calls `visit(Named, number)` for each, always in the same order; of a node that is not const it can change the
// number.
template <class AnyNode, class Visit>
void visit_named(AnyNode& node, Visit visit) {
  const auto pointer = [&](auto& one) { visit(Named::kAllocation, one.allocation); };
  if (auto* kernel = std::get_if<KernelParams>(&node.params)) {
    for (auto& one : kernel->pointers) pointer(one.pointer);
    if (kernel->attributes.access_policy.bytes != 0) pointer(kernel->attributes.access_policy.base);
  } else if (auto* copy = std::get_if<MemcpyParams>(&node.params)) {
    if (copy->destination.has_value()) pointer(*copy->destination);
    if (copy->source.has_value()) pointer(*copy->source);
  } else if (auto* set = std::get_if<MemsetParams>(&node.params)) {
    pointer(set->destination);
  } else if (auto* event = std::get_if<EventParams>(&node.params)) {
    visit(Named::kEvent, event->event);
  } else if (auto* conditional = std::get_if<ConditionalParams>(&node.params)) {
    visit(Named::kHandle, conditional->handle);
  } else if (auto* alloc = std::get_if<MemAllocParams>(&node.params)) {
    pointer(alloc->address);
  } else if (auto* free = std::get_if<MemFreeParams>(&node.params)) {
    pointer(free->address);
  } else if (auto* operations = std::get_if<BatchMemOpParams>(&node.params)) {
    for (auto& one : operations->operations) pointer(one.address);
  } else if (auto* semaphores = std::get_if<SemaphoreParams>(&node.params)) {
    for (auto& one : semaphores->semaphores) visit(Named::kSemaphore, one.semaphore);
  }
}

}  // namespace cgrt::ir
