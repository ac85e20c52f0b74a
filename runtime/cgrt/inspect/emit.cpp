#include "cgrt/inspect/emit.h"

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

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/inspect/emit_text.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using ir::GraphIr;
using ir::Node;
using ir::NodeKind;

// For a comment that ends with its line.
std::string in_quotes(std::string_view text) { return absl::StrCat("\"", ir::printable(text), "\""); }

std::string number(std::uint64_t value) { return absl::StrCat(value, value > INT32_MAX ? "ull" : ""); }

// The largest that its place allows: that of the original type, or a multiple that leads to the same place.
std::uint32_t alignment_of(const ir::Parameter& parameter) {
  std::uint32_t align = 1;
  while (align < 128 && parameter.offset % (2 * align) == 0 && parameter.size % (2 * align) == 0) align *= 2;
  return align;
}

// The parameters of a function, with ones of bytes where no alignment explains a gap.
std::vector<ir::Parameter> declared_parameters(const ir::Function& function) {
  std::vector<ir::Parameter> all;
  std::uint32_t end = 0;
  for (const ir::Parameter& parameter : function.parameters) {
    if (parameter.size == 0) continue;
    if (parameter.offset - end >= alignment_of(parameter)) all.push_back({end, parameter.offset - end});
    all.push_back(parameter);
    end = parameter.offset + parameter.size;
  }
  return all;
}

