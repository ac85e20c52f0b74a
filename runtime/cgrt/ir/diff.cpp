#include "cgrt/ir/diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/ir/matching.h"
#include "cgrt/ir/named.h"

namespace cgrt::ir {
namespace {

std::string quoted(const std::string& text) { return absl::StrCat("\"", printable(text), "\""); }

// Compares field after field, up to the first that differs or all.
class Comparison {
 public:
  enum class Extent { kFirst, kAll };

  // `ids`: those of the nodes of `b` elsewhere; null: their own.
  Comparison(const GraphIr& a, const GraphIr& b, Extent extent, const std::vector<std::uint32_t>* ids = nullptr)
      : a_(a), b_(b), extent_(extent), ids_(ids) {
    std::vector<Function> all;
    FunctionTable table(all);
    for (const Function& function : a.functions) functions_a_.push_back(table.add(function));
    for (const Function& function : b.functions) functions_b_.push_back(table.add(function));
  }

  void compare_nodes() {
    const std::size_t common = std::min(a_.nodes.size(), b_.nodes.size());
    for (std::size_t n = 0; n < common && !is_done(); ++n) compare_node(static_cast<std::uint32_t>(n));
    place_.clear();
  }

  // The first that differs.
  void compare_edges() {
    if (is_done() || a_.edges == b_.edges) return;
    const auto [a, b] = std::mismatch(a_.edges.begin(), a_.edges.end(), b_.edges.begin(), b_.edges.end());
    const std::string none = "no further edge";
    report(absl::StrCat("edge ", a - a_.edges.begin()), a == a_.edges.end() ? none : describe(*a),
           b == b_.edges.end() ? none : describe(*b));
  }

  void compare_allocations() {
    const std::size_t common = std::min(a_.allocations.size(), b_.allocations.size());
    for (std::size_t i = 0; i < common; ++i) {
      const Allocation& a = a_.allocations[i];
      const Allocation& b = b_.allocations[i];
      if (a == b) continue;
      place_ = absl::StrCat("allocation ", i);
      compare("kind", a.kind, b.kind, [](MemoryKind kind) { return to_string(kind); });
      compare("device", a.device, b.device);
      compare("bytes", a.bytes, b.bytes);
    }
    place_.clear();
  }

  // Last: two graphs whose nodes and edges agree differ here only when one inside of them is empty.
  void compare_bodies() {
    compare("owners of bodies", a_.bodies, b_.bodies, [](const std::vector<Body>& bodies) {
      std::string text;
      for (const Body& body : bodies) absl::StrAppend(&text, text.empty() ? "" : ", ", body.owner);
      return text.empty() ? std::string("none") : text;
    });
  }

  template <class Number>
  void compare(const std::string& field, const Number& a, const Number& b) {
    compare(field, a, b, [](const Number& number) { return absl::StrCat(number); });
  }

  std::vector<Change> take() && { return std::move(found_); }

 private:
  bool is_done() const { return extent_ == Extent::kFirst && !found_.empty(); }

  template <class Value, class Text>
  void compare(const std::string& field, const Value& a, const Value& b, Text text) {
    if (!is_done() && a != b) report(field, text(a), text(b));
  }

  void compare_node(std::uint32_t id) {
    const Node& a = a_.nodes[id];
    const Node& b = b_.nodes[id];
    if (a.kind == b.kind && a.device == b.device && a.body == b.body && are_equal(a, b)) return;  // labels cost time

    place_ = absl::StrCat("node ", id);
    if (a.kind != b.kind) return report("kind", to_string(a.kind), to_string(b.kind));
    if (a.params.index() != b.params.index())
      return report("parameters", kParams[a.params.index()], kParams[b.params.index()]);
    place_ = node_label(a_, id);
    if (ids_ != nullptr && (*ids_)[id] != id) absl::StrAppend(&place_, " (node ", (*ids_)[id], " of the other)");
    compare("device", a.device, b.device);
    compare("body", a.body, b.body);
    std::visit([&](const auto& params) { compare_params(params, std::get<std::decay_t<decltype(params)>>(b.params)); },
               a.params);
  }

