#include "cgrt/inspect/emit_nodes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {

using ir::Node;
using ir::NodeKind;

std::string in_quotes(std::string_view text) { return absl::StrCat("\"", ir::printable(text), "\""); }

std::string number_of(std::uint64_t value) { return absl::StrCat(value, value > INT32_MAX ? "ull" : ""); }

std::uint32_t alignment_of(const ir::Parameter& parameter) {
  std::uint32_t align = 1;
  while (align < 128 && parameter.offset % (2 * align) == 0 && parameter.size % (2 * align) == 0) align *= 2;
  return align;
}

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

std::string address_of(const ir::Pointer& pointer) {
  const std::string base = absl::StrCat("memory[", pointer.allocation, "]");
  return pointer.offset == 0 ? base : absl::StrCat(base, " + ", number_of(pointer.offset));
}

std::string NodeWriter::write(std::uint32_t id, const std::string& where) {
  const Node& node = graph_.nodes[id];
  const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
  text_ = absl::StrCat("  {  // node ", id, ", ",
                       kernel != nullptr ? in_quotes(function_of(graph_, *kernel).name) : to_string(node.kind),
                       node.scope.empty() ? "" : ", " + in_quotes(node.scope), stand_in(node), "\n");
  std::visit([&](const auto& params) { add(id, node, params, where); }, node.params);
  return std::move(text_) + "  }\n";
}

const char* NodeWriter::stand_in(const Node& node) const {
  switch (node.kind) {
    case NodeKind::kHost: return "; its function is not in the file";
    case NodeKind::kKernel: {
      const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
      if (kernel == nullptr || function_of(graph_, *kernel).has_parameters) return "";
      return ir::has_sizes(*kernel) ? "; its arguments are not in the file"
                                    : "; of one thread here: its sizes and arguments are not in the file";
    }
    case NodeKind::kSemaphoreSignal:
    case NodeKind::kSemaphoreWait: return "; an empty node here: a semaphore is another API's";
    case NodeKind::kMemcpy:
    case NodeKind::kMemset:
    case NodeKind::kEventRecord:
    case NodeKind::kEventWait:
    case NodeKind::kMemAlloc:
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

bool NodeWriter::is_known_free(const Node& node) const {
  const auto* params = std::get_if<ir::MemFreeParams>(&node.params);
  return params != nullptr && places_.is_of_graph[params->address.allocation];
}

void NodeWriter::add_params(const char* type) {
  absl::StrAppend(&text_, "    CUgraphNodeParams params{};\n    params.type = CU_GRAPH_NODE_TYPE_", type, ";\n");
}
void NodeWriter::line(const std::string& text) { absl::StrAppend(&text_, "    ", text, "\n"); }

void NodeWriter::add(std::uint32_t id, const Node& node, const ir::NoParams&, const std::string& where) {
  if (node.kind == NodeKind::kHost) {
    add_params("HOST");
    line("params.host.fn = do_nothing;");
    return add_with_params(where);
  }
  if (node.kind != NodeKind::kChildGraph || places_.bodies_of_node[id].empty())
    return line("add_empty(" + where + ");");
  const std::uint32_t body = places_.bodies_of_node[id][0];
  add_params("GRAPH");
  line(absl::StrCat("params.graph.graph = graphs[", body, "];"));
  if (places_.has_memory[body]) line("params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;");
  add_with_params(where);
}

void NodeWriter::add(std::uint32_t id, const Node&, const ir::KernelParams& kernel, const std::string& where) {
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
      line(absl::StrCat("put(arguments, ", at, ", ", address_of(pointer), ");"));
    }
    line(absl::StrCat("void* parameters[] = {", places, "};"));
  }
  const auto dim = [&](const ir::Dim3& d) {
    const ir::Dim3 known = ir::has_sizes(kernel) ? d : ir::Dim3();
    return absl::StrCat("dim3(", known.x, ", ", known.y, ", ", known.z, ")");
  };
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

void NodeWriter::add_attributes(std::uint32_t id, const ir::LaunchAttributes& attributes) {
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
        absl::StrCat("value.accessPolicyWindow = {reinterpret_cast<void*>(", address_of(window.base), "), ",
                     number_of(window.bytes), ", static_cast<float>(", absl::StrFormat("%.9g", window.hit_ratio), "), ",
                     property(window.hit), ", ", property(window.miss), "};"));
  }
}

