#include "cgrt/inspect/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cgrt/inspect/repeats.h"
#include "cgrt/inspect/short_name.h"
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
  const std::string sizes = ir::has_sizes(params)
                                ? absl::StrCat("grid ", describe(params.grid), " block ", describe(params.block),
                                               " shared ", params.shared_bytes)
                                : "size unknown";
  return {.subject = ir::printable(function_of(graph, params).name),
          .size = absl::StrCat(sizes, attributes.empty() ? "" : " ", attributes),
          .arguments = function_of(graph, params).has_parameters
                           ? absl::StrCat("(", absl::StrJoin(arguments_of(graph, params), ", ", append), ")")
                           : "(?)"};
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

// Numbers of equal texts are equal.
class Numbering {
 public:
  std::uint32_t operator()(const std::string& text) {
    return numbers_.try_emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
};

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (!is_digit)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

// Writes the nodes of one body after the other. Nodes are ascending by body, so that each is looked at once.
class NodeTextWriter {
 public:
  NodeTextWriter(const ir::GraphIr& graph, const TextOptions& options, std::string& out)
      : graph_(graph),
        options_(options),
        out_(out),
        shows_device_(uses_several_devices(graph)),
        after_(dependencies(graph)) {
    if (options.fold) look_for_repeats();
  }

  // `body` must be the one after that of the call before; 0 at first.
  void append(std::uint32_t body) {
    Table<8> table;
    scope_.clear();
    while (next_ < graph_.nodes.size() && graph_.nodes[next_].body == body) {
      const Repeat repeat = options_.fold ? repeats_[next_] : Repeat{next_, 1, 1};
      constexpr std::size_t kFewest = 5;  // lines that are left out
      if (repeat.times < 2 || repeat.period * (repeat.times - 1) < kFewest) {
        add(table, next_++);
        continue;
      }
      const std::size_t end = next_ + repeat.period * repeat.times;
      bool is_same = true;
      for (std::size_t i = next_; i + repeat.period < end; ++i)
        is_same &= graph_.nodes[i].params == graph_.nodes[i + repeat.period].params;
      for (const std::size_t shown = next_ + repeat.period; next_ < shown; ++next_) add(table, next_);
      const std::string what =
          repeat.period == 1 ? "the node above repeats " : absl::StrCat("the ", repeat.period, " nodes above repeat ");
      table.add_line(absl::StrCat("... ", what, count_of(repeat.times - 1, "time", "times"), ", up to node ", end - 1,
                                  is_same ? "" : ", with other arguments"));
      next_ = end;
      scope_ = names_of(graph_.nodes[end - 1].scope);
    }
    table.append_to(out_, Align::kRight);
  }

 private:
  // What lies deeper is one scope with a long name, as in pictures: each has a line, further to the right.
  static std::vector<std::string> names_of(const std::string& scope) {
    constexpr int kMaxNested = 32;
    return scope.empty() ? std::vector<std::string>() : absl::StrSplit(scope, absl::MaxSplits('/', kMaxNested - 1));
  }

  // With a line in front for each scope that begins here.
  void add(Table<8>& table, std::size_t id) {
    const std::vector<std::string> scope = names_of(graph_.nodes[id].scope);
    std::size_t depth = 0;
    while (depth < scope.size() && depth < scope_.size() && scope[depth] == scope_[depth]) ++depth;
    const std::size_t ids = absl::StrCat(graph_.nodes.size() - 1).size();
    for (; depth < scope.size(); ++depth) {
      table.add_line(absl::StrCat(std::string(ids + 2 + 2 * depth, ' '), ir::printable(scope[depth]), "/"));
    }
    scope_ = scope;
    table.add(row(id, 2 * depth));
  }

  // What repeats is what runs, its size, scope and body, and which nodes it waits for: as far before, or the same ones.
  void look_for_repeats() {
    std::vector<std::string> before(graph_.nodes.size()), same(graph_.nodes.size());
    for (const ir::Edge& edge : graph_.edges) {
      const std::string how = absl::StrCat(static_cast<int>(edge.type), ",", edge.from_port, ",", edge.to_port, ";");
      absl::StrAppend(&before[edge.to], edge.to - edge.from, ",", how);
      absl::StrAppend(&same[edge.to], edge.from, ",", how);
    }
    Numbering numbers;
    std::vector<std::uint32_t> of_before, of_same;
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_.nodes[id];
      const Cells cells = std::visit([&](const auto& params) { return cells_of(graph_, params); }, node.params);
      const bool is_kernel = node.kind == ir::NodeKind::kKernel;
      const std::string text =
          absl::StrCat(to_string(node.kind), "|", node.device, "|", node.body, "|", is_kernel ? cells.subject : "", "|",
                       cells.size, "|", without_digits(node.scope), "|");
      of_before.push_back(numbers(text + before[id]));
      of_same.push_back(numbers(text + same[id]));
    }
    repeats_ = longest_repeats(of_before);
    const std::vector<Repeat> others = longest_repeats(of_same);
    for (std::size_t id = 0; id < repeats_.size(); ++id) {
      if (others[id].times * others[id].period > repeats_[id].times * repeats_[id].period) repeats_[id] = others[id];
    }
  }

  std::string time_of(std::size_t id) const {
    const bool is_timed = id < graph_.timing.nodes.size() && graph_.timing.nodes[id].count != 0;
    return is_timed ? absl::StrFormat("%.1f us", static_cast<double>(graph_.timing.nodes[id].median_ns) / 1000) : "";
  }

  Table<8>::Row row(std::size_t id, std::size_t indentation) {
    const ir::Node& node = graph_.nodes[id];
    Cells cells = std::visit([&](const auto& params) { return cells_of(graph_, params); }, node.params);
    const bool is_shortened = options_.short_names && node.kind == ir::NodeKind::kKernel;
    return {absl::StrCat(id),
            std::string(indentation, ' ') + to_string(node.kind),
            shows_device_ && node.device != -1 ? absl::StrCat("on ", node.device) : "",
            is_shortened ? short_name(cells.subject) : std::move(cells.subject),
            std::move(cells.size),
            std::move(cells.arguments),
            time_of(id),
            std::move(after_[id])};
  }

  const ir::GraphIr& graph_;
  const TextOptions options_;
  std::string& out_;
  const bool shows_device_;
  std::vector<std::string> after_;
  std::vector<Repeat> repeats_;     // by node
  std::vector<std::string> scope_;  // of the node before
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

std::string to_text(const ir::GraphIr& graph, const TextOptions& options) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    return absl::StrCat("not a valid graph: ", status.message(), "\n");
  }
  std::string out = header(graph);
  NodeTextWriter nodes(graph, options, out);
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