  // Parameters. Functions are compared by what they are: the two graphs may number them differently.
  bool are_equal(const Node& a, const Node& b) const {
    const auto* kernel = std::get_if<KernelParams>(&a.params);
    const auto* other = std::get_if<KernelParams>(&b.params);
    if (kernel == nullptr || other == nullptr) return a.params == b.params;
    return are_same_function(kernel->function, other->function) && kernel->grid == other->grid &&
           kernel->block == other->block && kernel->shared_bytes == other->shared_bytes &&
           kernel->arguments == other->arguments && kernel->pointers == other->pointers &&
           kernel->attributes == other->attributes;
  }

  bool are_same_function(std::uint32_t a, std::uint32_t b) const {
    const bool is_known = a < functions_a_.size();
    if (is_known != (b < functions_b_.size())) return false;
    return !is_known || functions_a_[a] == functions_b_[b];
  }

  // Two nodes of one kind have different ones only in graphs that are not valid.
  static constexpr const char* kParams[] = {"none",
                                            "of a kernel",
                                            "of a memcpy",
                                            "of a memset",
                                            "of an event",
                                            "of a conditional node",
                                            "of an allocation",
                                            "of a free",
                                            "of memory operations",
                                            "of external semaphores"};

  void compare_params(const NoParams&, const NoParams&) {}

  void compare_params(const KernelParams& a, const KernelParams& b) {
    const std::size_t before = found_.size();
    compare("function", function_of(a_, a).name, function_of(b_, b).name, quoted);
    compare_dim("grid", a.grid, b.grid);
    compare_dim("block", a.block, b.block);
    compare("shared bytes", a.shared_bytes, b.shared_bytes);
    const std::vector<Argument> arguments = arguments_of(a_, a), others = arguments_of(b_, b);
    compare("number of arguments", arguments.size(), others.size());
    if (arguments.size() == others.size()) {
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        compare_argument(absl::StrCat("argument ", i), arguments[i], others[i]);
      }
    }
    compare_attributes(a.attributes, b.attributes);
    // Only in graphs that are not valid.
    if (found_.size() == before && (a.arguments != b.arguments || a.pointers != b.pointers)) {
      report("bytes that belong to no argument", absl::StrCat(a.arguments.size()), absl::StrCat(b.arguments.size()));
    }
  }

  void compare_attributes(const LaunchAttributes& a, const LaunchAttributes& b) {
    compare("cooperative", int{a.cooperative}, int{b.cooperative});
    compare_dim("cluster", a.cluster, b.cluster);
    compare_dim("preferred cluster", a.preferred_cluster, b.preferred_cluster);
    compare("cluster scheduling", a.cluster_scheduling, b.cluster_scheduling,
            [](ClusterScheduling scheduling) { return to_string(scheduling); });
    compare("priority", a.priority, b.priority);
    compare("remote memory synchronization domain", int{a.is_remote_domain}, int{b.is_remote_domain});
    compare("shared carveout percent", a.shared_carveout_percent, b.shared_carveout_percent);
    if (is_done() || a.access_policy == b.access_policy) return;
    report("access policy window", describe(a_, a.access_policy), describe(b_, b.access_policy));
  }

  void compare_params(const EventParams& a, const EventParams& b) { compare("event", a.event, b.event); }

  void compare_params(const ConditionalParams& a, const ConditionalParams& b) {
    compare("conditional kind", a.kind, b.kind, [](ConditionalKind kind) { return to_string(kind); });
    compare("conditional handle", a.handle, b.handle);
    compare("value at launch", a.at_launch, b.at_launch, [](const std::optional<std::uint32_t>& at_launch) {
      return at_launch.has_value() ? absl::StrCat(*at_launch) : std::string("as it was");
    });
  }

