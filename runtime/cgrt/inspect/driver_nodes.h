// DriverNodes: nodes of GraphIr from the labels of a DOT dump of the driver. Internal to inspect/.
//
//   DriverNodes nodes(graph);
//   CGRT_RETURN_IF_ERROR(nodes.add(label, kind, body));  // for each node, in the order of their ids
//   nodes.finish();
//
// What a label does not tell stays not known: ir::NoParams, a kernel without sizes (ir::has_sizes), device -1. Operands
// whose bytes overlap are in one allocation, all others in one of their own: a dump does not tell allocations apart.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cgrt/inspect/driver_label.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

class DriverNodes {
 public:
  // Adds to `graph`, which outlives this and is empty.
  explicit DriverNodes(ir::GraphIr& graph) : graph_(graph), functions_(graph.functions) {}

  // nullopt when the label's word is not one of the driver's; `word` is that word. `shape` is the attribute.
  static std::optional<ir::NodeKind> kind_of(const DriverLabel& label, std::string_view shape, std::string& word);

  // The numbers of the graphs that a child graph node or a conditional one says to be inside of it: 2 for "graph_2".
  static std::vector<std::uint64_t> graphs_inside(const DriverLabel& label);

  // InvalidArgument says what is wrong with the label.
  absl::Status add(const DriverLabel& label, ir::NodeKind kind, std::uint32_t body);

  // After the last node: numbers the allocations.
  void finish();

 private:
  // Bytes from an address on; without one, bytes that no other operand is known to touch.
  struct Operand {
    std::optional<std::uint64_t> address = {};
    std::uint64_t bytes = 1;
    ir::MemoryKind kind = ir::MemoryKind::kUnknown;
    std::uint64_t allocation_bytes = 0;  // 0: not known
  };

  absl::Status read_kernel(const DriverLabel& label, ir::KernelParams& out);
  absl::Status read_sizes(std::string_view sizes, ir::KernelParams& out);
  absl::Status read_attributes(const DriverLabel& label, ir::LaunchAttributes& out);
  absl::Status read_memcpy(const DriverLabel& label, ir::Node& out);
  absl::Status read_memset(const DriverLabel& label, ir::Node& out);
  void read_event(const DriverLabel& label, ir::Node& out);
  absl::Status read_memory(const DriverLabel& label, ir::Node& out);

  // A place in operands_, until finish().
  ir::Pointer pointer_to(const Operand& operand);

  ir::GraphIr& graph_;
  ir::FunctionTable functions_;
  absl::flat_hash_map<std::string, std::uint32_t> known_functions_;  // by symbol
  absl::flat_hash_map<std::string, std::uint32_t> events_;           // by handle
  std::vector<Operand> operands_;
};

}  // namespace cgrt::inspect
