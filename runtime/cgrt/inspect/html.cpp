#include "cgrt/inspect/html.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cgrt/base/json_writer.h"
#include "cgrt/inspect/short_name.h"
#include "cgrt/inspect/text_table.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"
// The files in page/, as arrays of strings.
#include "page/kCss.inc"
#include "page/kHtml.inc"
#include "page/kJs.inc"

namespace cgrt::inspect {
namespace {

// The graph as page/graph.js reads it: what it shows is text already, since numbers of JavaScript have 53 bits.
//
//   counts       {nodes, inside, edges, depth, width, roots, leaves}; `inside`: the nodes of bodies
//   scopes       [name], each once; a node has its position
//   functions    [{name, short}]
//   allocations  [{label, kind, device, bytes}]; `device` and `bytes` are left out when they are not known
//   bodies       [{owner, label}]; of body 1, 2, ...
//   nodes        [{kind, title, note, scope, function, body, rows, arguments, uses}]; what is empty or 0 is left out
//                  rows       [[name, value] or [name, value, allocation]]
//                  arguments  [[offset, size, value, allocation...]]
//                  uses       [[allocation, access]]: read, write, allocate, free, touch (a kernel: not known which)
//   edges        [[from, to] or [from, to, is programmatic, from port, to port]]
//   order        [id], the nodes of a body behind its owner

struct Row {
  const char* name;
  std::string value;
  std::optional<std::uint32_t> allocation = {};
};

enum class Access { kRead, kWrite, kAllocate, kFree, kTouch };

const char* to_string(Access access) {
  switch (access) {
    case Access::kRead: return "read";
    case Access::kWrite: return "write";
    case Access::kAllocate: return "allocate";
    case Access::kFree: return "free";
    case Access::kTouch: break;
  }
  return "touch";
}

// What the page says of a node, beyond its kind and its place.
struct Details {
  std::string title, note;  // the two lines of its box; no title: its kind
  std::vector<Row> rows = {};
  std::vector<ir::Argument> arguments = {};
  std::vector<std::pair<std::uint32_t, Access>> uses = {};
};

Row row_of(const ir::GraphIr& graph, const char* name, const ir::Pointer& pointer) {
  return {name, describe(graph, pointer), pointer.allocation};
}

Details details_of(const ir::GraphIr&, const ir::NoParams&) { return {}; }

Details details_of(const ir::GraphIr& graph, const ir::KernelParams& params) {
  const ir::LaunchAttributes standard;
  const ir::LaunchAttributes& attributes = params.attributes;
  Details out;
  out.title = ir::printable(short_name(function_of(graph, params).name));
  if (ir::has_sizes(params)) {
    out.note = absl::StrCat(describe(params.grid), " x ", describe(params.block));
    out.rows = {{"grid", describe(params.grid)},
                {"block", describe(params.block)},
                {"dynamic shared memory", count_of(params.shared_bytes, "byte", "bytes")}};
  }
  if (attributes.cooperative) out.rows.push_back({"cooperative", "yes"});
  if (attributes.cluster != standard.cluster) out.rows.push_back({"cluster", describe(attributes.cluster)});
  if (attributes.preferred_cluster != standard.preferred_cluster) {
    out.rows.push_back({"preferred cluster", describe(attributes.preferred_cluster)});
  }
  if (attributes.cluster_scheduling != standard.cluster_scheduling) {
    out.rows.push_back({"cluster scheduling", to_string(attributes.cluster_scheduling)});
  }
  if (attributes.priority != 0) out.rows.push_back({"priority", absl::StrCat(attributes.priority)});
  if (attributes.is_remote_domain) out.rows.push_back({"memory synchronization domain", "remote"});
  if (attributes.shared_carveout_percent != 0) {
    out.rows.push_back({"shared memory carveout", absl::StrCat(attributes.shared_carveout_percent, "%")});
  }
  if (const auto& window = attributes.access_policy; window.bytes != 0) {
    out.rows.push_back({"access policy window", describe(graph, window), window.base.allocation});
  }
  if (!function_of(graph, params).has_parameters) out.rows.push_back({"arguments", "not known"});
  out.arguments = arguments_of(graph, params);
  for (const ir::InnerPointer& inner : params.pointers) out.uses.emplace_back(inner.pointer.allocation, Access::kTouch);
  return out;
}

Details details_of(const ir::GraphIr& graph, const ir::MemcpyParams& params) {
  Details out;
  const std::string rows = params.height != 1 || params.depth != 1 ? absl::StrCat(params.height, " x ") : "";
  const std::string slices = params.depth != 1 ? absl::StrCat(params.depth, " x ") : "";
  out.note = absl::StrCat(slices, rows, count_of(params.width_bytes, "byte", "bytes"));
  const auto end = [&](const char* name, const std::optional<ir::Pointer>& pointer, Access access) {
    out.rows.push_back(pointer.has_value() ? row_of(graph, name, *pointer) : Row{name, "array"});
    if (pointer.has_value()) out.uses.emplace_back(pointer->allocation, access);
  };
  end("destination", params.destination, Access::kWrite);
  end("source", params.source, Access::kRead);
  out.rows.push_back({"size", out.note});
  if (params.destination_pitch != 0 || params.source_pitch != 0) {
    out.rows.push_back({"destination pitch", absl::StrCat(params.destination_pitch)});
    out.rows.push_back({"source pitch", absl::StrCat(params.source_pitch)});
  }
  return out;
}

Details details_of(const ir::GraphIr& graph, const ir::MemsetParams& params) {
  Details out;
  const std::string rows = params.height != 1 ? absl::StrCat(params.height, " x ") : "";
  out.note = absl::StrCat(rows, params.width, " x ", count_of(params.element_bytes, "byte", "bytes"));
  out.rows = {row_of(graph, "destination", params.destination),
              {"value", absl::StrCat("0x", absl::Hex(params.value))},
              {"size", out.note}};
  if (params.pitch != 0) out.rows.push_back({"pitch", absl::StrCat(params.pitch)});
  out.uses.emplace_back(params.destination.allocation, Access::kWrite);
  return out;
}

Details details_of(const ir::GraphIr&, const ir::EventParams& params) {
  Details out;
  out.note = absl::StrCat("event#", params.event);
  out.rows = {{"event", out.note}};
  return out;
}

Details details_of(const ir::GraphIr&, const ir::ConditionalParams& params) {
  Details out;
  out.title = ir::to_string(params.kind);
  out.note = absl::StrCat("handle#", params.handle);
  out.rows = {{"conditional", out.title},
              {"handle", out.note},
              {"at launch", params.at_launch.has_value() ? absl::StrCat(*params.at_launch) : "as it was"}};
  return out;
}

Details details_of(const ir::GraphIr& graph, const ir::MemAllocParams& params) {
  Details out;
  out.note = count_of(params.bytes, "byte", "bytes");
  out.rows = {row_of(graph, "address", params.address), {"size", out.note}};
  out.uses.emplace_back(params.address.allocation, Access::kAllocate);
  return out;
}

Details details_of(const ir::GraphIr& graph, const ir::MemFreeParams& params) {
  Details out;
  out.note = describe(graph, params.address);
  out.rows = {row_of(graph, "address", params.address)};
  out.uses.emplace_back(params.address.allocation, Access::kFree);
  return out;
}

Details details_of(const ir::GraphIr& graph, const ir::BatchMemOpParams& params) {
  Details out;
  out.note = count_of(params.operations.size(), "operation", "operations");
  for (const ir::MemOp& operation : params.operations) {
    const bool is_write = operation.kind == ir::MemOpKind::kWrite;
    out.rows.push_back({is_write ? "write" : "wait", describe(graph, operation), operation.address.allocation});
    out.uses.emplace_back(operation.address.allocation, is_write ? Access::kWrite : Access::kRead);
  }
  return out;
}

Details details_of(const ir::GraphIr&, const ir::SemaphoreParams& params) {
  Details out;
  out.note = count_of(params.semaphores.size(), "semaphore", "semaphores");
  for (const ir::SemaphoreValue& value : params.semaphores) out.rows.push_back({"value", describe(value)});
  return out;
}

// Numbers of equal texts are equal; `texts` has each once.
class Texts {
 public:
  std::size_t add(const std::string& text) {
    const auto [entry, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(&entry->first);
    return entry->second;
  }
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<const std::string*> texts_;
};

// Writes a list with a line for each element.
template <class List, class Write>
void list(JsonWriter& json, const char* name, const List& elements, const Write& write) {
  json.key(name);
  json.begin_array();
  for (const auto& element : elements) write(element);
  json.end_array();
}

void write_counts(JsonWriter& json, const ir::GraphIr& graph) {
  const ir::Shape shape = shape_of(graph);
  const auto inside =
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) { return node.body != 0; });
  json.key("counts");
  json.begin_object(JsonLayout::kOneLine);
  json.member("nodes", graph.nodes.size());
  json.member("inside", inside);
  json.member("edges", graph.edges.size());
  json.member("depth", shape.depth);
  json.member("width", shape.width);
  json.member("roots", shape.roots);
  json.member("leaves", shape.leaves);
  json.end_object();
}

void write_allocation(JsonWriter& json, const ir::GraphIr& graph, std::uint32_t id) {
  const ir::Allocation& allocation = graph.allocations[id];
  json.begin_object(JsonLayout::kOneLine);
  json.member("label", describe(graph, ir::Pointer{.allocation = id, .offset = 0}));
  json.member("kind", ir::to_string(allocation.kind));
  if (allocation.device != -1) json.member("device", allocation.device);
  if (allocation.bytes != 0) json.member("bytes", absl::StrCat(allocation.bytes));
  json.end_object();
}

void write_argument(JsonWriter& json, const ir::GraphIr& graph, const ir::Argument& argument) {
  json.begin_array();
  json.value(argument.parameter.offset);
  json.value(argument.parameter.size);
  json.value(describe(graph, argument));
  for (const ir::InnerPointer& inner : argument.pointers) json.value(inner.pointer.allocation);
  json.end_array();
}

void write_details(JsonWriter& json, const ir::GraphIr& graph, Details details) {
  if (!details.title.empty()) json.member("title", details.title);
  if (!details.note.empty()) json.member("note", details.note);
  if (!details.rows.empty()) {
    list(json, "rows", details.rows, [&](const Row& row) {
      json.begin_array();
      json.value(row.name);
      json.value(row.value);
      if (row.allocation.has_value()) json.value(*row.allocation);
      json.end_array();
    });
  }
  if (!details.arguments.empty()) {
    list(json, "arguments", details.arguments,
         [&](const ir::Argument& argument) { write_argument(json, graph, argument); });
  }
  auto& uses = details.uses;
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  if (!uses.empty()) {
    list(json, "uses", uses, [&](const auto& use) {
      json.begin_array();
      json.value(use.first);
      json.value(to_string(use.second));
      json.end_array();
    });
  }
}

void write_node(JsonWriter& json, const ir::GraphIr& graph, const ir::Node& node, Texts& scopes) {
  json.begin_object(JsonLayout::kOneLine);
  json.member("kind", ir::to_string(node.kind));
  if (node.body != 0) json.member("body", node.body);
  if (const std::size_t scope = scopes.add(ir::printable(node.scope)); scope != 0) json.member("scope", scope);
  if (node.device != -1) json.member("device", node.device);
  if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) json.member("function", kernel->function);
  write_details(json, graph, std::visit([&](const auto& params) { return details_of(graph, params); }, node.params));
  json.end_object();
}