  void compare_argument(const std::string& name, const Argument& a, const Argument& b) {
    if (a.parameter != b.parameter) {
      compare(name + " offset", a.parameter.offset, b.parameter.offset);
      return compare(name + " size", a.parameter.size, b.parameter.size);
    }
    const auto [byte_a, byte_b] = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
    const auto [pointer_a, pointer_b] =
        std::mismatch(a.pointers.begin(), a.pointers.end(), b.pointers.begin(), b.pointers.end());
    const bool are_equal = byte_a == a.bytes.end() && byte_b == b.bytes.end() && pointer_a == a.pointers.end() &&
                           pointer_b == b.pointers.end();
    if (is_done() || are_equal) return;
    const bool are_long = a.bytes.size() == b.bytes.size() && a.bytes.size() > 8;
    if (!are_long) return report(name, describe(a_, a), describe(b_, b));
    // A long value is not shown whole, so the text could look the same.
    auto at = static_cast<std::size_t>(byte_a - a.bytes.begin());  // where the two first part
    if (pointer_a != a.pointers.end()) at = std::min<std::size_t>(at, pointer_a->at - a.parameter.offset);
    if (pointer_b != b.pointers.end()) at = std::min<std::size_t>(at, pointer_b->at - b.parameter.offset);
    report(absl::StrCat(name, " byte ", at), describe_at(a_, a, at), describe_at(b_, b, at));
  }

  // The address that begins at byte `at` of a value, or the byte.
  static std::string describe_at(const GraphIr& graph, const Argument& argument, std::size_t at) {
    for (const InnerPointer& inner : argument.pointers) {
      if (inner.at - argument.parameter.offset == at) return describe(graph, inner.pointer);
    }
    return at < argument.bytes.size() ? absl::StrCat("0x", absl::Hex(argument.bytes[at], absl::kZeroPad2)) : "none";
  }

  void compare_params(const MemcpyParams& a, const MemcpyParams& b) {
    compare_pointer("destination", a.destination, b.destination);
    compare_pointer("source", a.source, b.source);
    compare("width bytes", a.width_bytes, b.width_bytes);
    compare("height", a.height, b.height);
    compare("depth", a.depth, b.depth);
    compare("destination pitch", a.destination_pitch, b.destination_pitch);
    compare("source pitch", a.source_pitch, b.source_pitch);
  }

  void compare_params(const MemsetParams& a, const MemsetParams& b) {
    compare_pointer("destination", a.destination, b.destination);
    compare("value", a.value, b.value);
    compare("element bytes", a.element_bytes, b.element_bytes);
    compare("width", a.width, b.width);
    compare("height", a.height, b.height);
    compare("pitch", a.pitch, b.pitch);
  }

  void compare_params(const MemAllocParams& a, const MemAllocParams& b) {
    compare("bytes", a.bytes, b.bytes);
    compare_pointer("address", a.address, b.address);
  }

  void compare_params(const MemFreeParams& a, const MemFreeParams& b) {
    compare_pointer("address", a.address, b.address);
  }

  void compare_params(const BatchMemOpParams& a, const BatchMemOpParams& b) {
    compare("number of operations", a.operations.size(), b.operations.size());
    if (a.operations.size() != b.operations.size()) return;
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
      if (is_done() || a.operations[i] == b.operations[i]) continue;
      report(absl::StrCat("operation ", i), describe(a_, a.operations[i]), describe(b_, b.operations[i]));
    }
  }

  void compare_params(const SemaphoreParams& a, const SemaphoreParams& b) {
    compare("number of semaphores", a.semaphores.size(), b.semaphores.size());
    if (a.semaphores.size() != b.semaphores.size()) return;
    for (std::size_t i = 0; i < a.semaphores.size(); ++i) {
      compare(absl::StrCat("semaphore ", i), a.semaphores[i], b.semaphores[i],
              [](const SemaphoreValue& value) { return describe(value); });
    }
  }

  void compare_dim(const std::string& field, const Dim3& a, const Dim3& b) {
    compare(field, a, b, [](const Dim3& dim) { return describe(dim); });
  }

