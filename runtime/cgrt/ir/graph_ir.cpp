#include "cgrt/ir/graph_ir.h"

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
constexpr std::array kMemoryKinds = {"unknown", "device", "pinned host", "managed", "pageable host", "array"};

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
