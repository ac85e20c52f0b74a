#include "cgrt/inspect/emit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/inspect/emit_nodes.h"
#include "cgrt/inspect/emit_text.h"

namespace cgrt::inspect {
namespace {

using ir::GraphIr;
using ir::Node;
using ir::NodeKind;

class Emitter {
 public:
  explicit Emitter(const GraphIr& graph)
      : graph_(graph),
        places_{.bodies_of_node = std::vector<std::vector<std::uint32_t>>(graph.nodes.size()),
                .has_memory = std::vector<bool>(graph.bodies.size() + 1),
                .is_of_graph = std::vector<bool>(graph.allocations.size())},
        writer_(graph, places_),
        nodes_of_body_(graph.bodies.size() + 1),
        before_(graph.nodes.size()),
        is_added_(graph.nodes.size()) {
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      nodes_of_body_[node.body].push_back(n);
      const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params);
      if (alloc != nullptr) places_.is_of_graph[alloc->address.allocation] = true;
      if (node.kind == NodeKind::kMemAlloc || node.kind == NodeKind::kMemFree) places_.has_memory[node.body] = true;
    }
    for (std::uint32_t i = 0; i < graph.bodies.size(); ++i)
      places_.bodies_of_node[graph.bodies[i].owner].push_back(i + 1);
    for (auto i = static_cast<std::uint32_t>(graph.bodies.size()); i > 0; --i) {
      if (places_.has_memory[i]) places_.has_memory[graph.nodes[graph.bodies[i - 1].owner].body] = true;
    }
    for (const ir::Edge& edge : graph.edges) before_[edge.to].push_back(edge);
  }

  std::string run() && {
    add_nodes();
    std::string out = absl::StrCat("// A CUDA graph of ", graph_.nodes.size(), " nodes and ", graph_.edges.size(),
                                   " edges, as graphdump emit wrote it.\n", kProgramBegin);
    add_kernels(out);
    add_state(out);
    out += kProgramHelpers;
    add_setup(out);
    return out + text_ + "}\n\nint main() {\n  begin();\n  set_up();\n" + calls_ + "  run();\n  return 0;\n}\n";
  }

 private:
  // Kernels, and what the graph is made of.
  void add_kernels(std::string& out) const {
    for (std::size_t i = 0; i < graph_.functions.size(); ++i) {
      absl::StrAppend(&out, "// ", in_quotes(graph_.functions[i].name), "\n__global__ void stub_", i, "(");
      const char* separator = "";
      for (const ir::Parameter& parameter : declared_parameters(graph_.functions[i])) {
        absl::StrAppend(&out, std::exchange(separator, ", "), "Bytes<", parameter.size, ", ", alignment_of(parameter),
                        ">");
      }
      absl::StrAppend(&out, ") {}\n");
    }
  }

  void add_state(std::string& out) const {
    std::size_t events = 0, handles = 0;
    for (const Node& node : graph_.nodes) {
      events += std::holds_alternative<ir::EventParams>(node.params) ? 1 : 0;
      handles += std::holds_alternative<ir::ConditionalParams>(node.params) ? 1 : 0;
    }
    const auto add = [&](const char* type, const char* name, std::size_t count) {
      absl::StrAppend(&out, type, " ", name, "[", std::max<std::size_t>(count, 1), "];\n");
    };
    absl::StrAppend(&out, "\nCUcontext context;\n");
    add("CUgraph", "graphs", graph_.bodies.size() + 1);
    add("CUgraphNode", "nodes", graph_.nodes.size());
    add("CUfunction", "functions", graph_.functions.size());
    add("CUdeviceptr", "memory", graph_.allocations.size());
    add("CUevent", "events", events);
    add("CUgraphConditionalHandle", "handles", handles);
  }

  void add_setup(std::string& out) const {
    absl::StrAppend(&out, "\nvoid set_up() {\n");
    const std::vector<std::uint64_t> sizes = sizes_of_allocations();
    for (std::size_t i = 0; i < graph_.allocations.size(); ++i) {
      if (places_.is_of_graph[i]) continue;
      const ir::MemoryKind kind = graph_.allocations[i].kind;
      const bool is_host = kind == ir::MemoryKind::kPinnedHost || kind == ir::MemoryKind::kHost;
      const char* function = is_host                                 ? "pinned_memory"
                             : kind == ir::MemoryKind::kPageableHost ? "pageable_memory"
                             : kind == ir::MemoryKind::kManaged      ? "managed_memory"
                                                                     : "device_memory";
      absl::StrAppend(&out, "  memory[", i, "] = ", function, "(", number_of(sizes[i]), ");\n");
    }
    for (std::size_t i = 0; i < graph_.functions.size(); ++i) {
      absl::StrAppend(&out, "  functions[", i, "] = function_of(reinterpret_cast<const void*>(stub_", i, "));\n");
    }
    absl::StrAppend(&out, "  for (CUevent& event : events) CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));\n");
    for (const Node& node : graph_.nodes) {
      const auto* operations = std::get_if<ir::BatchMemOpParams>(&node.params);
      if (operations == nullptr) continue;
      for (const ir::MemOp& one : operations->operations) {
        const bool is_met = one.kind == ir::MemOpKind::kWrite || one.kind == ir::MemOpKind::kWaitNor;
        if (is_met || places_.is_of_graph[one.address.allocation]) continue;
        absl::StrAppend(&out, "  store(", address_of(one.address), ", ", one.value, "ull, ", one.bytes,
                        ");  // which is waited for\n");
      }
    }
    absl::StrAppend(&out, "}\n");
  }