  void compare_pointer(const std::string& field, const std::optional<Pointer>& a, const std::optional<Pointer>& b) {
    if (is_done() || a == b) return;
    report(field, a ? describe(a_, *a) : "array", b ? describe(b_, *b) : "array");
  }

  void report(const std::string& field, std::string a, std::string b) {
    found_.push_back({.place = place_, .field = field, .a = std::move(a), .b = std::move(b)});
  }

  const GraphIr& a_;
  const GraphIr& b_;
  Extent extent_;
  const std::vector<std::uint32_t>* ids_;
  std::vector<std::uint32_t> functions_a_, functions_b_;  // their numbers in a list of both graphs' functions
  std::string place_;
  std::vector<Change> found_;
};

std::string list_nodes(const GraphIr& graph, std::size_t first) {
  constexpr std::size_t kShown = 8;
  std::string text;
  const std::size_t end = std::min(graph.nodes.size(), first + kShown);
  for (std::size_t n = first; n < end; ++n) {
    absl::StrAppend(&text, n == first ? "" : ", ", node_label(graph, static_cast<std::uint32_t>(n)));
  }
  if (end < graph.nodes.size()) absl::StrAppend(&text, " and ", graph.nodes.size() - end, " more");
  return text;
}

using Numbers = std::map<std::pair<Named, std::uint32_t>, std::uint32_t>;

// Which number of `a` is meant by one of `b`: that which stands in most of the same places. Those of `b` that stand
// nowhere so get numbers that `a` does not have.
Numbers match_numbers(const GraphIr& a, const GraphIr& b, const std::vector<std::uint32_t>& matches) {
  using Place = std::pair<Named, std::uint32_t>;
  const auto numbers_of = [](const Node& node) {
    std::vector<Place> numbers;
    visit_named(node, [&](Named named, std::uint32_t number) { numbers.emplace_back(named, number); });
    return numbers;
  };
  std::map<std::pair<Place, Place>, std::size_t> counts;
  std::map<Named, std::uint32_t> next = {{Named::kAllocation, static_cast<std::uint32_t>(a.allocations.size())}};
  for (std::uint32_t n = 0; n < a.nodes.size(); ++n) {
    const std::vector<Place> ours = numbers_of(a.nodes[n]);
    for (const auto& [named, number] : ours) next[named] = std::max(next[named], number + 1);
    if (matches[n] == kNoNode) continue;
    const std::vector<Place> theirs = numbers_of(b.nodes[matches[n]]);
    if (ours.size() != theirs.size()) continue;
    for (std::size_t i = 0; i < ours.size(); ++i) ++counts[{ours[i], theirs[i]}];
  }
  std::vector<std::pair<std::size_t, std::pair<Place, Place>>> order;
  order.reserve(counts.size());
  for (const auto& [pair, count] : counts) order.emplace_back(count, pair);
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  Numbers numbers;
  std::map<Place, bool> is_taken;
  for (const auto& [count, pair] : order) {
    const auto& [ours, theirs] = pair;
    if (is_taken[ours] || numbers.contains(theirs)) continue;
    numbers[theirs] = ours.second;
    is_taken[ours] = true;
  }
  for (const Node& node : b.nodes) {
    for (const Place& place : numbers_of(node)) {
      if (numbers.try_emplace(place, next[place.first]).second) ++next[place.first];
    }
  }
  return numbers;
}

