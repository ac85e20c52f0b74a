// Small graphs for the tests of ir and inspect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/ir/function_table.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::testing {

// `at` of the addresses counts from the start of the value.
struct ArgumentValue {
  ir::Parameter parameter;
  std::vector<std::uint8_t> bytes;
  std::vector<ir::InnerPointer> pointers = {};
};

inline ArgumentValue value_argument(std::uint32_t offset, std::vector<std::uint8_t> bytes) {
  return {{offset, static_cast<std::uint32_t>(bytes.size())}, std::move(bytes)};
}

// `size` bytes that are 0 but for addresses.
inline ArgumentValue structure_argument(std::uint32_t offset, std::uint32_t size,
                                        std::vector<ir::InnerPointer> pointers) {
  return {{offset, size}, std::vector<std::uint8_t>(size), std::move(pointers)};
}

inline ArgumentValue pointer_argument(std::uint32_t offset, std::uint32_t allocation, std::uint64_t into = 0) {
  return structure_argument(offset, 8, {{0, {allocation, into}}});
}

// Makes `kernel` run the function `name` with these arguments.
inline void set_function(ir::GraphIr& graph, ir::KernelParams& kernel, std::string name,
                         const std::vector<ArgumentValue>& arguments) {
  ir::Function function{.name = std::move(name), .parameters = {}};
  kernel.arguments.clear();
  kernel.pointers.clear();
  for (const ArgumentValue& argument : arguments) {
    const std::uint32_t offset = argument.parameter.offset;
    function.parameters.push_back(argument.parameter);
    kernel.arguments.resize(offset);
    kernel.arguments.insert(kernel.arguments.end(), argument.bytes.begin(), argument.bytes.end());
    for (const auto& [at, pointer] : argument.pointers) kernel.pointers.push_back({offset + at, pointer});
  }
  const auto found = std::find(graph.functions.begin(), graph.functions.end(), function);
  kernel.function = static_cast<std::uint32_t>(found - graph.functions.begin());
  if (found == graph.functions.end()) graph.functions.push_back(std::move(function));
}

// Appends a kernel node.
inline void add_kernel(ir::GraphIr& graph, std::string function, const std::vector<ArgumentValue>& arguments = {}) {
  ir::KernelParams kernel{.grid = {4, 1, 1}, .block = {256, 1, 1}};
  set_function(graph, kernel, std::move(function), arguments);
  graph.nodes.push_back({.kind = ir::NodeKind::kKernel, .device = 0, .scope = {}, .params = std::move(kernel)});
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
  ir::GraphIr graph;
  graph.nodes.push_back(memset_node({.destination = {0, 0}, .value = 0, .element_bytes = 4, .width = 1024}));
  add_kernel(graph, "scale",
             {pointer_argument(0, 0, 256), pointer_argument(8, 1), value_argument(16, {0, 0, 0, 0x40})});
  graph.nodes.push_back(
      memcpy_node({.destination = ir::Pointer{1, 0}, .source = ir::Pointer{0, 0}, .width_bytes = 4096}));
  graph.edges = {edge(0, 1), edge(1, 2)};
  graph.allocations = {{.kind = ir::MemoryKind::kDevice, .device = 0, .bytes = 4096},
                       {.kind = ir::MemoryKind::kPinnedHost, .device = -1, .bytes = 4096}};
  return graph;
}

inline ir::KernelParams& kernel_of(ir::GraphIr& graph, std::size_t id) {
  return std::get<ir::KernelParams>(graph.nodes[id].params);
}

// Gives the kernel of node `id` other arguments.
inline void set_arguments(ir::GraphIr& graph, std::size_t id, const std::vector<ArgumentValue>& arguments) {
  ir::KernelParams& kernel = kernel_of(graph, id);
  set_function(graph, kernel, function_of(graph, kernel).name, arguments);
  const std::vector<ir::Function> before = std::exchange(graph.functions, {});
  ir::FunctionTable functions(graph.functions);
  for (ir::Node& node : graph.nodes) {
    if (auto* one = std::get_if<ir::KernelParams>(&node.params)) one->function = functions.add(before[one->function]);
  }
}

}  // namespace cgrt::testing
