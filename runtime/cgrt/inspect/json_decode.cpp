// from_json: the tree of json_value.h, decoded with names, types and ranges.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/json.h"
#include "cgrt/inspect/json_cursor.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {

// The overloads of read() are not in an unnamed namespace: argument-dependent lookup from the
// templates of json_cursor.h would not find them there.

static bool is_not_known(const JsonCursor& cursor) {
  const auto* text = std::get_if<std::string>(&cursor.value().data);
  return text != nullptr && *text == kNotKnown;
}

static absl::Status read(const JsonCursor& cursor, ir::Dim3& out) {
  const absl::StatusOr<std::size_t> length = cursor.expect_array();
  if (!length.ok() || *length != 3) return cursor.mismatch("3 integers");
  CGRT_RETURN_IF_ERROR(read(cursor.element(0), out.x));
  CGRT_RETURN_IF_ERROR(read(cursor.element(1), out.y));
  return read(cursor.element(2), out.z);
}

static absl::Status read(const JsonCursor& cursor, ir::Pointer& out) {
  const absl::StatusOr<std::size_t> length = cursor.expect_array();
  if (!length.ok() || *length != 2) return cursor.mismatch("an allocation and an offset");
  CGRT_RETURN_IF_ERROR(read(cursor.element(0), out.allocation));
  return read(cursor.element(1), out.offset);
}

static absl::Status read(const JsonCursor& cursor, std::optional<ir::Pointer>& out) {
  return read(cursor, out.emplace());
}

static absl::Status read(const JsonCursor& cursor, ir::NodeKind& out) {
  return read_parsed(cursor, ir::parse_node_kind, "a kind of node", out);
}
static absl::Status read(const JsonCursor& cursor, ir::EdgeType& out) {
  return read_parsed(cursor, ir::parse_edge_type, "a type of edge", out);
}
static absl::Status read(const JsonCursor& cursor, ir::MemoryKind& out) {
  return read_parsed(cursor, ir::parse_memory_kind, "a kind of memory", out);
}

static absl::Status read(const JsonCursor& cursor, std::vector<std::uint8_t>& out) {
  std::string hex;
  CGRT_RETURN_IF_ERROR(read(cursor, hex));
  const bool is_hex = hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!is_hex || hex.size() % 2 != 0) return cursor.mismatch("an even number of hexadecimal digits");
  const std::string bytes = absl::HexStringToBytes(hex);
  out.assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

static absl::Status read(const JsonCursor& cursor, ir::InnerPointer& out);
static absl::Status read(const JsonCursor& cursor, ir::MemOp& out);
static absl::Status read(const JsonCursor& cursor, ir::SemaphoreValue& out);

static absl::Status read(const JsonCursor& cursor, ir::InnerPointer& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "at", out.at));
  return read_required(cursor, "pointer", out.pointer);
}

namespace {

// Gaps are bytes of a kernel's buffer in front of an argument that no other argument fills. An offset has few digits:
// without a limit a small file could ask for gigabytes. Compilers leave gaps for alignment alone, which is at most the
// size of a type in C++, and at most 128 bytes in the types of CUDA.
class GapBudget {
 public:
  // `bytes`: in front of `argument`, which has the size `size`.
  absl::Status take(const JsonCursor& argument, std::uint64_t bytes, std::uint32_t size) {
    if (bytes <= std::max(kAlwaysFree, size)) return absl::OkStatus();
    taken_ += bytes;
    if (taken_ <= kMaxBytes) return absl::OkStatus();
    return argument.error(absl::StrCat("leaves a gap of ", bytes, " bytes in front of it; gaps of more than ",
                                       kAlwaysFree, " bytes may have ", kMaxBytes,
                                       " together, and up to here they have ", taken_));
  }

 private:
  static constexpr std::uint32_t kAlwaysFree = 256;
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
  std::uint64_t taken_ = 0;
};

}  // namespace

