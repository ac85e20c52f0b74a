// GraphIr: a CUDA graph as plain data. Everything that looks at graphs (text, JSON, diff, golden
// tests) reads this value, so it runs on machines with no driver.
//
//   ir::GraphIr graph;
//   graph.nodes.push_back({.kind = ir::NodeKind::kEmpty});
//
// Ids are dense and are positions: node 3 is `nodes[3]`, in the order in which the nodes were
// created. Device and host addresses are written as (allocation, offset), where allocations are
// numbered in the order in which the nodes mention them: the same program gives the same value on
// every run.
#pragma once

#include "cgrt/base/language.h"  // first

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cgrt::ir {

// Same values as CUgraphNodeType.
enum class NodeKind : std::uint8_t {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kHost = 3,
  kChildGraph = 4,
  kEmpty = 5,
  kEventWait = 6,
  kEventRecord = 7,
  kSemaphoreSignal = 8,
  kSemaphoreWait = 9,
  kMemAlloc = 10,
  kMemFree = 11,
  kBatchMemOp = 12,
  kConditional = 13,
};

// Same values as CUgraphDependencyType.
enum class EdgeType : std::uint8_t { kFull = 0, kProgrammatic = 1 };

// kHost: of the host, whether pinned is not known.
enum class MemoryKind : std::uint8_t { kUnknown, kDevice, kPinnedHost, kManaged, kPageableHost, kArray, kHost };

// Same values as CUgraphConditionalNodeType.
enum class ConditionalKind : std::uint8_t { kIf = 0, kWhile = 1, kSwitch = 2 };

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

// `bytes` is 0 when the size is unknown (pageable host memory, and all that a dump of the driver names).
struct Allocation {
  MemoryKind kind = MemoryKind::kUnknown;
  std::int32_t device = -1;  // ordinal; -1 for host memory
  std::uint64_t bytes = 0;
  bool operator==(const Allocation&) const = default;
};

struct Pointer {
  std::uint32_t allocation = 0;  // index into GraphIr::allocations
  std::uint64_t offset = 0;      // bytes
  bool operator==(const Pointer&) const = default;
};

// Where the value of one of a kernel's parameters stands in the parameter buffer, in bytes.
struct Parameter {
  std::uint32_t offset = 0, size = 0;
  auto operator<=>(const Parameter&) const = default;
};

// What kernel nodes run. The name is demangled, enumerators as numbers: "scale", "ns::norm<(ns::Op)3, float>".
struct Function {
  std::string name = {};
  std::vector<Parameter> parameters = {};  // ascending, none inside of another
  bool has_parameters = true;              // false: which is not known, and there are none here
  auto operator<=>(const Function&) const = default;
};

// CUDA's limit is below: a file that says more is wrong.
inline constexpr std::uint32_t kMaxParameterBytes = 1 << 16;

// An address in a parameter buffer.
struct InnerPointer {
  std::uint32_t at = 0;  // byte of the buffer at which its 8 bytes begin
  Pointer pointer;
  bool operator==(const InnerPointer&) const = default;
};

enum class AccessProperty : std::uint8_t { kNormal, kStreaming, kPersisting };

// Bytes that the second-level cache treats apart; none while `bytes` is 0.
struct AccessPolicyWindow {
  Pointer base;
  std::uint64_t bytes = 0;
  float hit_ratio = 0;
  AccessProperty hit = AccessProperty::kNormal, miss = AccessProperty::kNormal;
  bool operator==(const AccessPolicyWindow&) const = default;
};

enum class ClusterScheduling : std::uint8_t { kDefault, kSpread, kLoadBalancing };

struct LaunchAttributes {
  bool cooperative = false;
  Dim3 cluster, preferred_cluster;  // (1, 1, 1): none
  ClusterScheduling cluster_scheduling = ClusterScheduling::kDefault;
  std::int32_t priority = 0;
  bool is_remote_domain = false;              // memory synchronization domain
  std::uint32_t shared_carveout_percent = 0;  // 0: CUDA's choice
  AccessPolicyWindow access_policy;
  bool operator==(const LaunchAttributes&) const = default;
};

// The arguments are the parameter buffer, up to the end of the last parameter: `function` tells where each stands. It
// is 0 where an address stands.
struct KernelParams {
  std::uint32_t function = 0;  // index into GraphIr::functions
  Dim3 grid = {}, block = {};
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
  std::vector<std::uint8_t> arguments = {};
  std::vector<InnerPointer> pointers = {};  // ascending by `at`
  LaunchAttributes attributes = {};
  bool operator==(const KernelParams&) const = default;
};

// False: grid, block and shared memory are not known, and all 0.
bool has_sizes(const KernelParams& kernel);

// A copy of `height` rows of `width_bytes`, `depth` times. Pitches are in bytes, 0 for one row.
struct MemcpyParams {
  std::optional<Pointer> destination = {}, source = {};  // nullopt: an array, not decoded
  std::uint64_t width_bytes = 0, height = 1, depth = 1;
  std::uint64_t destination_pitch = 0, source_pitch = 0;
  bool operator==(const MemcpyParams&) const = default;
};

// `width` elements of `element_bytes` each, in `height` rows.
struct MemsetParams {
  Pointer destination = {};
  std::uint32_t value = 0, element_bytes = 1;
  std::uint64_t width = 0, height = 1, pitch = 0;
  bool operator==(const MemsetParams&) const = default;
};

// Event record and event wait. Events are numbered in the order in which the nodes mention them.
struct EventParams {
  std::uint32_t event = 0;
  bool operator==(const EventParams&) const = default;
};

// Conditional handles are numbered in the order in which the nodes mention them. `if` has one or two bodies, `while`
// one, `switch` one or more.
struct ConditionalParams {
  ConditionalKind kind = ConditionalKind::kIf;
  std::uint32_t handle = 0;
  std::optional<std::uint32_t> at_launch = {};  // the handle's value when a launch begins; nullopt: as it was
  bool operator==(const ConditionalParams&) const = default;
};

// Memory of the graph's own, at the same address in every launch, and what frees such memory, of this or another graph.
struct MemAllocParams {
  Pointer address = {};
  std::uint64_t bytes = 0;
  bool operator==(const MemAllocParams&) const = default;
};
struct MemFreeParams {
  Pointer address = {};
  bool operator==(const MemFreeParams&) const = default;
};

enum class MemOpKind : std::uint8_t { kWrite, kWaitGreaterOrEqual, kWaitEqual, kWaitAnd, kWaitNor };

// A write of `value`, of `bytes` bytes, or a wait for it.
struct MemOp {
  MemOpKind kind = MemOpKind::kWrite;
  Pointer address = {};
  std::uint64_t value = 0;
  std::uint32_t bytes = 4;
  bool operator==(const MemOp&) const = default;
};
struct BatchMemOpParams {
  std::vector<MemOp> operations = {};  // in their order
  bool operator==(const BatchMemOpParams&) const = default;
};

// Signal of external semaphores and wait for them. These are numbered in the order in which the nodes mention them.
struct SemaphoreValue {
  std::uint32_t semaphore = 0;
  std::uint64_t value = 0;  // of a binary one: no matter
  bool operator==(const SemaphoreValue&) const = default;
};
struct SemaphoreParams {
  std::vector<SemaphoreValue> semaphores = {};
  bool operator==(const SemaphoreParams&) const = default;
};

// Kinds without parameters, and nodes that are listed but not decoded.
struct NoParams {
  bool operator==(const NoParams&) const = default;
};

struct Node {
  NodeKind kind = NodeKind::kEmpty;
  std::int32_t device = -1;  // ordinal of the node's context; -1 when the kind has none
  std::string scope = {};    // names given while recording, outermost first: "layer0/attention"
  std::variant<NoParams, KernelParams, MemcpyParams, MemsetParams, EventParams, ConditionalParams, MemAllocParams,
               MemFreeParams, BatchMemOpParams, SemaphoreParams>
      params = {};
  std::uint32_t body = 0;  // 0: the graph itself; n: bodies[n - 1]
  bool operator==(const Node&) const = default;
};

// A graph inside a node of another: the child of a child graph node, or a body of a conditional one. Those of one node
// are in their order.
struct Body {
  std::uint32_t owner = 0;  // id of that node
  bool operator==(const Body&) const = default;
};

// `to` waits for `from`, a node of the same body. Ports are 0 except on edges out of kernels: 1 for
// programmatic ones, 2 for those that wait for the launch's completion only.
struct Edge {
  std::uint32_t from = 0, to = 0;
  std::uint8_t from_port = 0, to_port = 0;
  EdgeType type = EdgeType::kFull;
  auto operator<=>(const Edge&) const = default;
};

// How long a node took on its device, in the launches that were measured. `count` is 0 where it was not: it did not
// run, or is of a kind that CUDA does not time.
struct NodeTime {
  std::uint64_t count = 0, median_ns = 0, min_ns = 0, max_ns = 0;
  bool operator==(const NodeTime&) const = default;
};

// What a profiler saw of launches of the graph: of no matter to what it does. All empty when there was none.
struct Timing {
  std::uint64_t launches = 0;
  std::uint64_t median_ns = 0;       // from the start of a launch's first node to the end of its last
  std::uint64_t busy_ns = 0;         // of that, while at least one node ran; the median, too
  std::vector<NodeTime> nodes = {};  // empty, or one for each node
  bool operator==(const Timing&) const = default;
};

struct GraphIr {
  std::vector<Node> nodes;  // ascending by body: those of the graph itself come first
  std::vector<Edge> edges;  // ascending
  std::vector<Allocation> allocations;
  std::vector<Function> functions = {};  // numbered in the order in which nodes mention them; no two are equal
  std::vector<Body> bodies = {};         // each after the one that its owner is in
  Timing timing = {};
  bool operator==(const GraphIr&) const = default;
};

// An argument of a kernel, as it stands in the kernel's buffer: valid while the kernel is.
struct Argument {
  Parameter parameter;
  std::span<const std::uint8_t> bytes;
  std::span<const InnerPointer> pointers;  // `at` counts from the start of the buffer

  // When the argument is an address and nothing else; null otherwise.
  const Pointer* pointer() const;
};

// Neither needs a valid graph: a function that is not there has the name "?" and no parameters, and what lies outside
// of the buffer is left out.
const Function& function_of(const GraphIr& graph, const KernelParams& kernel);
std::vector<Argument> arguments_of(const GraphIr& graph, const KernelParams& kernel);

const char* to_string(NodeKind kind);                 // "kernel", "memcpy", "child graph", ...
const char* to_string(EdgeType type);                 // "full", "programmatic"
const char* to_string(MemoryKind kind);               // "device", "pinned host", ...
const char* to_string(AccessProperty property);       // "normal", "streaming", "persisting"
const char* to_string(ConditionalKind kind);          // "if", "while", "switch"
const char* to_string(ClusterScheduling scheduling);  // "default", "spread", "load balancing"
const char* to_string(MemOpKind kind);                // "write", "wait >=", "wait ==", "wait &", "wait nor"

// The inverse of to_string; nullopt for any other text.
std::optional<NodeKind> parse_node_kind(std::string_view text);
std::optional<EdgeType> parse_edge_type(std::string_view text);
std::optional<MemoryKind> parse_memory_kind(std::string_view text);
std::optional<AccessProperty> parse_access_property(std::string_view text);
std::optional<ConditionalKind> parse_conditional_kind(std::string_view text);
std::optional<ClusterScheduling> parse_cluster_scheduling(std::string_view text);
std::optional<MemOpKind> parse_mem_op_kind(std::string_view text);

}  // namespace cgrt::ir
