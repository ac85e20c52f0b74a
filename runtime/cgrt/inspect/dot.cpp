#include "cgrt/inspect/dot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

// The attributes of the kinds that do not look as the default of all nodes.
struct Look {
  ir::NodeKind kind;
  const char* attributes;
};
constexpr Look kLooks[] = {
    {ir::NodeKind::kKernel, R"(shape=box, fillcolor="#cfe2f3")"},
    {ir::NodeKind::kMemcpy, R"(shape=parallelogram, fillcolor="#fff2cc")"},
    {ir::NodeKind::kMemset, R"(shape=parallelogram, fillcolor="#d9ead3")"},
    {ir::NodeKind::kHost, R"(shape=hexagon, fillcolor="#f4cccc")"},
    {ir::NodeKind::kChildGraph, R"(shape=box3d, fillcolor="#d9d2e9")"},
    {ir::NodeKind::kConditional, R"(shape=diamond, fillcolor="#d9d2e9")"},
};

// A label is more than a string: "\N" in it is the name of the node, and "&lt;" is "<".
void append_escaped(std::string_view text, std::string& out) {
  for (const char c : ir::printable(text)) {
    if (c == '&') {
      out += "&amp;";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(text, out);
  return out;
}

// Nodes that share the beginning of their scopes.
struct Cluster {
  std::string name;
  std::vector<std::uint32_t> nodes;
  std::vector<std::size_t> children;
};

// The first cluster is the graph itself. Both kinds of lists are in the order of ids. A graph inside of a node is
// a cluster as well, named by its owner.
std::vector<Cluster> clusters_of(const ir::GraphIr& graph) {
  // Graphviz reads nested clusters with a stack: what lies deeper is one cluster with a long name.
  constexpr int kMaxNested = 32;
  std::vector<Cluster> clusters(1);
  std::map<std::pair<std::size_t, std::string>, std::size_t> found;  // by parent and name
  for (std::uint32_t id = 0; id < graph.nodes.size(); ++id) {
    const std::string& scope = graph.nodes[id].scope;
    std::size_t cluster = 0;
    if (const std::uint32_t body = graph.nodes[id].body; body != 0) {
      const std::string name = ir::body_label(graph, body);
      const auto [entry, is_new] = found.try_emplace({0, name}, clusters.size());
      if (is_new) {
        clusters[0].children.push_back(entry->second);
        clusters.push_back({.name = name, .nodes = {}, .children = {}});
      }
      cluster = entry->second;
    }
    if (!scope.empty()) {
      for (const auto name : absl::StrSplit(scope, absl::MaxSplits('/', kMaxNested - 1))) {
        const auto [entry, is_new] = found.try_emplace({cluster, std::string(name)}, clusters.size());
        if (is_new) {
          clusters[cluster].children.push_back(entry->second);
          clusters.push_back({.name = std::string(name), .nodes = {}, .children = {}});
        }
        cluster = entry->second;
      }
    }
    clusters[cluster].nodes.push_back(id);
  }
  return clusters;
}

std::string node_statement(const ir::GraphIr& graph, std::uint32_t id) {
  const ir::Node& node = graph.nodes[id];
  std::string out = absl::StrCat("n", id, " [label=\"", id, " ");
  if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
    append_escaped(function_of(graph, *kernel).name, out);
    if (ir::has_sizes(*kernel)) {
      absl::StrAppend(&out, "\\ngrid ", describe(kernel->grid), " block ", describe(kernel->block));
    }
  } else if (const auto* conditional = std::get_if<ir::ConditionalParams>(&node.params)) {
    absl::StrAppend(&out, to_string(conditional->kind));
  } else {
    absl::StrAppend(&out, to_string(node.kind));
  }
  out += '"';
  for (const Look& look : kLooks) {
    if (look.kind == node.kind) absl::StrAppend(&out, ", ", look.attributes);
  }
  return out + "];\n";
}

std::string edge_statement(const ir::Edge& edge) {
  std::vector<std::string> attributes;
  if (edge.type == ir::EdgeType::kProgrammatic) attributes.emplace_back("style=dashed");
  if (edge.from_port != 0) attributes.push_back(absl::StrCat("taillabel=\"", edge.from_port, "\""));
  if (edge.to_port != 0) attributes.push_back(absl::StrCat("headlabel=\"", edge.to_port, "\""));
  const std::string list = attributes.empty() ? "" : absl::StrCat(" [", absl::StrJoin(attributes, ", "), "]");
  return absl::StrCat("n", edge.from, " -> n", edge.to, list, ";\n");
}

// Writes clusters within clusters, numbered in the order in which they open.
class ClusterWriter {
 public:
  ClusterWriter(const ir::GraphIr& graph, std::string& out) : graph_(graph), clusters_(clusters_of(graph)), out_(out) {}

  void append(std::size_t cluster = 0, std::size_t depth = 1) {
    const std::string indent(2 * depth, ' ');
    for (const std::uint32_t id : clusters_[cluster].nodes) {
      absl::StrAppend(&out_, indent, node_statement(graph_, id));
    }
    for (const std::size_t child : clusters_[cluster].children) {
      absl::StrAppend(&out_, indent, "subgraph cluster_", count_++, " {\n");
      absl::StrAppend(&out_, indent, "  label=\"", escaped(clusters_[child].name), "\";\n");
      append(child, depth + 1);
      absl::StrAppend(&out_, indent, "}\n");
    }
  }

 private:
  const ir::GraphIr& graph_;
  const std::vector<Cluster> clusters_;
  std::string& out_;
  std::size_t count_ = 0;
};

}  // namespace

std::string to_dot(const ir::GraphIr& graph) {
  std::string out = "digraph cgrt {\n";
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    const std::string reason(status.message());
    return absl::StrCat(out, "  label=\"not a valid graph: ", escaped(reason), "\";\n}\n");
  }
  out += "  node [shape=ellipse, style=filled, fillcolor=\"#ffffff\"];\n";
  ClusterWriter(graph, out).append();
  for (const ir::Edge& edge : graph.edges) absl::StrAppend(&out, "  ", edge_statement(edge));
  out += "}\n";
  return out;
}

}  // namespace cgrt::inspect