  // Where the file does not say: as far as nodes use it, and a page at least.
  std::vector<std::uint64_t> sizes_of_allocations() const {
    std::vector<std::uint64_t> sizes;
    for (const ir::Allocation& one : graph_.allocations) sizes.push_back(one.bytes);
    const auto use = [&](const ir::Pointer& pointer, std::uint64_t bytes) {
      if (graph_.allocations[pointer.allocation].bytes != 0) return;
      std::uint64_t& size = sizes[pointer.allocation];
      size = std::max({size, std::uint64_t{4096}, pointer.offset + bytes});
    };
    for (const Node& node : graph_.nodes) {
      if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
        for (const ir::InnerPointer& inner : kernel->pointers) use(inner.pointer, 4096);
      } else if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
        const auto extent = [&](std::uint64_t pitch) {
          return std::max(pitch, copy->width_bytes) * copy->height * copy->depth;
        };
        if (copy->destination.has_value()) use(*copy->destination, extent(copy->destination_pitch));
        if (copy->source.has_value()) use(*copy->source, extent(copy->source_pitch));
      } else if (const auto* fill = std::get_if<ir::MemsetParams>(&node.params)) {
        use(fill->destination, std::max(fill->pitch, fill->width * fill->element_bytes) * fill->height);
      } else if (const auto* operations = std::get_if<ir::BatchMemOpParams>(&node.params)) {
        for (const ir::MemOp& one : operations->operations) use(one.address, 8);
      }
    }
    for (std::uint64_t& size : sizes) size = std::max<std::uint64_t>(size, 1);
    return sizes;
  }

  // The nodes: those of a child graph before the node that it is in, those of conditional bodies after it.
  void add_nodes() {
    struct Place {
      std::uint32_t body;
      std::size_t next = 0;
    };
    std::vector<Place> places = {{0}};
    while (!places.empty()) {
      Place& place = places.back();
      const std::uint32_t body = place.body;
      if (place.next == nodes_of_body_[body].size()) {
        add_late_edges(body);
        places.pop_back();
        const bool is_child = body != 0 && graph_.nodes[graph_.bodies[body - 1].owner].kind == NodeKind::kChildGraph;
        if (is_child) add_node(graph_.bodies[body - 1].owner);
        continue;
      }
      const std::uint32_t id = nodes_of_body_[body][place.next++];
      const std::vector<std::uint32_t>& inside = places_.bodies_of_node[id];
      if (graph_.nodes[id].kind == NodeKind::kChildGraph && !inside.empty()) {
        begin_lines();
        absl::StrAppend(&text_, "  CHECK(cuGraphCreate(&graphs[", inside[0], "], 0));\n");
        places.push_back({inside[0]});
        continue;
      }
      add_node(id);
      // A conditional node that is not decoded is an empty one here, and has no graphs inside.
      const bool is_empty = graph_.nodes[id].kind == NodeKind::kConditional &&
                            std::holds_alternative<ir::NoParams>(graph_.nodes[id].params);
      if (is_empty) continue;
      for (auto one = inside.rbegin(); one != inside.rend(); ++one) places.push_back({*one});
    }
    if (parts_ == 0) begin_lines();
  }

  // Functions of so many parts that a compiler likes them.
  void begin_lines() {
    constexpr std::size_t kMaxParts = 100;
    if (parts_++ % kMaxParts != 0) return;
    const std::size_t function = parts_ / kMaxParts;
    absl::StrAppend(&text_, function == 0 ? "" : "}\n", "\nvoid build_", function, "() {\n");
    absl::StrAppend(&calls_, "  build_", function, "();\n");
  }

  void add_late_edges(std::uint32_t body) {
    for (const ir::Edge& edge : late_edges_[body]) {
      begin_lines();
      absl::StrAppend(&text_, "  add_edge(graphs[", body, "], ", edge.to, ", ", edge_text(edge), ");\n");
    }
  }

  static std::string edge_text(const ir::Edge& edge) {
    return absl::StrCat("{", edge.from, ", ", int{edge.from_port}, ", ", int{edge.to_port}, ", ",
                        static_cast<int>(edge.type), "}");
  }

  // "3, graphs[0], {{1, 0, 0, 0}}": the node's number and place.
  std::string place(std::uint32_t id) {
    std::string edges;
    for (const ir::Edge& edge : before_[id]) {
      if (is_added_[edge.from]) {
        absl::StrAppend(&edges, edges.empty() ? "" : ", ", edge_text(edge));
      } else {
        late_edges_[graph_.nodes[id].body].push_back(edge);
      }
    }
    is_added_[id] = true;
    return absl::StrCat(id, ", graphs[", graph_.nodes[id].body, "], {", edges, "}");
  }

  void add_node(std::uint32_t id) {
    begin_lines();
    const std::string where = place(id);
    text_ += writer_.write(id, where);
  }

  const GraphIr& graph_;
  ProgramPlaces places_;
  NodeWriter writer_;
  std::vector<std::vector<std::uint32_t>> nodes_of_body_;
  std::vector<std::vector<ir::Edge>> before_;
  std::vector<bool> is_added_;
  std::map<std::uint32_t, std::vector<ir::Edge>> late_edges_;  // by body: out of nodes that come later
  std::size_t parts_ = 0;
  std::string text_, calls_;
};

}  // namespace

std::string to_program(const ir::GraphIr& graph) { return Emitter(graph).run(); }

}  // namespace cgrt::inspect
