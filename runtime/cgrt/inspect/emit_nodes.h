// The nodes of a program of to_program, one by one. Internal to inspect/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// For a comment that ends with its line.
std::string in_quotes(std::string_view text);
std::string number_of(std::uint64_t value);
std::string address_of(const ir::Pointer& pointer);  // "memory[1] + 256"

// The largest that its place allows: that of the original type, or a multiple that leads to the same place.
std::uint32_t alignment_of(const ir::Parameter& parameter);
// The parameters of a function, with ones of bytes where no alignment explains a gap.
std::vector<ir::Parameter> declared_parameters(const ir::Function& function);

// Where things are in a graph.
struct ProgramPlaces {
  std::vector<std::vector<std::uint32_t>> bodies_of_node;
  std::vector<bool> has_memory;   // bodies that allocate or free, also inside of their nodes
  std::vector<bool> is_of_graph;  // allocations that a node makes
};

class NodeWriter {
 public:
  // Both must outlive this.
  NodeWriter(const ir::GraphIr& graph, const ProgramPlaces& places) : graph_(graph), places_(places) {}

  // The block that adds a node, once for each; `where`: its number, graph and edges, "3, graphs[0], {{1, 0, 0, 0}}".
  std::string write(std::uint32_t id, const std::string& where);

 private:
  const char* stand_in(const ir::Node& node) const;
  bool is_known_free(const ir::Node& node) const;

  void line(const std::string& text);
  void add_params(const char* type);
  void add_with_params(const std::string& where) { line("add(" + where + ", params);"); }
  void add_attributes(std::uint32_t id, const ir::LaunchAttributes& attributes);

  void add(std::uint32_t id, const ir::Node& node, const ir::NoParams& none, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::KernelParams& kernel, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::MemcpyParams& copy, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::MemsetParams& fill, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::EventParams& event, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::ConditionalParams& params, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::MemAllocParams& alloc, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::MemFreeParams& free, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::BatchMemOpParams& params, const std::string& where);
  void add(std::uint32_t id, const ir::Node& node, const ir::SemaphoreParams& params, const std::string& where);

  const ir::GraphIr& graph_;
  const ProgramPlaces& places_;
  std::map<std::uint32_t, std::size_t> events_;  // by number; numbers in a file may have gaps
  std::size_t handles_ = 0;
  std::string text_;
};

}  // namespace cgrt::inspect
