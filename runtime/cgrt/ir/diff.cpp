#include "cgrt/ir/diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/ir/in_terms_of.h"
#include "cgrt/ir/matching.h"

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
    report(Part::kEdge, absl::StrCat(" ", a - a_.edges.begin()), a == a_.edges.end() ? none : describe(*a),
           b == b_.edges.end() ? none : describe(*b));
  }

  void compare_allocations() {
    const std::size_t common = std::min(a_.allocations.size(), b_.allocations.size());
    for (std::size_t i = 0; i < common; ++i) {
      const Allocation& a = a_.allocations[i];
      const Allocation& b = b_.allocations[i];
      if (a == b) continue;
      place_ = absl::StrCat("allocation ", i);
      id_ = static_cast<std::uint32_t>(i);
      compare(Part::kMemoryKind, a.kind, b.kind, [](MemoryKind kind) { return to_string(kind); });
      compare(Part::kMemoryDevice, a.device, b.device);
      compare(Part::kMemoryBytes, a.bytes, b.bytes);
    }
    place_.clear();
  }

  // Of conditional nodes: a body may be empty.
  void compare_body_counts(const GraphIr& other) {
    std::vector<std::size_t> of_a(a_.nodes.size()), of_other(other.nodes.size());
    for (const Body& body : a_.bodies) ++of_a[body.owner];
    for (const Body& body : other.bodies) ++of_other[body.owner];
    for (std::uint32_t id = 0; id < a_.nodes.size(); ++id) {
      const std::uint32_t match = ids_ != nullptr ? (*ids_)[id] : id;
      if (match == kNoNode || of_a[id] == of_other[match]) continue;
      place_ = place_of(id);
      id_ = id;
      compare(Part::kBodyCount, of_a[id], of_other[match]);
    }
    place_.clear();
  }

  // Last: two graphs whose nodes and edges agree differ here only when one inside of them is empty.
  void compare_bodies() {
    compare(Part::kOwners, a_.bodies, b_.bodies, [](const std::vector<Body>& bodies) {
      std::string text;
      for (const Body& body : bodies) absl::StrAppend(&text, text.empty() ? "" : ", ", body.owner);
      return text.empty() ? std::string("none") : text;
    });
  }

  template <class Number>
  void compare(Part part, const Number& a, const Number& b) {
    compare(part, a, b, [](const Number& number) { return absl::StrCat(number); });
  }

  std::vector<Change> take() && { return std::move(found_); }

 private:
  bool is_done() const { return extent_ == Extent::kFirst && !found_.empty(); }

  template <class Value, class Text>
  void compare(Part part, const Value& a, const Value& b, Text text) {
    if (!is_done() && a != b) report(part, text(a), text(b));
  }

  std::string place_of(std::uint32_t id) const {
    std::string place = node_label(a_, id);
    if (ids_ != nullptr && (*ids_)[id] != id) absl::StrAppend(&place, " (node ", (*ids_)[id], " of the other)");
    return place;
  }

  void compare_node(std::uint32_t id) {
    const Node& a = a_.nodes[id];
    const Node& b = b_.nodes[id];
    if (a.kind == b.kind && a.device == b.device && a.body == b.body && are_equal(a, b)) return;  // labels cost time

    place_ = absl::StrCat("node ", id);
    id_ = id;
    if (a.kind != b.kind) return report(Part::kKind, to_string(a.kind), to_string(b.kind));
    if (a.params.index() != b.params.index())
      return report(Part::kParameters, kParams[a.params.index()], kParams[b.params.index()]);
    place_ = place_of(id);
    compare(Part::kDevice, a.device, b.device);
    compare(Part::kBody, a.body, b.body);
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
    compare(Part::kFunction, function_of(a_, a).name, function_of(b_, b).name, quoted);
    compare_dim(Part::kGrid, a.grid, b.grid);
    compare_dim(Part::kBlock, a.block, b.block);
    compare(Part::kSharedBytes, a.shared_bytes, b.shared_bytes);
    const std::vector<Argument> arguments = arguments_of(a_, a), others = arguments_of(b_, b);
    const auto count = [](const Function& function) {
      return function.has_parameters ? absl::StrCat(function.parameters.size()) : "not known";
    };
    compare(Part::kArgumentCount, count(function_of(a_, a)), count(function_of(b_, b)), std::identity());
    if (arguments.size() == others.size()) {
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        compare_argument(absl::StrCat(" ", i), arguments[i], others[i]);
      }
    }
    compare_attributes(a.attributes, b.attributes);
    // Only in graphs that are not valid.
    if (found_.size() == before && (a.arguments != b.arguments || a.pointers != b.pointers)) {
      report(Part::kOtherBytes, absl::StrCat(a.arguments.size()), absl::StrCat(b.arguments.size()));
    }
  }

  void compare_attributes(const LaunchAttributes& a, const LaunchAttributes& b) {
    compare(Part::kCooperative, int{a.cooperative}, int{b.cooperative});
    compare_dim(Part::kCluster, a.cluster, b.cluster);
    compare_dim(Part::kPreferredCluster, a.preferred_cluster, b.preferred_cluster);
    compare(Part::kClusterScheduling, a.cluster_scheduling, b.cluster_scheduling,
            [](ClusterScheduling scheduling) { return to_string(scheduling); });
    compare(Part::kPriority, a.priority, b.priority);
    compare(Part::kSyncDomain, int{a.is_remote_domain}, int{b.is_remote_domain});
    compare(Part::kCarveout, a.shared_carveout_percent, b.shared_carveout_percent);
    if (is_done() || a.access_policy == b.access_policy) return;
    report(Part::kAccessPolicy, describe(a_, a.access_policy), describe(b_, b.access_policy));
  }

  void compare_params(const EventParams& a, const EventParams& b) { compare(Part::kEvent, a.event, b.event); }

  void compare_params(const ConditionalParams& a, const ConditionalParams& b) {
    compare(Part::kConditionalKind, a.kind, b.kind, [](ConditionalKind kind) { return to_string(kind); });
    compare(Part::kConditionalHandle, a.handle, b.handle);
    compare(Part::kAtLaunch, a.at_launch, b.at_launch, [](const std::optional<std::uint32_t>& at_launch) {
      return at_launch.has_value() ? absl::StrCat(*at_launch) : std::string("as it was");
    });
  }

  void compare_argument(const std::string& number, const Argument& a, const Argument& b) {
    if (a.parameter != b.parameter) {
      const auto compare_place = [&](const char* what, std::uint32_t x, std::uint32_t y) {
        if (!is_done() && x != y) report(Part::kArgumentPlace, number + what, absl::StrCat(x), absl::StrCat(y));
      };
      compare_place(" offset", a.parameter.offset, b.parameter.offset);
      return compare_place(" size", a.parameter.size, b.parameter.size);
    }
    const auto [byte_a, byte_b] = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
    const auto [pointer_a, pointer_b] =
        std::mismatch(a.pointers.begin(), a.pointers.end(), b.pointers.begin(), b.pointers.end());
    const bool are_equal = byte_a == a.bytes.end() && byte_b == b.bytes.end() && pointer_a == a.pointers.end() &&
                           pointer_b == b.pointers.end();
    if (is_done() || are_equal) return;
    const bool are_long = a.bytes.size() == b.bytes.size() && a.bytes.size() > 8;
    if (!are_long) return report(Part::kArgument, number, describe(a_, a), describe(b_, b));
    // A long value is not shown whole, so the text could look the same.
    auto at = static_cast<std::size_t>(byte_a - a.bytes.begin());  // where the two first part
    if (pointer_a != a.pointers.end()) at = std::min<std::size_t>(at, pointer_a->at - a.parameter.offset);
    if (pointer_b != b.pointers.end()) at = std::min<std::size_t>(at, pointer_b->at - b.parameter.offset);
    report(Part::kArgument, absl::StrCat(number, " byte ", at), describe_at(a_, a, at), describe_at(b_, b, at));
  }

  // The address that begins at byte `at` of a value, or the byte.
  static std::string describe_at(const GraphIr& graph, const Argument& argument, std::size_t at) {
    for (const InnerPointer& inner : argument.pointers) {
      if (inner.at - argument.parameter.offset == at) return describe(graph, inner.pointer);
    }
    return at < argument.bytes.size() ? absl::StrCat("0x", absl::Hex(argument.bytes[at], absl::kZeroPad2)) : "none";
  }

  void compare_params(const MemcpyParams& a, const MemcpyParams& b) {
    compare_pointer(Part::kDestination, a.destination, b.destination);
    compare_pointer(Part::kSource, a.source, b.source);
    compare(Part::kWidthBytes, a.width_bytes, b.width_bytes);
    compare(Part::kHeight, a.height, b.height);
    compare(Part::kDepth, a.depth, b.depth);
    compare(Part::kDestinationPitch, a.destination_pitch, b.destination_pitch);
    compare(Part::kSourcePitch, a.source_pitch, b.source_pitch);
  }

  void compare_params(const MemsetParams& a, const MemsetParams& b) {
    compare_pointer(Part::kDestination, a.destination, b.destination);
    compare(Part::kValue, a.value, b.value);
    compare(Part::kElementBytes, a.element_bytes, b.element_bytes);
    compare(Part::kWidth, a.width, b.width);
    compare(Part::kHeight, a.height, b.height);
    compare(Part::kPitch, a.pitch, b.pitch);
  }

  void compare_params(const MemAllocParams& a, const MemAllocParams& b) {
    compare(Part::kBytes, a.bytes, b.bytes);
    compare_pointer(Part::kAddress, a.address, b.address);
  }

  void compare_params(const MemFreeParams& a, const MemFreeParams& b) {
    compare_pointer(Part::kAddress, a.address, b.address);
  }

  void compare_params(const BatchMemOpParams& a, const BatchMemOpParams& b) {
    compare(Part::kOperationCount, a.operations.size(), b.operations.size());
    if (a.operations.size() != b.operations.size()) return;
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
      if (is_done() || a.operations[i] == b.operations[i]) continue;
      report(Part::kOperation, absl::StrCat(" ", i), describe(a_, a.operations[i]), describe(b_, b.operations[i]));
    }
  }

  void compare_params(const SemaphoreParams& a, const SemaphoreParams& b) {
    compare(Part::kSemaphoreCount, a.semaphores.size(), b.semaphores.size());
    if (a.semaphores.size() != b.semaphores.size()) return;
    for (std::size_t i = 0; i < a.semaphores.size(); ++i) {
      if (is_done() || a.semaphores[i] == b.semaphores[i]) continue;
      report(Part::kSemaphore, absl::StrCat(" ", i), describe(a.semaphores[i]), describe(b.semaphores[i]));
    }
  }

  void compare_dim(Part part, const Dim3& a, const Dim3& b) {
    compare(part, a, b, [](const Dim3& dim) { return describe(dim); });
  }

  void compare_pointer(Part part, const std::optional<Pointer>& a, const std::optional<Pointer>& b) {
    if (is_done() || a == b) return;
    report(part, a ? describe(a_, *a) : "array", b ? describe(b_, *b) : "array");
  }

  void report(Part part, std::string a, std::string b) { report(part, "", std::move(a), std::move(b)); }
  // `which` of several parts of the kind: " 2".
  void report(Part part, const std::string& which, std::string a, std::string b) {
    found_.push_back({.place = place_,
                      .field = to_string(part) + which,
                      .a = std::move(a),
                      .b = std::move(b),
                      .part = part,
                      .id = id_,
                      .other = ids_ != nullptr && !is_memory(part) ? (*ids_)[id_] : id_});
  }
  static bool is_memory(Part part) {
    return part == Part::kMemoryKind || part == Part::kMemoryDevice || part == Part::kMemoryBytes;
  }

  const GraphIr& a_;
  const GraphIr& b_;
  Extent extent_;
  const std::vector<std::uint32_t>* ids_;
  std::vector<std::uint32_t> functions_a_, functions_b_;  // their numbers in a list of both graphs' functions
  std::string place_;
  std::uint32_t id_ = 0;  // what `place_` is about
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

}  // namespace

std::optional<Difference> first_difference(const GraphIr& a, const GraphIr& b) {
  Comparison comparison(a, b, Comparison::Extent::kFirst);
  comparison.compare_nodes();
  comparison.compare(Part::kNodeCount, a.nodes.size(), b.nodes.size());
  comparison.compare_edges();
  comparison.compare_allocations();
  comparison.compare(Part::kAllocationCount, a.allocations.size(), b.allocations.size());
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
  return first_difference(a, b).has_value() ? differences(a, b, match_nodes(a, b)) : Differences();
}

Differences differences(const GraphIr& a, const GraphIr& b, const std::vector<std::uint32_t>& matches) {
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
  comparison.compare_body_counts(b);
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
