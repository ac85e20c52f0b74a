// Small graphs for the tests of ir and inspect.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::testing {

inline ir::Argument pointer_argument(std::uint32_t offset, std::uint32_t allocation, std::uint64_t into = 0) {
  return {.offset = offset, .size = 8, .bytes = {}, .pointer = ir::Pointer{.allocation = allocation, .offset = into}};
}

inline ir::Argument value_argument(std::uint32_t offset, std::vector<std::uint8_t> bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return {.offset = offset, .size = size, .bytes = std::move(bytes), .pointer = {}};
}

// `size` bytes that are 0 but for addresses.
inline ir::Argument structure_argument(std::uint32_t offset, std::uint32_t size,
                                       std::vector<ir::InnerPointer> inner_pointers) {
  ir::Argument argument = value_argument(offset, std::vector<std::uint8_t>(size));
  argument.inner_pointers = std::move(inner_pointers);
  return argument;
}

inline ir::Node kernel_node(std::string function, std::vector<ir::Argument> arguments = {}) {
  return {.kind = ir::NodeKind::kKernel,
          .device = 0,
          .scope = {},
          .params = ir::KernelParams{.function = std::move(function),
                                     .grid = {4, 1, 1},
                                     .block = {256, 1, 1},
                                     .shared_bytes = 0,
                                     .arguments = std::move(arguments)}};
}

inline ir::Node memcpy_node(ir::MemcpyParams params) {
  return {.kind = ir::NodeKind::kMemcpy, .device = 0, .scope = {}, .params = params};
}

inline ir::Node memset_node(ir::MemsetParams params) {
  return {.kind = ir::NodeKind::kMemset, .device = 0, .scope = {}, .params = params};
}

inline ir::Node conditional_node(ir::ConditionalParams params) {
  return {.kind = ir::NodeKind::kConditional, .device = 0, .scope = {}, .params = params};
}

inline ir::Edge edge(std::uint32_t from, std::uint32_t to) {
  return {.from = from, .to = to, .from_port = 0, .to_port = 0, .type = ir::EdgeType::kFull};
}

// `count` empty nodes.
inline ir::GraphIr empty_nodes(std::size_t count, std::vector<ir::Edge> edges = {}) {
  return {.nodes = std::vector<ir::Node>(count), .edges = std::move(edges), .allocations = {}};
}

// memset, then "scale" with two pointers and 2.0f, then a memcpy; two allocations.
inline ir::GraphIr small_graph() {
  return {.nodes = {memset_node({.destination = {0, 0}, .value = 0, .element_bytes = 4, .width = 1024}),
                    kernel_node("scale", {pointer_argument(0, 0, 256), pointer_argument(8, 1),
                                          value_argument(16, {0, 0, 0, 0x40})}),
                    memcpy_node({.destination = ir::Pointer{1, 0}, .source = ir::Pointer{0, 0}, .width_bytes = 4096})},
          .edges = {edge(0, 1), edge(1, 2)},
          .allocations = {{.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = 4096},
                          {.kind = ir::MemoryKind::kPinnedHost, .device = -1, .bytes = 4096}}};
}

inline ir::KernelParams& kernel_of(ir::GraphIr& graph, std::size_t id) {
  return std::get<ir::KernelParams>(graph.nodes[id].params);
}

}  // namespace cgrt::testing
