#include "cgrt/inspect/driver_dot.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/dot_reader.h"
#include "cgrt/inspect/driver_label.h"
#include "cgrt/inspect/driver_nodes.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"

namespace cgrt::inspect {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_number(std::string_view& text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::StatusOr<ir::GraphIr> run() && {
    CGRT_ASSIGN_OR_RETURN(file_, parse_dot(text_));
    if (file_.name == "cgrt") {
      return refuse(file_.name, "a picture that graphdump wrote (show --format dot), which holds less than the graph: ",
                    "read the file that it was made of");
    }
    CGRT_RETURN_IF_ERROR(find_graphs());
    CGRT_RETURN_IF_ERROR(find_owners());
    CGRT_RETURN_IF_ERROR(number_nodes());
    CGRT_RETURN_IF_ERROR(add_nodes());
    CGRT_RETURN_IF_ERROR(add_edges());
    CGRT_RETURN_IF_ERROR(ir::validate(graph_));
    return std::move(graph_);
  }

 private:
  // A node statement: "graph_1_node_0".
  struct Statement {
    const DotNode* node;
    std::uint64_t number;
    std::uint32_t id = 0;  // in the GraphIr
  };
  // A graph of the dump: the one that was dumped, or one inside of a node.
  struct Graph {
    std::uint64_t number;
    std::string_view name;                  // where it is first mentioned
    std::vector<std::size_t> statements;    // ascending by number, in the end
    std::optional<std::size_t> owner = {};  // the statement of the node that it is inside of
  };

  template <class... Parts>
  absl::Status refuse(std::string_view at, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(place_of(text_, at), ": ", parts...));
  }
  static std::string quoted(std::string_view name) {
    constexpr std::size_t kShown = 60;
    return absl::StrCat("\"", ir::printable(name.substr(0, kShown)), name.size() > kShown ? "...\"" : "\"");
  }
  std::string name_of(std::size_t statement) const { return quoted(statements_[statement].node->name); }

  std::size_t graph_at(std::uint64_t number, std::string_view name) {
    const auto [place, is_new] = graph_of_number_.try_emplace(number, graphs_.size());
    if (is_new) graphs_.push_back({number, name, {}});
    return place->second;
  }

  // "cluster_1" is graph 1, and "graph_1_node_0" is node 0 in it.
  absl::Status find_graphs() {
    for (const std::string_view name : file_.subgraphs) {
      std::string_view rest = name;
      std::uint64_t graph = 0;
      if (take_prefix(rest, "cluster_") && take_number(rest, graph) && rest.empty()) graph_at(graph, name);
    }
    for (const DotNode& node : file_.nodes) {
      std::string_view rest = node.name;
      std::uint64_t graph = 0, number = 0;
      const bool is_named = take_prefix(rest, "graph_") && take_number(rest, graph) && take_prefix(rest, "_node_") &&
                            take_number(rest, number) && rest.empty();
      if (!is_named) {
        return refuse(node.name, "node ", quoted(node.name),
                      ": the driver names nodes like \"graph_1_node_0\"; this is not a dump of the driver, or a newer "
                      "one");
      }
      const auto [place, is_new] = statement_of_name_.try_emplace(node.name, statements_.size());
      if (!is_new) {
        const std::string_view before = statements_[place->second].node->name;
        return refuse(node.name, "node ", quoted(node.name), " is there twice, first in ", place_of(text_, before));
      }
      graphs_[graph_at(graph, node.name)].statements.push_back(statements_.size());
      statements_.push_back({&node, number});
    }
    if (!graphs_.empty()) return absl::OkStatus();
    return refuse(text_, "the file holds no graph of the driver (subgraph \"cluster_1\")");
  }

