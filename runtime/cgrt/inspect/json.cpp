#include "cgrt/inspect/json.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/inspect/dot_reader.h"
#include "cgrt/inspect/driver_dot.h"
#include "cgrt/inspect/json_cursor.h"
#include "cgrt/inspect/json_members.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

void write(JsonWriter& json, const ir::Dim3& dim) {
  json.begin_array();
  json.value(dim.x);
  json.value(dim.y);
  json.value(dim.z);
  json.end_array();
}

void write(JsonWriter& json, const ir::Pointer& pointer) {
  json.begin_array();
  json.value(pointer.allocation);
  json.value(pointer.offset);
  json.end_array();
}

void write(JsonWriter& json, const ir::Argument& argument) {
  json.begin_object();
  json.member("offset", argument.parameter.offset);
  json.member("size", argument.parameter.size);
  if (const ir::Pointer* pointer = argument.pointer(); pointer != nullptr) {
    json.key("pointer");
    write(json, *pointer);
  } else {
    json.member("bytes", absl::BytesToHexString(std::string(argument.bytes.begin(), argument.bytes.end())));
    if (!argument.pointers.empty()) {
      json.key("inner_pointers");
      json.begin_array();
      for (const auto& [at, inner] : argument.pointers) {
        json.begin_object();
        json.member("at", at - argument.parameter.offset);
        json.key("pointer");
        write(json, inner);
        json.end_object();
      }
      json.end_array();
    }
  }
  json.end_object();
}

void write_params(JsonWriter&, const ir::GraphIr&, const ir::NoParams&) {}

void write(JsonWriter& json, const ir::AccessPolicyWindow& window) {
  json.begin_object();
  json.key("base");
  write(json, window.base);
  json.member("bytes", window.bytes);
  json.member("hit_ratio", static_cast<double>(window.hit_ratio));
  json.member("hit", ir::to_string(window.hit));
  json.member("miss", ir::to_string(window.miss));
  json.end_object();
}

void write(JsonWriter& json, const ir::LaunchAttributes& attributes) {
  const ir::LaunchAttributes standard;
  json.begin_object();
  if (attributes.cooperative) json.member("cooperative", true);
  for (const auto& [key, member] : {std::pair("cluster", &ir::LaunchAttributes::cluster),
                                    std::pair("preferred_cluster", &ir::LaunchAttributes::preferred_cluster)}) {
    if (attributes.*member == standard.*member) continue;
    json.key(key);
    write(json, attributes.*member);
  }
  if (attributes.cluster_scheduling != standard.cluster_scheduling) {
    json.member("cluster_scheduling", ir::to_string(attributes.cluster_scheduling));
  }
  member_unless(json, "priority", attributes.priority, standard.priority);
  if (attributes.is_remote_domain) json.member("remote_mem_sync_domain", true);
  member_unless(json, "shared_carveout_percent", attributes.shared_carveout_percent, 0u);
  if (attributes.access_policy.bytes != 0) {
    json.key("access_policy");
    write(json, attributes.access_policy);
  }
  json.end_object();
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::EventParams& params) {
  json.member("event", params.event);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::ConditionalParams& params) {
  json.member("conditional", ir::to_string(params.kind));
  json.member("handle", params.handle);
  if (params.at_launch.has_value()) json.member("at_launch", *params.at_launch);
}

void write_params(JsonWriter& json, const ir::GraphIr& graph, const ir::KernelParams& params) {
  json.member("function", ir::function_of(graph, params).name);
  json.key("grid");
  write(json, params.grid);
  json.key("block");
  write(json, params.block);
  json.member("shared_bytes", params.shared_bytes);
  if (!function_of(graph, params).has_parameters) {
    json.member("arguments", kNotKnown);
  } else {
    json.key("arguments");
    json.begin_array();
    for (const ir::Argument& argument : ir::arguments_of(graph, params)) write(json, argument);
    json.end_array();
  }
  if (params.attributes == ir::LaunchAttributes{}) return;
  json.key("attributes");
  write(json, params.attributes);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::MemcpyParams& params) {
  const ir::MemcpyParams standard;
  if (params.destination.has_value()) {
    json.key("destination");
    write(json, *params.destination);
  }
  if (params.source.has_value()) {
    json.key("source");
    write(json, *params.source);
  }
  json.member("width_bytes", params.width_bytes);
  member_unless(json, "height", params.height, standard.height);
  member_unless(json, "depth", params.depth, standard.depth);
  member_unless(json, "destination_pitch", params.destination_pitch, standard.destination_pitch);
  member_unless(json, "source_pitch", params.source_pitch, standard.source_pitch);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::MemsetParams& params) {
  const ir::MemsetParams standard;
  json.key("destination");
  write(json, params.destination);
  json.member("value", params.value);
  json.member("element_bytes", params.element_bytes);
  json.member("width", params.width);
  member_unless(json, "height", params.height, standard.height);
  member_unless(json, "pitch", params.pitch, standard.pitch);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::MemAllocParams& params) {
  json.key("address");
  write(json, params.address);
  json.member("bytes", params.bytes);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::MemFreeParams& params) {
  json.key("address");
  write(json, params.address);
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::BatchMemOpParams& params) {
  json.key("operations");
  json.begin_array();
  for (const ir::MemOp& op : params.operations) {
    json.begin_object();
    json.member("operation", ir::to_string(op.kind));
    json.key("address");
    write(json, op.address);
    json.member("value", op.value);
    json.member("bytes", op.bytes);
    json.end_object();
  }
  json.end_array();
}