// One argument, put into the kernel's buffer, and where it stands there.
static absl::Status read_argument(const JsonCursor& cursor, GapBudget& gaps, ir::KernelParams& kernel,
                                  ir::Parameter& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "offset", out.offset));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "size", out.size));
  const std::uint64_t end = std::uint64_t{out.offset} + out.size;
  if (end > ir::kMaxParameterBytes) {
    return cursor.error(
        absl::StrCat("ends at byte ", end, " of the parameter buffer, which has at most ", ir::kMaxParameterBytes));
  }
  std::optional<ir::Pointer> pointer;
  std::vector<std::uint8_t> bytes;
  std::vector<ir::InnerPointer> inner;
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "pointer", pointer));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "inner_pointers", inner));
  if (pointer.has_value()) {
    if (cursor.member("bytes")) return cursor.error("has both \"pointer\" and \"bytes\"");
    if (!inner.empty()) return cursor.error("has both \"pointer\" and \"inner_pointers\"");
    bytes.resize(sizeof(std::uint64_t));
    inner.push_back({0, *pointer});
  } else {
    CGRT_RETURN_IF_ERROR(read_required(cursor, "bytes", bytes));
  }
  if (bytes.size() != out.size) {
    return cursor.error(absl::StrCat("has the size ", out.size, " and ", counted(bytes.size(), "byte"), " of value"));
  }
  const std::size_t before = kernel.arguments.size();
  if (out.offset > before) CGRT_RETURN_IF_ERROR(gaps.take(cursor, out.offset - before, out.size));
  if (before < end) kernel.arguments.resize(end);
  std::copy(bytes.begin(), bytes.end(), kernel.arguments.begin() + out.offset);
  for (const auto& [at, address] : inner) {
    if (std::uint64_t{at} + 8 > out.size) {
      return cursor.error(absl::StrCat("has an address that begins at byte ", at, " of ", out.size));
    }
    kernel.pointers.push_back({out.offset + at, address});
  }
  return absl::OkStatus();
}

static absl::Status read(const JsonCursor& cursor, ir::AccessProperty& out) {
  return read_parsed(cursor, ir::parse_access_property, "an access property", out);
}

static absl::Status read(const JsonCursor& cursor, ir::AccessPolicyWindow& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "base", out.base));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "bytes", out.bytes));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "hit_ratio", out.hit_ratio));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "hit", out.hit));
  return read_required(cursor, "miss", out.miss);
}

static absl::Status read(const JsonCursor& cursor, ir::ClusterScheduling& out) {
  return read_parsed(cursor, ir::parse_cluster_scheduling, "a cluster scheduling", out);
}

static absl::Status read(const JsonCursor& cursor, ir::LaunchAttributes& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "cooperative", out.cooperative));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "cluster", out.cluster));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "preferred_cluster", out.preferred_cluster));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "cluster_scheduling", out.cluster_scheduling));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "priority", out.priority));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "remote_mem_sync_domain", out.is_remote_domain));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "shared_carveout_percent", out.shared_carveout_percent));
  return read_optional(cursor, "access_policy", out.access_policy);
}

static absl::Status read(const JsonCursor& node, ir::EventParams& out) {
  return read_optional(node, "event", out.event);  // version 1 files from before it was written lack it
}

static absl::Status read(const JsonCursor& cursor, ir::ConditionalKind& out) {
  return read_parsed(cursor, ir::parse_conditional_kind, "a kind of conditional node", out);
}

static absl::Status read(const JsonCursor& node, ir::ConditionalParams& out) {
  CGRT_RETURN_IF_ERROR(read_required(node, "conditional", out.kind));
  CGRT_RETURN_IF_ERROR(read_required(node, "handle", out.handle));
  const std::optional<JsonCursor> at_launch = node.member("at_launch");
  return at_launch.has_value() ? read(*at_launch, out.at_launch.emplace()) : absl::OkStatus();
}

static absl::Status read(const JsonCursor& node, ir::MemAllocParams& out) {
  CGRT_RETURN_IF_ERROR(read_required(node, "address", out.address));
  return read_required(node, "bytes", out.bytes);
}

static absl::Status read(const JsonCursor& node, ir::MemFreeParams& out) {
  return read_required(node, "address", out.address);
}

static absl::Status read(const JsonCursor& cursor, ir::MemOpKind& out) {
  return read_parsed(cursor, ir::parse_mem_op_kind, "a memory operation", out);
}

static absl::Status read(const JsonCursor& cursor, ir::MemOp& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "operation", out.kind));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "address", out.address));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "value", out.value));
  return read_required(cursor, "bytes", out.bytes);
}

static absl::Status read(const JsonCursor& node, ir::BatchMemOpParams& out) {
  return read_required(node, "operations", out.operations);
}

static absl::Status read(const JsonCursor& cursor, ir::SemaphoreValue& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "semaphore", out.semaphore));
  return read_required(cursor, "value", out.value);
}

static absl::Status read(const JsonCursor& node, ir::SemaphoreParams& out) {
  return read_required(node, "semaphores", out.semaphores);
}

// Of a kind that earlier writers did not decode.
template <class Params>
static absl::Status read_if_decoded(const JsonCursor& node, std::string_view key, ir::Node& out) {
  return node.member(key).has_value() ? read(node, out.params.emplace<Params>()) : absl::OkStatus();
}