void write_edge(JsonWriter& json, const ir::Edge& edge) {
  json.begin_array(JsonLayout::kOneLine);
  json.value(edge.from);
  json.value(edge.to);
  if (edge.type != ir::EdgeType::kFull || edge.from_port != 0 || edge.to_port != 0) {
    json.value(edge.type == ir::EdgeType::kProgrammatic ? 1 : 0);
    json.value(edge.from_port);
    json.value(edge.to_port);
  }
  json.end_array();
}

// Each node behind all that it waits for, and behind the node that its body is in.
std::vector<std::uint32_t> order_of(const ir::GraphIr& graph) {
  std::vector<std::vector<std::uint32_t>> of_body(graph.bodies.size() + 1);
  for (const std::uint32_t id : topological_order(graph).value_or(std::vector<std::uint32_t>())) {
    of_body[graph.nodes[id].body].push_back(id);
  }
  std::vector<std::vector<std::uint32_t>> of_owner(graph.nodes.size());  // its bodies, the last one first
  for (std::uint32_t body = static_cast<std::uint32_t>(graph.bodies.size()); body > 0; --body) {
    of_owner[graph.bodies[body - 1].owner].push_back(body);
  }
  std::vector<std::uint32_t> order;
  order.reserve(graph.nodes.size());
  std::vector<std::pair<std::uint32_t, std::size_t>> open = {{0, 0}};  // body, and how many of its nodes are done
  while (!open.empty()) {
    auto& [body, done] = open.back();
    if (done == of_body[body].size()) {
      open.pop_back();
      continue;
    }
    const std::uint32_t id = of_body[body][done++];
    order.push_back(id);
    for (const std::uint32_t inner : of_owner[id]) open.emplace_back(inner, 0);
  }
  return order;
}