void write_params(JsonWriter& json, const ir::GraphIr&, const ir::SemaphoreParams& params) {
  json.key("semaphores");
  json.begin_array();
  for (const ir::SemaphoreValue& one : params.semaphores) {
    json.begin_object();
    json.member("semaphore", one.semaphore);
    json.member("value", one.value);
    json.end_object();
  }
  json.end_array();
}

// Of a kind that versions before 5 always decode.
bool is_not_known(const ir::Node& node) {
  const bool is_always_decoded = node.kind == ir::NodeKind::kMemcpy || node.kind == ir::NodeKind::kMemset ||
                                 node.kind == ir::NodeKind::kEventRecord || node.kind == ir::NodeKind::kEventWait;
  return is_always_decoded && std::holds_alternative<ir::NoParams>(node.params);
}

void write(JsonWriter& json, const ir::GraphIr& graph, const ir::Node& node, std::size_t id) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", id);
  json.member("kind", ir::to_string(node.kind));
  member_unless(json, "device", node.device, -1);
  member_unless(json, "body", node.body, 0u);
  member_unless(json, "scope", node.scope, std::string());
  if (is_not_known(node)) json.member("parameters", kNotKnown);
  std::visit([&](const auto& params) { write_params(json, graph, params); }, node.params);
  json.end_object();
}

void write(JsonWriter& json, const ir::GraphIr&, const ir::Edge& edge, std::size_t) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("from", edge.from);
  json.member("to", edge.to);
  member_unless<std::uint8_t>(json, "from_port", edge.from_port, 0);
  member_unless<std::uint8_t>(json, "to_port", edge.to_port, 0);
  if (edge.type != ir::EdgeType::kFull) json.member("type", ir::to_string(edge.type));
  json.end_object();
}

void write(JsonWriter& json, const ir::GraphIr&, const ir::Allocation& allocation, std::size_t id) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", id);
  json.member("kind", ir::to_string(allocation.kind));
  member_unless(json, "device", allocation.device, -1);
  member_unless<std::uint64_t>(json, "bytes", allocation.bytes, 0);
  json.end_object();
}

void write(JsonWriter& json, const ir::GraphIr&, const ir::Body& body, std::size_t position) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("id", position + 1);
  json.member("owner", body.owner);
  json.end_object();
}

template <class Item>
void write_list(JsonWriter& json, std::string_view key, const ir::GraphIr& graph, const std::vector<Item>& items) {
  json.key(key);
  json.begin_array();
  for (std::size_t i = 0; i < items.size(); ++i) write(json, graph, items[i], i);
  json.end_array();
}

void write(JsonWriter& json, const ir::Timing& timing) {
  json.begin_object();
  json.member("launches", timing.launches);
  json.member("median_ns", timing.median_ns);
  json.member("busy_ns", timing.busy_ns);
  json.key("nodes");
  json.begin_array();
  for (std::size_t i = 0; i < timing.nodes.size(); ++i) {
    const ir::NodeTime& time = timing.nodes[i];
    if (time.count == 0) continue;
    json.begin_object(JsonLayout::kOneLine);
    json.member("node", i);
    json.member("count", time.count);
    json.member("median_ns", time.median_ns);
    json.member("min_ns", time.min_ns);
    json.member("max_ns", time.max_ns);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

bool has_inner_pointers(const ir::GraphIr& graph, const ir::Node& node) {
  const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
  if (kernel == nullptr || kernel->pointers.empty()) return false;
  const std::vector<ir::Argument> arguments = ir::arguments_of(graph, *kernel);
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const ir::Argument& one) { return !one.pointers.empty() && one.pointer() == nullptr; });
}

bool is_decoded_conditional(const ir::Node& node) { return std::holds_alternative<ir::ConditionalParams>(node.params); }

int lowest_version(const ir::GraphIr& graph) {
  const auto is_host = [](const ir::Allocation& one) { return one.kind == ir::MemoryKind::kHost; };
  const auto has_none = [](const ir::Function& one) { return !one.has_parameters; };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_not_known) ||
      std::any_of(graph.functions.begin(), graph.functions.end(), has_none) ||
      std::any_of(graph.allocations.begin(), graph.allocations.end(), is_host)) {
    return 5;
  }
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_decoded_conditional)) return 4;
  const auto has_inner = [&](const ir::Node& node) { return has_inner_pointers(graph, node); };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), has_inner)) return 3;
  return graph.bodies.empty() ? 1 : 2;
}

}  // namespace

std::string to_json(const ir::GraphIr& graph) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kGraphSchema);
  json.member("version", lowest_version(graph));
  write_list(json, "nodes", graph, graph.nodes);
  write_list(json, "edges", graph, graph.edges);
  write_list(json, "allocations", graph, graph.allocations);
  if (!graph.bodies.empty()) write_list(json, "bodies", graph, graph.bodies);
  if (graph.timing != ir::Timing{}) {
    json.key("timing");
    write(json, graph.timing);
  }
  json.end_object();
  return std::move(json).finish();
}

absl::Status write_file(const std::string& path, const ir::GraphIr& graph) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a graph that could be read again: ", status.message()));
  }
  return write_text_file(path, to_json(graph));
}

absl::StatusOr<ir::GraphIr> from_text(std::string_view text) {
  return is_dot(text) ? from_driver_dot(text) : from_json(text);
}

absl::StatusOr<ir::GraphIr> read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return file_error(errno, path, "cannot be opened");
  return read_stream(file.get(), path);
}

absl::StatusOr<ir::GraphIr> read_stream(std::FILE* stream, const std::string& name) {
  CGRT_ASSIGN_OR_RETURN(const std::string text, read_text(stream, name));
  absl::StatusOr<ir::GraphIr> graph = from_text(text);
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(), absl::StrCat(name, ": ", graph.status().message()));
}

}  // namespace cgrt::inspect