static absl::Status read(const JsonCursor& node, ir::KernelParams& out) {
  CGRT_RETURN_IF_ERROR(read_required(node, "grid", out.grid));
  CGRT_RETURN_IF_ERROR(read_required(node, "block", out.block));
  CGRT_RETURN_IF_ERROR(read_required(node, "shared_bytes", out.shared_bytes));
  return read_optional(node, "attributes", out.attributes);
}

// What a kernel node runs, with its arguments: apart from the other keys, as the functions are numbered.
static absl::Status read_function(const JsonCursor& node, GapBudget& gaps, ir::FunctionTable& functions,
                                  ir::KernelParams& out) {
  ir::Function function;
  CGRT_RETURN_IF_ERROR(read_required(node, "function", function.name));
  const std::optional<JsonCursor> arguments = node.member("arguments");
  if (!arguments.has_value()) return node.missing("arguments");
  if (is_not_known(*arguments)) {
    function.has_parameters = false;
    out.function = functions.add(function);
    return absl::OkStatus();
  }
  CGRT_ASSIGN_OR_RETURN(const std::size_t length, arguments->expect_array());
  function.parameters.resize(length);
  for (std::size_t i = 0; i < length; ++i) {
    CGRT_RETURN_IF_ERROR(read_argument(arguments->element(i), gaps, out, function.parameters[i]));
  }
  out.function = functions.add(function);
  return absl::OkStatus();
}

static absl::Status read(const JsonCursor& node, ir::MemcpyParams& out) {
  CGRT_RETURN_IF_ERROR(read_optional(node, "destination", out.destination));
  CGRT_RETURN_IF_ERROR(read_optional(node, "source", out.source));
  CGRT_RETURN_IF_ERROR(read_required(node, "width_bytes", out.width_bytes));
  CGRT_RETURN_IF_ERROR(read_optional(node, "height", out.height));
  CGRT_RETURN_IF_ERROR(read_optional(node, "depth", out.depth));
  CGRT_RETURN_IF_ERROR(read_optional(node, "destination_pitch", out.destination_pitch));
  return read_optional(node, "source_pitch", out.source_pitch);
}

static absl::Status read(const JsonCursor& node, ir::MemsetParams& out) {
  CGRT_RETURN_IF_ERROR(read_required(node, "destination", out.destination));
  CGRT_RETURN_IF_ERROR(read_required(node, "value", out.value));
  CGRT_RETURN_IF_ERROR(read_required(node, "element_bytes", out.element_bytes));
  CGRT_RETURN_IF_ERROR(read_required(node, "width", out.width));
  CGRT_RETURN_IF_ERROR(read_optional(node, "height", out.height));
  return read_optional(node, "pitch", out.pitch);
}

// Ids are in the file for people and line-based tools; they are positions, so they must agree.
static absl::Status check_id(const JsonCursor& object, std::size_t position) {
  std::uint32_t id = 0;
  CGRT_RETURN_IF_ERROR(read_required(object, "id", id));
  return id == position ? absl::OkStatus() : object.member("id")->mismatch(absl::StrCat(position, ", its position"));
}

static absl::Status read(const JsonCursor& cursor, ir::Node& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(check_id(cursor, cursor.index()));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "kind", out.kind));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "device", out.device));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "body", out.body));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "scope", out.scope));
  if (const auto parameters = cursor.member("parameters"); parameters && is_not_known(*parameters)) {
    return absl::OkStatus();
  }
  switch (out.kind) {
    case ir::NodeKind::kKernel: return read(cursor, out.params.emplace<ir::KernelParams>());
    case ir::NodeKind::kMemcpy: return read(cursor, out.params.emplace<ir::MemcpyParams>());
    case ir::NodeKind::kMemset: return read(cursor, out.params.emplace<ir::MemsetParams>());
    case ir::NodeKind::kEventRecord:
    case ir::NodeKind::kEventWait: return read(cursor, out.params.emplace<ir::EventParams>());
    case ir::NodeKind::kConditional:  // not decoded where the driver does not tell, and before version 4
      return cursor.member("conditional") ? read(cursor, out.params.emplace<ir::ConditionalParams>())
                                          : absl::OkStatus();
    case ir::NodeKind::kMemAlloc: return read_if_decoded<ir::MemAllocParams>(cursor, "address", out);
    case ir::NodeKind::kMemFree: return read_if_decoded<ir::MemFreeParams>(cursor, "address", out);
    case ir::NodeKind::kSemaphoreSignal:
    case ir::NodeKind::kSemaphoreWait: return read_if_decoded<ir::SemaphoreParams>(cursor, "semaphores", out);
    case ir::NodeKind::kBatchMemOp: return read_if_decoded<ir::BatchMemOpParams>(cursor, "operations", out);
    default: return absl::OkStatus();
  }
}

