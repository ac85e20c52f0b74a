#include "cgrt/inspect/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/inspect/text_table.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

std::string header(const ir::GraphIr& graph) {
  const ir::Shape shape = ir::shape_of(graph);
  std::string inside;  // "2 child graphs with 7 of them, "
  if (!graph.bodies.empty()) {
    const auto in_body = [](const ir::Node& node) { return node.body != 0; };
    const bool has_conditional = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
      return node.kind == ir::NodeKind::kConditional;
    });
    inside = absl::StrCat(has_conditional ? count_of(graph.bodies.size(), "graph inside", "graphs inside")
                                          : count_of(graph.bodies.size(), "child graph", "child graphs"),
                          " with ", std::count_if(graph.nodes.begin(), graph.nodes.end(), in_body), " of them, ");
  }
  return absl::StrCat("graph: ", count_of(graph.nodes.size(), "node", "nodes"), ", ", inside,
                      count_of(graph.edges.size(), "edge", "edges"), ", depth ", shape.depth, ", width ", shape.width,
                      ", ", count_of(shape.roots, "root", "roots"), ", ", count_of(shape.leaves, "leaf", "leaves"),
                      "\n");
}

// The three cells of a node that depend on its kind: what, how large, with what.
struct Cells {
  std::string subject, size, arguments;
};

Cells cells_of(const ir::GraphIr&, const ir::NoParams&) { return {}; }

Cells cells_of(const ir::GraphIr& graph, const ir::KernelParams& params) {
  const auto append = [&](std::string* out, const ir::Argument& argument) { *out += describe(graph, argument); };
  const std::string attributes = describe(graph, params.attributes);
  return {.subject = ir::printable(function_of(graph, params).name),
          .size = absl::StrCat("grid ", describe(params.grid), " block ", describe(params.block), " shared ",
                               params.shared_bytes, attributes.empty() ? "" : " ", attributes),
          .arguments = absl::StrCat("(", absl::StrJoin(arguments_of(graph, params), ", ", append), ")")};
}

Cells cells_of(const ir::GraphIr& graph, const ir::MemcpyParams& params) {
  const auto end = [&](const std::optional<ir::Pointer>& pointer) {
    return pointer.has_value() ? describe(graph, *pointer) : std::string("array");
  };
  Cells cells;
  cells.subject = absl::StrCat(end(params.destination), " <- ", end(params.source));
  if (params.depth != 1) absl::StrAppend(&cells.size, params.depth, " x ");
  if (params.height != 1 || params.depth != 1) absl::StrAppend(&cells.size, params.height, " x ");
  absl::StrAppend(&cells.size, count_of(params.width_bytes, "byte", "bytes"));
  if (params.destination_pitch != 0 || params.source_pitch != 0) {
    cells.arguments = absl::StrCat("pitch ", params.destination_pitch, " <- ", params.source_pitch);
  }
  return cells;
}

Cells cells_of(const ir::GraphIr& graph, const ir::MemsetParams& params) {
  Cells cells;
  cells.subject = describe(graph, params.destination);
  if (params.height != 1) absl::StrAppend(&cells.size, params.height, " x ");
  absl::StrAppend(&cells.size, params.width, " x ", count_of(params.element_bytes, "byte", "bytes"), " = 0x",
                  absl::Hex(params.value));
  if (params.pitch != 0) cells.arguments = absl::StrCat("pitch ", params.pitch);
  return cells;
}

Cells cells_of(const ir::GraphIr&, const ir::EventParams& params) {
  return {.subject = absl::StrCat("event#", params.event), .size = {}, .arguments = {}};
}

Cells cells_of(const ir::GraphIr&, const ir::ConditionalParams& params) {
  return {.subject = absl::StrCat(ir::to_string(params.kind), " handle#", params.handle),
          .size = params.at_launch.has_value() ? absl::StrCat(*params.at_launch, " at launch") : "",
          .arguments = {}};
}

Cells cells_of(const ir::GraphIr& graph, const ir::MemAllocParams& params) {
  return {.subject = describe(graph, params.address), .size = count_of(params.bytes, "byte", "bytes"), .arguments = {}};
}

Cells cells_of(const ir::GraphIr& graph, const ir::MemFreeParams& params) {
  return {.subject = describe(graph, params.address), .size = {}, .arguments = {}};
}

Cells cells_of(const ir::GraphIr& graph, const ir::BatchMemOpParams& params) {
  const auto append = [&](std::string* out, const ir::MemOp& operation) { *out += describe(graph, operation); };
  return {.subject = count_of(params.operations.size(), "operation", "operations"),
          .size = {},
          .arguments = absl::StrCat("(", absl::StrJoin(params.operations, "; ", append), ")")};
}

