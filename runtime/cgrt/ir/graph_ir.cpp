#include "cgrt/ir/graph_ir.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cgrt::ir {
namespace {

// Indexed by the enumerators' values.
constexpr std::array kNodeKinds = {
    "kernel",       "memcpy",           "memset",         "host",      "child graph", "empty",        "event wait",
    "event record", "semaphore signal", "semaphore wait", "mem alloc", "mem free",    "batch mem op", "conditional"};
constexpr std::array kEdgeTypes = {"full", "programmatic"};
constexpr std::array kAccessProperties = {"normal", "streaming", "persisting"};
constexpr std::array kConditionalKinds = {"if", "while", "switch"};
constexpr std::array kClusterSchedulings = {"default", "spread", "load balancing"};
constexpr std::array kMemOpKinds = {"write", "wait >=", "wait ==", "wait &", "wait nor"};
constexpr std::array kMemoryKinds = {"unknown", "device", "pinned host", "managed", "pageable host", "array", "host"};

template <class Names, class Enum>
const char* name_of(const Names& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

template <class Enum, class Names>
std::optional<Enum> value_of(const Names& names, std::string_view text) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const Pointer* Argument::pointer() const {
  const bool is_one = parameter.size == 8 && pointers.size() == 1 && pointers[0].at == parameter.offset;
  return is_one ? &pointers[0].pointer : nullptr;
}

bool has_sizes(const KernelParams& kernel) {
  constexpr Dim3 kNone{0, 0, 0};
  return kernel.grid != kNone || kernel.block != kNone || kernel.shared_bytes != 0;
}

const Function& function_of(const GraphIr& graph, const KernelParams& kernel) {
  static const Function kUnknown{.name = "?"};
  return kernel.function < graph.functions.size() ? graph.functions[kernel.function] : kUnknown;
}

std::vector<Argument> arguments_of(const GraphIr& graph, const KernelParams& kernel) {
  std::vector<Argument> arguments;
  const std::span<const std::uint8_t> buffer(kernel.arguments);
  const std::span<const InnerPointer> pointers(kernel.pointers);
  const auto first_at = [&](std::uint64_t byte) {
    return std::lower_bound(pointers.begin(), pointers.end(), byte,
                            [](const InnerPointer& pointer, std::uint64_t value) { return pointer.at < value; });
  };
  for (const Parameter& parameter : function_of(graph, kernel).parameters) {
    const std::size_t begin = std::min<std::size_t>(parameter.offset, buffer.size());
    const std::size_t bytes = std::min<std::size_t>(parameter.size, buffer.size() - begin);
    const auto first = first_at(parameter.offset);
    const auto last = std::max(first, first_at(std::uint64_t{parameter.offset} + parameter.size));
    arguments.push_back({parameter, buffer.subspan(begin, bytes), {first, last}});
  }
  return arguments;
}

const char* to_string(NodeKind kind) { return name_of(kNodeKinds, kind); }
const char* to_string(EdgeType type) { return name_of(kEdgeTypes, type); }
const char* to_string(MemoryKind kind) { return name_of(kMemoryKinds, kind); }
const char* to_string(AccessProperty property) { return name_of(kAccessProperties, property); }
const char* to_string(ConditionalKind kind) { return name_of(kConditionalKinds, kind); }
const char* to_string(ClusterScheduling scheduling) { return name_of(kClusterSchedulings, scheduling); }
const char* to_string(MemOpKind kind) { return name_of(kMemOpKinds, kind); }

std::optional<NodeKind> parse_node_kind(std::string_view text) { return value_of<NodeKind>(kNodeKinds, text); }
std::optional<EdgeType> parse_edge_type(std::string_view text) { return value_of<EdgeType>(kEdgeTypes, text); }
std::optional<MemoryKind> parse_memory_kind(std::string_view text) { return value_of<MemoryKind>(kMemoryKinds, text); }
std::optional<AccessProperty> parse_access_property(std::string_view text) {
  return value_of<AccessProperty>(kAccessProperties, text);
}
std::optional<ConditionalKind> parse_conditional_kind(std::string_view text) {
  return value_of<ConditionalKind>(kConditionalKinds, text);
}
std::optional<ClusterScheduling> parse_cluster_scheduling(std::string_view text) {
  return value_of<ClusterScheduling>(kClusterSchedulings, text);
}
std::optional<MemOpKind> parse_mem_op_kind(std::string_view text) { return value_of<MemOpKind>(kMemOpKinds, text); }

}  // namespace cgrt::ir