static absl::Status read(const JsonCursor& cursor, ir::Edge& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "from", out.from));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "to", out.to));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "from_port", out.from_port));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "to_port", out.to_port));
  return read_optional(cursor, "type", out.type);
}

static absl::Status read(const JsonCursor& cursor, ir::Allocation& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(check_id(cursor, cursor.index()));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "kind", out.kind));
  CGRT_RETURN_IF_ERROR(read_optional(cursor, "device", out.device));
  return read_optional(cursor, "bytes", out.bytes);
}

static absl::Status read(const JsonCursor& cursor, ir::Body& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(check_id(cursor, cursor.index() + 1));
  return read_required(cursor, "owner", out.owner);
}

// A node of `out`, which has one for each of the graph's.
static absl::Status read_node_time(const JsonCursor& cursor, std::vector<ir::NodeTime>& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  std::uint32_t node = 0;
  CGRT_RETURN_IF_ERROR(read_required(cursor, "node", node));
  if (node >= out.size()) return cursor.member("node")->mismatch("the id of a node");
  CGRT_RETURN_IF_ERROR(read_required(cursor, "count", out[node].count));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "median_ns", out[node].median_ns));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "min_ns", out[node].min_ns));
  return read_required(cursor, "max_ns", out[node].max_ns);
}

static absl::Status read_timing(const JsonCursor& cursor, std::size_t nodes, ir::Timing& out) {
  CGRT_RETURN_IF_ERROR(cursor.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(cursor, "launches", out.launches));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "median_ns", out.median_ns));
  CGRT_RETURN_IF_ERROR(read_required(cursor, "busy_ns", out.busy_ns));
  const std::optional<JsonCursor> times = cursor.member("nodes");
  if (!times.has_value()) return cursor.missing("nodes");
  CGRT_ASSIGN_OR_RETURN(const std::size_t length, times->expect_array());
  if (length != 0) out.nodes.resize(nodes);
  for (std::size_t i = 0; i < length; ++i) CGRT_RETURN_IF_ERROR(read_node_time(times->element(i), out.nodes));
  return absl::OkStatus();
}

static absl::Status check_schema(const JsonCursor& root) {
  std::string schema;
  CGRT_RETURN_IF_ERROR(root.expect_object());
  CGRT_RETURN_IF_ERROR(read_required(root, "schema", schema));
  if (schema == kGraphSchema) return absl::OkStatus();
  return root.member("schema")->mismatch(absl::StrCat("\"", kGraphSchema, "\""));
}

static absl::Status check_header(const JsonCursor& root) {
  if (const absl::Status status = check_schema(root); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("not a cgrt graph: ", status.message()));
  }
  std::uint64_t version = 0;
  CGRT_RETURN_IF_ERROR(read_required(root, "version", version));
  if (version >= 1 && version <= kGraphVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("version ", version, "; this reader knows 1 to ", kGraphVersion));
}

absl::StatusOr<ir::GraphIr> from_json(std::string_view text) {
  CGRT_ASSIGN_OR_RETURN(const JsonValue tree, parse_json(text));
  try {
    const JsonCursor root(tree);
    CGRT_RETURN_IF_ERROR(check_header(root));
    ir::GraphIr graph;
    CGRT_RETURN_IF_ERROR(read_required(root, "nodes", graph.nodes));
    ir::FunctionTable functions(graph.functions);
    GapBudget gaps;
    const std::optional<JsonCursor> nodes = root.member("nodes");
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[i].params);
      if (kernel == nullptr) continue;
      CGRT_RETURN_IF_ERROR(read_function(nodes->element(i), gaps, functions, *kernel));
    }
    CGRT_RETURN_IF_ERROR(read_required(root, "edges", graph.edges));
    CGRT_RETURN_IF_ERROR(read_required(root, "allocations", graph.allocations));
    CGRT_RETURN_IF_ERROR(read_optional(root, "bodies", graph.bodies));
    if (const std::optional<JsonCursor> timing = root.member("timing"); timing.has_value()) {
      CGRT_RETURN_IF_ERROR(read_timing(*timing, graph.nodes.size(), graph.timing));
    }
    CGRT_RETURN_IF_ERROR(ir::validate(graph));
    return graph;
  } catch (const std::exception&) {  // memory: the tree itself did fit
    return absl::ResourceExhaustedError("not enough memory for this graph");
  }
}

}  // namespace cgrt::inspect