  absl::StatusOr<DriverLabel> label_of(const Statement& statement) const {
    const DotNode& node = *statement.node;
    const std::string_view text = file_.value(node.attributes, "label");
    if (text.data() == nullptr) return refuse(node.name, "node ", quoted(node.name), " has no label");
    absl::StatusOr<DriverLabel> label = parse_driver_label(text);
    if (!label.ok()) return refuse(text, "node ", quoted(node.name), ": ", label.status().message());
    return label;
  }

  absl::StatusOr<ir::NodeKind> kind_of(const Statement& statement, const DriverLabel& label) const {
    const DotNode& node = *statement.node;
    std::string word;
    const auto kind = DriverNodes::kind_of(label, file_.value(node.attributes, "shape"), word);
    if (kind.has_value()) return *kind;
    return refuse(node.name, "node ", quoted(node.name), " is of the unknown kind ", quoted(word));
  }

  // A node says which graphs are inside of it. Where just one of those that could have any does not, the graphs that
  // are left are inside of that one.
  absl::Status find_owners() {
    std::vector<std::size_t> silent;  // statements
    bool is_silent_child = false;
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      const std::string_view text = file_.value(statements_[i].node->attributes, "label");
      const auto has = [&](const char* word) { return text.find(word) != std::string_view::npos; };
      if (!has("graph_") && !has("GRAPH") && !has("CONDITIONAL")) continue;  // saves most of the work
      CGRT_ASSIGN_OR_RETURN(const DriverLabel label, label_of(statements_[i]));
      CGRT_ASSIGN_OR_RETURN(const ir::NodeKind kind, kind_of(statements_[i], label));
      if (kind != ir::NodeKind::kChildGraph && kind != ir::NodeKind::kConditional) continue;
      const std::vector<std::uint64_t> inside = DriverNodes::graphs_inside(label);
      const bool is_child = kind == ir::NodeKind::kChildGraph;
      if (inside.empty()) {
        silent.push_back(i);
        is_silent_child |= is_child;
      }
      if (is_child && inside.size() > 1) {
        return refuse(text, "node ", name_of(i), " is a child graph, and has ", inside.size(), " graphs inside");
      }
      for (const std::uint64_t number : inside) CGRT_RETURN_IF_ERROR(set_owner(number, i));
    }
    std::vector<std::size_t> left;
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      if (!graphs_[g].owner.has_value()) left.push_back(g);
    }
    if (left.empty()) return refuse(graphs_[0].name, "the graphs of the file are inside of each other");
    for (std::size_t i = 1; i < left.size(); ++i) {
      Graph& graph = graphs_[left[i]];
      if (silent.size() != 1 || (is_silent_child && left.size() > 2)) {
        return refuse(graph.name, "graph_", graph.number,
                      " is neither the first graph of the file nor inside of a node, ", "as far as labels say");
      }
      graph.owner = silent[0];
    }
    first_graph_ = left[0];
    return absl::OkStatus();
  }

  absl::Status set_owner(std::uint64_t number, std::size_t statement) {
    const auto found = graph_of_number_.find(number);
    const std::string_view name = statements_[statement].node->name;
    if (found == graph_of_number_.end()) {
      return refuse(name, "node ", quoted(name), " has graph_", number, " inside, which is not in the file");
    }
    std::optional<std::size_t>& owner = graphs_[found->second].owner;
    if (owner.has_value() && *owner != statement) {
      return refuse(name, "node ", quoted(name), " has graph_", number, " inside, and so has node ", name_of(*owner));
    }
    owner = statement;
    return absl::OkStatus();
  }

  // Nodes of a graph in the order of their numbers; then those of the graphs inside, by the node that they are in.
  absl::Status number_nodes() {
    std::vector<std::vector<std::size_t>> inside(statements_.size());  // graphs
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      if (graphs_[g].owner.has_value()) inside[*graphs_[g].owner].push_back(g);
    }
    order_ = {first_graph_};
    std::uint32_t id = 0;
    for (std::size_t body = 0; body < order_.size(); ++body) {
      std::vector<std::size_t>& statements = graphs_[order_[body]].statements;
      std::sort(statements.begin(), statements.end(),
                [&](std::size_t a, std::size_t b) { return statements_[a].number < statements_[b].number; });
      for (std::size_t i = 1; i < statements.size(); ++i) {  // 1 and 01
        if (statements_[statements[i]].number != statements_[statements[i - 1]].number) continue;
        return refuse(statements_[statements[i]].node->name, "nodes ", name_of(statements[i - 1]), " and ",
                      name_of(statements[i]), " have one number");
      }
      for (const std::size_t one : statements) {
        std::vector<std::size_t>& graphs = inside[one];
        std::sort(graphs.begin(), graphs.end(),
                  [&](std::size_t a, std::size_t b) { return graphs_[a].number < graphs_[b].number; });
        for (const std::size_t graph : graphs) {
          order_.push_back(graph);
          graph_.bodies.push_back({id});
        }
        statements_[one].id = id++;
      }
    }
    if (order_.size() == graphs_.size()) return absl::OkStatus();
    std::vector<bool> is_reached(graphs_.size());
    for (const std::size_t one : order_) is_reached[one] = true;
    const auto first = std::find(is_reached.begin(), is_reached.end(), false);
    const Graph& missing = graphs_[static_cast<std::size_t>(first - is_reached.begin())];
    return refuse(missing.name, "graph_", missing.number, " is inside of itself");
  }

  absl::Status add_nodes() {
    DriverNodes nodes(graph_);
    for (std::size_t body = 0; body < order_.size(); ++body) {
      for (const std::size_t one : graphs_[order_[body]].statements) {
        const Statement& statement = statements_[one];
        CGRT_ASSIGN_OR_RETURN(const DriverLabel label, label_of(statement));
        CGRT_ASSIGN_OR_RETURN(const ir::NodeKind kind, kind_of(statement, label));
        if (const absl::Status status = nodes.add(label, kind, static_cast<std::uint32_t>(body)); !status.ok()) {
          return refuse(statement.node->name, "node ", name_of(one), ": ", status.message());
        }
      }
    }
    nodes.finish();
    return absl::OkStatus();
  }

  absl::Status add_edges() {
    std::vector<std::pair<ir::Edge, const DotEdge*>> edges;
    // A statement may have many edges and many attributes, which its edges share: they are read once.
    ir::Edge current;
    DotAttributes attributes;
    for (const DotEdge& one : file_.edges) {
      CGRT_RETURN_IF_ERROR(read_ends(one, current));
      if (one.attributes != attributes) CGRT_RETURN_IF_ERROR(read_attributes(one, current));
      attributes = one.attributes;
      edges.emplace_back(current, &one);
    }
    std::sort(edges.begin(), edges.end(),
              [](const auto& a, const auto& b) { return std::tie(a.first, a.second) < std::tie(b.first, b.second); });
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto& [edge, statement] = edges[i];
      if (i > 0 && edge == edges[i - 1].first) {
        return refuse(statement->to, edge_name(*statement), " is there twice, first in ",
                      place_of(text_, edges[i - 1].second->to));
      }
      graph_.edges.push_back(edge);
    }
    if (ir::topological_order(graph_).has_value()) return absl::OkStatus();
    return refuse_cycle(edges);
  }

  static std::string edge_name(const DotEdge& edge) {
    return absl::StrCat("the edge ", quoted(edge.from), " -> ", quoted(edge.to));
  }

  absl::Status read_ends(const DotEdge& one, ir::Edge& edge) const {
    for (const auto& [name, end] : {std::pair(one.from, &edge.from), std::pair(one.to, &edge.to)}) {
      const auto found = statement_of_name_.find(name);
      if (found == statement_of_name_.end()) {
        return refuse(name, edge_name(one), " has an end that is no node of the file: ", quoted(name));
      }
      *end = statements_[found->second].id;
    }
    if (edge.from == edge.to) return refuse(one.to, edge_name(one), " joins a node to itself");
    if (graph_.nodes[edge.from].body == graph_.nodes[edge.to].body) return absl::OkStatus();
    return refuse(one.to, edge_name(one), " joins nodes of two graphs");
  }

  // The ports and the type.
  absl::Status read_attributes(const DotEdge& one, ir::Edge& edge) const {
    edge = {.from = edge.from, .to = edge.to};
    CGRT_RETURN_IF_ERROR(read_port(one, "taillabel", edge.from_port));
    CGRT_RETURN_IF_ERROR(read_port(one, "headlabel", edge.to_port));
    // One label of the two is the port that is left: no kind of node has another port to enter by (CUDA 13.0).
    if (edge.from_port == 0) std::swap(edge.from_port, edge.to_port);
    bool says_programmatic = false;
    for (const DotAttribute& attribute : file_.of(one.attributes)) {
      const std::string value = absl::AsciiStrToLower({attribute.value.data(), attribute.value.size()});
      says_programmatic |= value.find("programmatic") != std::string::npos;
    }
    if (edge.from_port == 1 || says_programmatic) edge.type = ir::EdgeType::kProgrammatic;
    if (edge.from_port == 0 && says_programmatic) edge.from_port = 1;
    return absl::OkStatus();
  }

  absl::Status read_port(const DotEdge& edge, const char* attribute, std::uint8_t& out) const {
    const std::string_view text = file_.value(edge.attributes, attribute);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (text.empty() || (error == std::errc() && end == text.data() + text.size())) return absl::OkStatus();
    return refuse(text, edge_name(edge), ": ", attribute, " is ", quoted(text), ", and is to be a port, 0 to 255");
  }

  // Takes away nodes that wait for none, until nothing changes: every node that is left has one before it that is left,
  // so that a walk back along those comes to a cycle.
  absl::Status refuse_cycle(const std::vector<std::pair<ir::Edge, const DotEdge*>>& edges) const {
    std::vector<std::vector<std::uint32_t>> after(graph_.nodes.size());
    std::vector<std::size_t> waits(graph_.nodes.size());
    for (const ir::Edge& edge : graph_.edges) {
      after[edge.from].push_back(edge.to);
      ++waits[edge.to];
    }
    std::vector<std::uint32_t> free;
    for (std::uint32_t n = 0; n < waits.size(); ++n) {
      if (waits[n] == 0) free.push_back(n);
    }
    while (!free.empty()) {
      const std::uint32_t node = free.back();
      free.pop_back();
      for (const std::uint32_t next : after[node]) {
        if (--waits[next] == 0) free.push_back(next);
      }
    }
    std::vector<const DotEdge*> entry(graph_.nodes.size());
    std::vector<std::uint32_t> before(graph_.nodes.size());
    std::uint32_t node = 0;
    for (const auto& [edge, statement] : edges) {
      if (waits[edge.from] == 0 || waits[edge.to] == 0) continue;
      entry[edge.to] = statement;
      before[edge.to] = node = edge.from;
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) node = before[node];
    return refuse(entry[node]->to, edge_name(*entry[node]), " closes a cycle: nodes wait for each other");
  }

  const std::string_view text_;
  DotFile file_;
  std::vector<Statement> statements_;
  std::vector<Graph> graphs_;
  absl::flat_hash_map<std::string_view, std::size_t> statement_of_name_;
  absl::flat_hash_map<std::uint64_t, std::size_t> graph_of_number_;
  std::size_t first_graph_ = 0;
  std::vector<std::size_t> order_;  // graphs, by body
  ir::GraphIr graph_;
};

}  // namespace

absl::StatusOr<ir::GraphIr> from_driver_dot(std::string_view text) try {
  return Reader(text).run();
} catch (const std::exception&) {  // memory: there is no other
  return absl::ResourceExhaustedError("not enough memory for this graph");
}

}  // namespace cgrt::inspect