// `b` with the ids and numbers of `a`. Where it has no node that matches stands that of `a`.
GraphIr in_terms_of(const GraphIr& a, const GraphIr& b, const std::vector<std::uint32_t>& matches) {
  const Numbers numbers = match_numbers(a, b, matches);
  GraphIr out{.nodes = a.nodes, .edges = {}, .allocations = a.allocations, .functions = a.functions, .bodies = {}};
  FunctionTable functions(out.functions);
  std::vector<std::uint32_t> function_of_b;
  for (const Function& function : b.functions) function_of_b.push_back(functions.add(function));
  for (const auto& [place, number] : numbers) {
    if (place.first != Named::kAllocation) continue;
    if (out.allocations.size() <= number) out.allocations.resize(number + 1);
    out.allocations[number] = b.allocations[place.second];
  }
  for (std::uint32_t n = 0; n < a.nodes.size(); ++n) {
    if (matches[n] == kNoNode) continue;
    Node& node = out.nodes[n];
    node = b.nodes[matches[n]];
    node.body = a.nodes[n].body;
    visit_named(node, [&](Named named, std::uint32_t& number) { number = numbers.at({named, number}); });
    if (auto* kernel = std::get_if<KernelParams>(&node.params)) kernel->function = function_of_b[kernel->function];
  }
  return out;
}

}  // namespace

std::optional<Difference> first_difference(const GraphIr& a, const GraphIr& b) {
  Comparison comparison(a, b, Comparison::Extent::kFirst);
  comparison.compare_nodes();
  comparison.compare("number of nodes", a.nodes.size(), b.nodes.size());
  comparison.compare_edges();
  comparison.compare_allocations();
  comparison.compare("number of allocations", a.allocations.size(), b.allocations.size());
  comparison.compare_bodies();
  const std::vector<Change> found = std::move(comparison).take();
  if (found.empty()) return std::nullopt;
  const Change& first = found[0];
  const std::size_t common = std::min(a.nodes.size(), b.nodes.size());
  return Difference{.where = first.place.empty() ? first.field : absl::StrCat(first.place, ": ", first.field),
                    .a = first.a,
                    .b = first.b,
                    .only_in_a = list_nodes(a, common),
                    .only_in_b = list_nodes(b, common)};
}

Differences differences(const GraphIr& a, const GraphIr& b) {
  if (!first_difference(a, b).has_value()) return {};
  const std::vector<std::uint32_t> matches = match_nodes(a, b);
  Differences out;
  std::vector<std::uint32_t> back(b.nodes.size(), kNoNode);
  for (std::uint32_t n = 0; n < a.nodes.size(); ++n) {
    if (matches[n] == kNoNode) {
      out.only_in_a.push_back(n);
    } else {
      back[matches[n]] = n;
    }
  }
  for (std::uint32_t n = 0; n < b.nodes.size(); ++n) {
    if (back[n] == kNoNode) out.only_in_b.push_back(n);
  }
  const GraphIr other = in_terms_of(a, b, matches);
  Comparison comparison(a, other, Comparison::Extent::kAll, &matches);
  comparison.compare_nodes();
  comparison.compare_allocations();
  out.changes = std::move(comparison).take();

  // Those of b as edges of a, each with its own.
  std::vector<std::pair<Edge, Edge>> edges;
  for (const Edge& edge : b.edges) {
    Edge moved = edge;
    moved.from = back[edge.from], moved.to = back[edge.to];
    if (moved.from != kNoNode && moved.to != kNoNode) edges.emplace_back(moved, edge);
  }
  std::sort(edges.begin(), edges.end());
  const auto is_before = [](const auto& pair, const Edge& edge) { return pair.first < edge; };
  const auto of_b = [&](const Edge& edge) {
    const auto found = std::lower_bound(edges.begin(), edges.end(), edge, is_before);
    return found != edges.end() && found->first == edge;
  };
  for (const Edge& edge : a.edges) {
    const bool is_of_both = matches[edge.from] != kNoNode && matches[edge.to] != kNoNode;
    if (is_of_both && !of_b(edge)) out.edges_only_in_a.push_back(edge);
  }
  for (const auto& [moved, edge] : edges) {
    if (!std::binary_search(a.edges.begin(), a.edges.end(), moved)) out.edges_only_in_b.push_back(edge);
  }
  std::sort(out.edges_only_in_b.begin(), out.edges_only_in_b.end());
  return out;
}

}  // namespace cgrt::ir