std::string graph_json(const ir::GraphIr& graph) {
  JsonWriter json;
  Texts scopes;
  scopes.add("");
  json.begin_object();
  write_counts(json, graph);
  list(json, "functions", graph.functions, [&](const ir::Function& function) {
    json.begin_object(JsonLayout::kOneLine);
    json.member("name", ir::printable(function.name));
    json.member("short", ir::printable(short_name(function.name)));
    json.end_object();
  });
  json.key("allocations");
  json.begin_array();
  for (std::uint32_t id = 0; id < graph.allocations.size(); ++id) write_allocation(json, graph, id);
  json.end_array();
  json.key("bodies");
  json.begin_array();
  for (std::uint32_t body = 1; body <= graph.bodies.size(); ++body) {
    const std::string label = body_label(graph, body);
    json.begin_object(JsonLayout::kOneLine);
    json.member("owner", graph.bodies[body - 1].owner);
    json.member("label", label.substr(0, label.find(" of ")));
    json.end_object();
  }
  json.end_array();
  list(json, "nodes", graph.nodes, [&](const ir::Node& node) { write_node(json, graph, node, scopes); });
  list(json, "scopes", scopes.texts(), [&](const std::string* scope) { json.value(*scope); });
  list(json, "edges", graph.edges, [&](const ir::Edge& edge) { write_edge(json, edge); });
  json.key("order");
  json.begin_array(JsonLayout::kOneLine);
  for (const std::uint32_t id : order_of(graph)) json.value(id);
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

std::string joined(std::span<const std::string_view> files) {
  std::string out;
  for (const std::string_view text : files) out += text;
  return out;
}

}  // namespace

std::string to_html(const ir::GraphIr& graph) {
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    const std::string reason = absl::StrReplaceAll(ir::printable({status.message().data(), status.message().size()}),
                                                   {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
    return absl::StrCat(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>not a valid graph</title>\n"
        "<p>not a valid graph: ",
        reason, "</p>\n</html>\n");
  }
  // The element ends at "</script", and "<!--" changes its meaning: no text of the graph has a "<".
  const std::string data = absl::StrReplaceAll(graph_json(graph), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(joined(kHtml),
                             {{"{{style}}", joined(kCss)}, {"{{graph}}", data}, {"{{script}}", joined(kJs)}});
}

}  // namespace cgrt::inspect