Cells cells_of(const ir::GraphIr&, const ir::SemaphoreParams& params) {
  const auto append = [](std::string* out, const ir::SemaphoreValue& value) { *out += describe(value); };
  return {.subject = count_of(params.semaphores.size(), "semaphore", "semaphores"),
          .size = {},
          .arguments = absl::StrCat("(", absl::StrJoin(params.semaphores, "; ", append), ")")};
}

// "2", "2 (programmatic)", and with ports that are not the usual ones of the type.
std::string dependency(const ir::Edge& edge) {
  const bool is_programmatic = edge.type == ir::EdgeType::kProgrammatic;
  const std::uint8_t usual_port = is_programmatic ? 1 : 0;  // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
  std::vector<std::string> notes;
  if (is_programmatic) notes.emplace_back(to_string(edge.type));
  if (!is_programmatic && edge.from_port == 2) {  // CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
    notes.emplace_back("launch completion");
  } else if (edge.from_port != usual_port)
    notes.push_back(absl::StrCat("from port ", edge.from_port));
  if (edge.to_port != 0) notes.push_back(absl::StrCat("to port ", edge.to_port));
  if (notes.empty()) return absl::StrCat(edge.from);
  return absl::StrCat(edge.from, " (", absl::StrJoin(notes, ", "), ")");
}

// Per node, "after 0, 1"; empty for a root.
std::vector<std::string> dependencies(const ir::GraphIr& graph) {
  std::vector<std::string> out(graph.nodes.size());
  for (const ir::Edge& edge : graph.edges) {
    absl::StrAppend(&out[edge.to], out[edge.to].empty() ? "after " : ", ", dependency(edge));
  }
  return out;
}

// A device is worth a word only where nodes run on different ones.
bool uses_several_devices(const ir::GraphIr& graph) {
  std::int32_t seen = -1;
  for (const ir::Node& node : graph.nodes) {
    if (node.device == -1) continue;
    if (seen != -1 && seen != node.device) return true;
    seen = node.device;
  }
  return false;
}

// Writes the nodes of one body after the other. Nodes are ascending by body, so that each is looked at once.
class NodeWriter {
 public:
  NodeWriter(const ir::GraphIr& graph, std::string& out)
      : graph_(graph), out_(out), shows_device_(uses_several_devices(graph)), after_(dependencies(graph)) {}

  // `body` must be the one after that of the call before; 0 at first.
  void append(std::uint32_t body) {
    Table<8> table;
    for (; next_ < graph_.nodes.size() && graph_.nodes[next_].body == body; ++next_) table.add(row(next_));
    table.append_to(out_, Align::kRight);
  }

 private:
  Table<8>::Row row(std::size_t id) {
    const ir::Node& node = graph_.nodes[id];
    Cells cells = std::visit([&](const auto& params) { return cells_of(graph_, params); }, node.params);
    return {absl::StrCat(id),
            to_string(node.kind),
            shows_device_ && node.device != -1 ? absl::StrCat("on ", node.device) : "",
            std::move(cells.subject),
            std::move(cells.size),
            std::move(cells.arguments),
            node.scope.empty() ? "" : absl::StrCat("[", ir::printable(node.scope), "]"),
            std::move(after_[id])};
  }

  const ir::GraphIr& graph_;
  std::string& out_;
  const bool shows_device_;
  std::vector<std::string> after_;
  std::size_t next_ = 0;
};

void append_allocations(const ir::GraphIr& graph, std::string& out) {
  Table<3> table;
  for (std::size_t id = 0; id < graph.allocations.size(); ++id) {
    const ir::Allocation& allocation = graph.allocations[id];
    const std::string kind = to_string(allocation.kind);
    table.add({describe(graph, ir::Pointer{.allocation = static_cast<std::uint32_t>(id), .offset = 0}),
               allocation.bytes != 0 ? count_of(allocation.bytes, "byte", "bytes") : "size unknown",
               allocation.device == -1 ? kind : absl::StrCat(kind, " ", allocation.device)});
  }
  table.append_to(out, Align::kLeft);
}

}  // namespace

std::string to_text(const ir::GraphIr& graph) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    return absl::StrCat("not a valid graph: ", status.message(), "\n");
  }
  std::string out = header(graph);
  NodeWriter nodes(graph, out);
  if (!graph.nodes.empty()) out += '\n';
  nodes.append(0);
  for (std::uint32_t body = 1; body <= graph.bodies.size(); ++body) {
    absl::StrAppend(&out, "\n", ir::body_label(graph, body), "\n");
    nodes.append(body);
  }
  if (!graph.allocations.empty()) {
    out += "\nallocations\n";
    append_allocations(graph, out);
  }
  return out;
}

}  // namespace cgrt::inspect