void NodeWriter::add(std::uint32_t, const Node&, const ir::MemcpyParams& copy, const std::string& where) {
  const auto operand = [&](const std::optional<ir::Pointer>& pointer, std::uint64_t pitch) {
    const std::uint64_t row = std::max(pitch, copy.width_bytes);
    // An array is not in the file.
    if (!pointer.has_value()) {
      return absl::StrCat("{CU_MEMORYTYPE_DEVICE, device_memory(", number_of(row * copy.height * copy.depth), "), ",
                          number_of(row), "}");
    }
    const ir::MemoryKind kind = graph_.allocations[pointer->allocation].kind;
    const bool is_host =
        kind == ir::MemoryKind::kPinnedHost || kind == ir::MemoryKind::kPageableHost || kind == ir::MemoryKind::kHost;
    return absl::StrCat("{CU_MEMORYTYPE_", is_host ? "HOST" : "DEVICE", ", ", address_of(*pointer), ", ",
                        number_of(row), "}");
  };
  line(absl::StrCat("add_copy(", where, ", ", operand(copy.destination, copy.destination_pitch), ", ",
                    operand(copy.source, copy.source_pitch), ", ", number_of(copy.width_bytes), ", ",
                    number_of(copy.height), ", ", number_of(copy.depth), ");"));
}

void NodeWriter::add(std::uint32_t, const Node&, const ir::MemsetParams& fill, const std::string& where) {
  line(absl::StrCat("add_memset(", where, ", ", address_of(fill.destination), ", ", fill.value, "u, ",
                    fill.element_bytes, ", ", number_of(fill.width), ", ", number_of(fill.height), ", ",
                    number_of(fill.pitch), ");"));
}

void NodeWriter::add(std::uint32_t, const Node& node, const ir::EventParams& event, const std::string& where) {
  const bool is_record = node.kind == NodeKind::kEventRecord;
  add_params(is_record ? "EVENT_RECORD" : "WAIT_EVENT");
  line(absl::StrCat("params.", is_record ? "eventRecord" : "eventWait", ".event = events[",
                    events_.try_emplace(event.event, events_.size()).first->second, "];"));
  add_with_params(where);
}

void NodeWriter::add(std::uint32_t id, const Node&, const ir::ConditionalParams& params, const std::string& where) {
  const bool is_while = params.kind == ir::ConditionalKind::kWhile;
  const char* type = is_while ? "WHILE" : params.kind == ir::ConditionalKind::kIf ? "IF" : "SWITCH";
  const std::vector<std::uint32_t>& bodies = places_.bodies_of_node[id];
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

void NodeWriter::add(std::uint32_t, const Node&, const ir::MemAllocParams& alloc, const std::string& where) {
  add_params("MEM_ALLOC");
  line("params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;");
  line("params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};");
  line(absl::StrCat("params.alloc.bytesize = ", number_of(alloc.bytes), ";"));
  add_with_params(where);
  line(absl::StrCat("memory[", alloc.address.allocation, "] = params.alloc.dptr;"));
}

void NodeWriter::add(std::uint32_t, const Node& node, const ir::MemFreeParams& free, const std::string& where) {
  if (!is_known_free(node)) return line("add_empty(" + where + ");");
  add_params("MEM_FREE");
  line(absl::StrCat("params.free.dptr = ", address_of(free.address), ";"));
  add_with_params(where);
}

void NodeWriter::add(std::uint32_t, const Node&, const ir::BatchMemOpParams& params, const std::string& where) {
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
    line(absl::StrCat(at, ".address = ", address_of(one.address), ";"));
    line(absl::StrCat(at, is_long ? ".value64 = " : ".value = ", one.value, is_long ? "ull;" : "u;"));
    line(absl::StrCat(at, ".flags = CU_STREAM_", is_write ? "WRITE" : "WAIT", "_VALUE_", condition, ";"));
  }
  add_params("BATCH_MEM_OP");
  line("params.memOp.ctx = context;");
  line(absl::StrCat("params.memOp.count = ", params.operations.size(), ";"));
  line("params.memOp.paramArray = operations;");
  add_with_params(where);
}

void NodeWriter::add(std::uint32_t, const Node&, const ir::SemaphoreParams&, const std::string& where) {
  line("add_empty(" + where + ");");
}

}  // namespace cgrt::inspect