class Emitter {
 public:
  explicit Emitter(const GraphIr& graph)
      : graph_(graph),
        nodes_of_body_(graph.bodies.size() + 1),
        bodies_of_node_(graph.nodes.size()),
        before_(graph.nodes.size()),
        has_memory_(graph.bodies.size() + 1),
        is_of_graph_(graph.allocations.size()),
        is_added_(graph.nodes.size()) {
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      nodes_of_body_[node.body].push_back(n);
      const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params);
      if (alloc != nullptr) is_of_graph_[alloc->address.allocation] = true;
      if (node.kind == NodeKind::kMemAlloc || node.kind == NodeKind::kMemFree) has_memory_[node.body] = true;
    }
    for (std::uint32_t i = 0; i < graph.bodies.size(); ++i) bodies_of_node_[graph.bodies[i].owner].push_back(i + 1);
    for (auto i = static_cast<std::uint32_t>(graph.bodies.size()); i > 0; --i) {
      if (has_memory_[i]) has_memory_[graph.nodes[graph.bodies[i - 1].owner].body] = true;
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
      if (is_of_graph_[i]) continue;
      const ir::MemoryKind kind = graph_.allocations[i].kind;
      const char* function = kind == ir::MemoryKind::kPinnedHost     ? "pinned_memory"
                             : kind == ir::MemoryKind::kPageableHost ? "pageable_memory"
                             : kind == ir::MemoryKind::kManaged      ? "managed_memory"
                                                                     : "device_memory";
      absl::StrAppend(&out, "  memory[", i, "] = ", function, "(", number(sizes[i]), ");\n");
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
        if (is_met || is_of_graph_[one.address.allocation]) continue;
        absl::StrAppend(&out, "  store(", address(one.address), ", ", one.value, "ull, ", one.bytes,
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
      const std::vector<std::uint32_t>& inside = bodies_of_node_[id];
      if (graph_.nodes[id].kind == NodeKind::kChildGraph && !inside.empty()) {
        begin_lines();
        absl::StrAppend(&text_, "  CHECK(cuGraphCreate(&graphs[", inside[0], "], 0));\n");
        places.push_back({inside[0]});
        continue;
      }
      add_node(id);
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

  std::string address(const ir::Pointer& pointer) const {
    const std::string base = absl::StrCat("memory[", pointer.allocation, "]");
    return pointer.offset == 0 ? base : absl::StrCat(base, " + ", number(pointer.offset));
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
    const Node& node = graph_.nodes[id];
    const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
    absl::StrAppend(&text_, "  {  // node ", id, ", ",
                    kernel != nullptr ? in_quotes(function_of(graph_, *kernel).name) : to_string(node.kind),
                    node.scope.empty() ? "" : ", " + in_quotes(node.scope), stand_in(node), "\n");
    const std::string where = place(id);
    std::visit([&](const auto& params) { add(id, node, params, where); }, node.params);
    absl::StrAppend(&text_, "  }\n");
  }

  const char* stand_in(const Node& node) const {
    switch (node.kind) {
      case NodeKind::kHost: return "; its function is not in the file";
      case NodeKind::kSemaphoreSignal:
      case NodeKind::kSemaphoreWait: return "; an empty node here: a semaphore is another API's";
      case NodeKind::kBatchMemOp:
        return std::holds_alternative<ir::NoParams>(node.params) ? "; an empty node here: not in the file" : "";
      case NodeKind::kMemFree: return is_known_free(node) ? "" : "; an empty node here: the memory is another graph's";
      case NodeKind::kConditional: {
        const auto* params = std::get_if<ir::ConditionalParams>(&node.params);
        if (params == nullptr) return "; an empty node here: not in the file";
        return params->kind == ir::ConditionalKind::kWhile ? "; begins with 0, since nothing here would end it" : "";
      }
      default: return "";
    }
  }

  bool is_known_free(const Node& node) const {
    const auto* params = std::get_if<ir::MemFreeParams>(&node.params);
    return params != nullptr && is_of_graph_[params->address.allocation];
  }

  void add_params(const char* type) {
    absl::StrAppend(&text_, "    CUgraphNodeParams params{};\n    params.type = CU_GRAPH_NODE_TYPE_", type, ";\n");
  }
  void line(const std::string& text) { absl::StrAppend(&text_, "    ", text, "\n"); }
  void add_with_params(const std::string& where) { line(absl::StrCat("add(", where, ", params);")); }

  void add(std::uint32_t id, const Node& node, const ir::NoParams&, const std::string& where) {
    if (node.kind == NodeKind::kHost) {
      add_params("HOST");
      line("params.host.fn = do_nothing;");
      return add_with_params(where);
    }
    if (node.kind != NodeKind::kChildGraph || bodies_of_node_[id].empty()) return line("add_empty(" + where + ");");
    const std::uint32_t body = bodies_of_node_[id][0];
    add_params("GRAPH");
    line(absl::StrCat("params.graph.graph = graphs[", body, "];"));
    if (has_memory_[body]) line("params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;");
    add_with_params(where);
  }

  void add(std::uint32_t id, const Node&, const ir::KernelParams& kernel, const std::string& where) {
    const std::vector<ir::Parameter> parameters = declared_parameters(function_of(graph_, kernel));
    if (!parameters.empty()) {
      std::string bytes, places;
      const std::size_t size = parameters.back().offset + std::size_t{parameters.back().size};
      for (std::size_t i = 0; i < size; ++i) {
        absl::StrAppend(&bytes, i == 0 ? "" : ", ", i < kernel.arguments.size() ? int{kernel.arguments[i]} : 0);
      }
      for (const ir::Parameter& parameter : parameters) {
        absl::StrAppend(&places, places.empty() ? "" : ", ", "arguments + ", parameter.offset);
      }
      line(absl::StrCat("unsigned char arguments[] = {", bytes, "};"));
      for (const auto& [at, pointer] : kernel.pointers) {
        line(absl::StrCat("put(arguments, ", at, ", ", address(pointer), ");"));
      }
      line(absl::StrCat("void* parameters[] = {", places, "};"));
    }
    const auto dim = [](const ir::Dim3& d) { return absl::StrCat("dim3(", d.x, ", ", d.y, ", ", d.z, ")"); };
    const ir::Dim3& cluster = kernel.attributes.cluster;
    if (std::uint64_t{cluster.x} * cluster.y * cluster.z > 8) {
      line(absl::StrCat("CHECK(cuFuncSetAttribute(functions[", kernel.function,
                        "], CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));"));
    }
    line(absl::StrCat("add_kernel(", where, ", functions[", kernel.function, "], ", dim(kernel.grid), ", ",
                      dim(kernel.block), ", ", kernel.shared_bytes, ", ", parameters.empty() ? "nullptr" : "parameters",
                      ");"));
    add_attributes(id, kernel.attributes);
  }

  void add_attributes(std::uint32_t id, const ir::LaunchAttributes& attributes) {
    if (attributes == ir::LaunchAttributes()) return;
    line("CUlaunchAttributeValue value;");
    const auto add = [&](const char* name, const std::string& assignments) {
      line(absl::StrCat("value = {};"));
      line(assignments);
      line(absl::StrCat("set_attribute(", id, ", CU_LAUNCH_ATTRIBUTE_", name, ", value);"));
    };
    const auto dim = [](const char* field, const ir::Dim3& d) {
      return absl::StrCat("value.", field, " = {", d.x, ", ", d.y, ", ", d.z, "};");
    };
    constexpr ir::Dim3 kNone;
    if (attributes.cooperative) add("COOPERATIVE", "value.cooperative = 1;");
    if (attributes.cluster != kNone) add("CLUSTER_DIMENSION", dim("clusterDim", attributes.cluster));
    if (attributes.preferred_cluster != kNone) {
      add("PREFERRED_CLUSTER_DIMENSION", dim("preferredClusterDim", attributes.preferred_cluster));
    }
    if (attributes.cluster_scheduling != ir::ClusterScheduling::kDefault) {
      const bool is_spread = attributes.cluster_scheduling == ir::ClusterScheduling::kSpread;
      add("CLUSTER_SCHEDULING_POLICY_PREFERENCE",
          absl::StrCat("value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_",
                       is_spread ? "SPREAD;" : "LOAD_BALANCING;"));
    }
    if (attributes.priority != 0) add("PRIORITY", absl::StrCat("value.priority = ", attributes.priority, ";"));
    if (attributes.is_remote_domain) {
      add("MEM_SYNC_DOMAIN", "value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;");
    }
    if (attributes.shared_carveout_percent != 0) {
      add("PREFERRED_SHARED_MEMORY_CARVEOUT",
          absl::StrCat("value.sharedMemCarveout = ", attributes.shared_carveout_percent, ";"));
    }
    if (const ir::AccessPolicyWindow& window = attributes.access_policy; window.bytes != 0) {
      const auto property = [](ir::AccessProperty one) {
        return one == ir::AccessProperty::kNormal      ? "CU_ACCESS_PROPERTY_NORMAL"
               : one == ir::AccessProperty::kStreaming ? "CU_ACCESS_PROPERTY_STREAMING"
                                                       : "CU_ACCESS_PROPERTY_PERSISTING";
      };
      add("ACCESS_POLICY_WINDOW",
          absl::StrCat("value.accessPolicyWindow = {reinterpret_cast<void*>(", address(window.base), "), ",
                       number(window.bytes), ", static_cast<float>(", absl::StrFormat("%.9g", window.hit_ratio), "), ",
                       property(window.hit), ", ", property(window.miss), "};"));
    }
  }

  void add(std::uint32_t, const Node&, const ir::MemcpyParams& copy, const std::string& where) {
    const auto operand = [&](const std::optional<ir::Pointer>& pointer, std::uint64_t pitch) {
      const std::uint64_t row = std::max(pitch, copy.width_bytes);
      // An array is not in the file.
      if (!pointer.has_value()) {
        return absl::StrCat("{CU_MEMORYTYPE_DEVICE, device_memory(", number(row * copy.height * copy.depth), "), ",
                            number(row), "}");
      }
      const ir::MemoryKind kind = graph_.allocations[pointer->allocation].kind;
      const bool is_host = kind == ir::MemoryKind::kPinnedHost || kind == ir::MemoryKind::kPageableHost;
      return absl::StrCat("{CU_MEMORYTYPE_", is_host ? "HOST" : "DEVICE", ", ", address(*pointer), ", ", number(row),
                          "}");
    };
    line(absl::StrCat("add_copy(", where, ", ", operand(copy.destination, copy.destination_pitch), ", ",
                      operand(copy.source, copy.source_pitch), ", ", number(copy.width_bytes), ", ",
                      number(copy.height), ", ", number(copy.depth), ");"));
  }

  void add(std::uint32_t, const Node&, const ir::MemsetParams& fill, const std::string& where) {
    line(absl::StrCat("add_memset(", where, ", ", address(fill.destination), ", ", fill.value, "u, ",
                      fill.element_bytes, ", ", number(fill.width), ", ", number(fill.height), ", ", number(fill.pitch),
                      ");"));
  }

  void add(std::uint32_t, const Node& node, const ir::EventParams& event, const std::string& where) {
    const bool is_record = node.kind == NodeKind::kEventRecord;
    add_params(is_record ? "EVENT_RECORD" : "WAIT_EVENT");
    line(absl::StrCat("params.", is_record ? "eventRecord" : "eventWait", ".event = events[",
                      events_.try_emplace(event.event, events_.size()).first->second, "];"));
    add_with_params(where);
  }

  void add(std::uint32_t id, const Node&, const ir::ConditionalParams& params, const std::string& where) {
    const bool is_while = params.kind == ir::ConditionalKind::kWhile;
    const char* type = is_while ? "WHILE" : params.kind == ir::ConditionalKind::kIf ? "IF" : "SWITCH";
    const std::vector<std::uint32_t>& bodies = bodies_of_node_[id];
    const std::size_t handle = handles_++;
    line(absl::StrCat("CHECK(cuGraphConditionalHandleCreate(&handles[", handle, "], graphs[", graph_.nodes[id].body,
                      "], context, ", is_while ? 0 : params.at_launch.value_or(0), "u, ",
                      params.at_launch.has_value() || is_while ? "CU_GRAPH_COND_ASSIGN_DEFAULT" : "0", "));"));
    add_params("CONDITIONAL");
    line(absl::StrCat("params.conditional.handle = handles[", handle, "];"));
    line(absl::StrCat("params.conditional.type = CU_GRAPH_COND_TYPE_", type, ";"));
    line(absl::StrCat("params.conditional.size = ", bodies.size(), ";"));
    line("params.conditional.ctx = context;");
    add_with_params(where);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      line(absl::StrCat("graphs[", bodies[i], "] = params.conditional.phGraph_out[", i, "];"));
    }
  }

  void add(std::uint32_t, const Node&, const ir::MemAllocParams& alloc, const std::string& where) {
    add_params("MEM_ALLOC");
    line("params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;");
    line("params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};");
    line(absl::StrCat("params.alloc.bytesize = ", number(alloc.bytes), ";"));
    add_with_params(where);
    line(absl::StrCat("memory[", alloc.address.allocation, "] = params.alloc.dptr;"));
  }

  void add(std::uint32_t, const Node& node, const ir::MemFreeParams& free, const std::string& where) {
    if (!is_known_free(node)) return line("add_empty(" + where + ");");
    add_params("MEM_FREE");
    line(absl::StrCat("params.free.dptr = ", address(free.address), ";"));
    add_with_params(where);
  }

  void add(std::uint32_t, const Node&, const ir::BatchMemOpParams& params, const std::string& where) {
    if (params.operations.empty()) return line("add_empty(" + where + ");");
    line(absl::StrCat("CUstreamBatchMemOpParams operations[", params.operations.size(), "] = {};"));
    for (std::size_t i = 0; i < params.operations.size(); ++i) {
      const ir::MemOp& one = params.operations[i];
      const bool is_write = one.kind == ir::MemOpKind::kWrite, is_long = one.bytes == 8;
      const std::string at = absl::StrCat("operations[", i, "].", is_write ? "writeValue" : "waitValue");
      constexpr const char* kConditions[] = {"DEFAULT", "GEQ", "EQ", "AND", "NOR"};
      const char* const condition = kConditions[static_cast<std::size_t>(one.kind)];
      line(absl::StrCat("operations[", i, "].operation = CU_STREAM_MEM_OP_", is_write ? "WRITE" : "WAIT", "_VALUE_",
                        is_long ? 64 : 32, ";"));
      line(absl::StrCat(at, ".address = ", address(one.address), ";"));
      line(absl::StrCat(at, is_long ? ".value64 = " : ".value = ", one.value, is_long ? "ull;" : "u;"));
      line(absl::StrCat(at, ".flags = CU_STREAM_", is_write ? "WRITE" : "WAIT", "_VALUE_", condition, ";"));
    }
    add_params("BATCH_MEM_OP");
    line("params.memOp.ctx = context;");
    line(absl::StrCat("params.memOp.count = ", params.operations.size(), ";"));
    line("params.memOp.paramArray = operations;");
    add_with_params(where);
  }

  void add(std::uint32_t, const Node&, const ir::SemaphoreParams&, const std::string& where) {
    line("add_empty(" + where + ");");
  }

  const GraphIr& graph_;
  std::vector<std::vector<std::uint32_t>> nodes_of_body_, bodies_of_node_;
  std::vector<std::vector<ir::Edge>> before_;
  std::vector<bool> has_memory_;   // bodies that allocate or free, also inside of their nodes
  std::vector<bool> is_of_graph_;  // allocations that a node makes
  std::vector<bool> is_added_;
  std::map<std::uint32_t, std::vector<ir::Edge>> late_edges_;  // by body: out of nodes that come later
  std::map<std::uint32_t, std::size_t> events_;                // by number; numbers in a file may have gaps
  std::size_t handles_ = 0, parts_ = 0;
  std::string text_, calls_;
};

}  // namespace

std::string to_program(const ir::GraphIr& graph) { return Emitter(graph).run(); }

}  // namespace cgrt::inspect
