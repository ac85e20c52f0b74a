#include "cgrt/ir/diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/function_table.h"

namespace cgrt::ir {
namespace {

std::string quoted(const std::string& text) { return absl::StrCat("\"", printable(text), "\""); }

// Compares field after field and stops at the first that differs.
class Comparison {
 public:
  Comparison(const GraphIr& a, const GraphIr& b) : a_(a), b_(b) {
    std::vector<Function> all;
    FunctionTable table(all);
    for (const Function& function : a.functions) functions_a_.push_back(table.add(function));
    for (const Function& function : b.functions) functions_b_.push_back(table.add(function));
  }

  std::optional<Difference> run() {
    const std::size_t common = std::min(a_.nodes.size(), b_.nodes.size());
    for (std::size_t n = 0; n < common && !found_; ++n) compare_node(static_cast<std::uint32_t>(n));
    if (!found_) check("number of nodes", a_.nodes.size(), b_.nodes.size());
    if (!found_) compare_edges();
    if (!found_) compare_allocations();
    if (!found_) compare_bodies();
    if (found_) {
      found_->only_in_a = list_nodes(a_, common);
      found_->only_in_b = list_nodes(b_, common);
    }
    return std::move(found_);
  }

 private:
  void compare_node(std::uint32_t id) {
    const Node& a = a_.nodes[id];
    const Node& b = b_.nodes[id];
    if (a.kind == b.kind && a.device == b.device && a.body == b.body && are_equal(a, b)) return;  // labels cost time

    place_ = absl::StrCat("node ", id);
    if (a.kind != b.kind) return report("kind", to_string(a.kind), to_string(b.kind));
    if (a.params.index() != b.params.index())
      return report("parameters", kParams[a.params.index()], kParams[b.params.index()]);
    place_ = node_label(a_, id);
    if (check("device", a.device, b.device)) return;
    if (check("body", a.body, b.body)) return;
    std::visit([&](const auto& params) { compare(params, std::get<std::decay_t<decltype(params)>>(b.params)); },
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

  void compare(const NoParams&, const NoParams&) {}

  void compare(const KernelParams& a, const KernelParams& b) {
    const std::string &name = function_of(a_, a).name, &other_name = function_of(b_, b).name;
    if (name != other_name) return report("function", quoted(name), quoted(other_name));
    if (a.grid != b.grid) return report("grid", describe(a.grid), describe(b.grid));
    if (a.block != b.block) return report("block", describe(a.block), describe(b.block));
    if (check("shared bytes", a.shared_bytes, b.shared_bytes)) return;
    const std::vector<Argument> arguments = arguments_of(a_, a), others = arguments_of(b_, b);
    if (check("number of arguments", arguments.size(), others.size())) return;
    for (std::size_t i = 0; i < arguments.size() && !found_; ++i) {
      compare_argument(absl::StrCat("argument ", i), arguments[i], others[i]);
    }
    if (!found_) compare_attributes(a.attributes, b.attributes);
    // Only in graphs that are not valid.
    if (!found_ && (a.arguments != b.arguments || a.pointers != b.pointers)) {
      report("bytes that belong to no argument", absl::StrCat(a.arguments.size()), absl::StrCat(b.arguments.size()));
    }
  }

  void compare_attributes(const LaunchAttributes& a, const LaunchAttributes& b) {
    if (a == b) return;
    if (check("cooperative", int{a.cooperative}, int{b.cooperative})) return;
    if (a.cluster != b.cluster) return report("cluster", describe(a.cluster), describe(b.cluster));
    if (a.preferred_cluster != b.preferred_cluster) {
      return report("preferred cluster", describe(a.preferred_cluster), describe(b.preferred_cluster));
    }
    if (a.cluster_scheduling != b.cluster_scheduling) {
      return report("cluster scheduling", to_string(a.cluster_scheduling), to_string(b.cluster_scheduling));
    }
    if (check("priority", a.priority, b.priority)) return;
    if (check("remote memory synchronization domain", int{a.is_remote_domain}, int{b.is_remote_domain})) return;
    if (check("shared carveout percent", a.shared_carveout_percent, b.shared_carveout_percent)) return;
    report("access policy window", describe(a_, a.access_policy), describe(b_, b.access_policy));
  }

  void compare(const EventParams& a, const EventParams& b) { check("event", a.event, b.event); }

  void compare(const ConditionalParams& a, const ConditionalParams& b) {
    if (a.kind != b.kind) return report("conditional kind", to_string(a.kind), to_string(b.kind));
    if (check("conditional handle", a.handle, b.handle)) return;
    const auto value = [](const std::optional<std::uint32_t>& at_launch) {
      return at_launch.has_value() ? absl::StrCat(*at_launch) : std::string("as it was");
    };
    if (a.at_launch != b.at_launch) report("value at launch", value(a.at_launch), value(b.at_launch));
  }

  void compare_argument(const std::string& name, const Argument& a, const Argument& b) {
    if (check(name + " offset", a.parameter.offset, b.parameter.offset)) return;
    if (check(name + " size", a.parameter.size, b.parameter.size)) return;
    const auto [byte_a, byte_b] = std::mismatch(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
    const auto [pointer_a, pointer_b] =
        std::mismatch(a.pointers.begin(), a.pointers.end(), b.pointers.begin(), b.pointers.end());
    const bool are_equal = byte_a == a.bytes.end() && byte_b == b.bytes.end() && pointer_a == a.pointers.end() &&
                           pointer_b == b.pointers.end();
    if (are_equal) return;
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

  void compare(const MemcpyParams& a, const MemcpyParams& b) {
    if (check_pointer("destination", a.destination, b.destination)) return;
    if (check_pointer("source", a.source, b.source)) return;
    if (check("width bytes", a.width_bytes, b.width_bytes)) return;
    if (check("height", a.height, b.height)) return;
    if (check("depth", a.depth, b.depth)) return;
    if (check("destination pitch", a.destination_pitch, b.destination_pitch)) return;
    check("source pitch", a.source_pitch, b.source_pitch);
  }

  void compare(const MemsetParams& a, const MemsetParams& b) {
    if (check_pointer("destination", a.destination, b.destination)) return;
    if (check("value", a.value, b.value)) return;
    if (check("element bytes", a.element_bytes, b.element_bytes)) return;
    if (check("width", a.width, b.width)) return;
    if (check("height", a.height, b.height)) return;
    check("pitch", a.pitch, b.pitch);
  }

  void compare(const MemAllocParams& a, const MemAllocParams& b) {
    if (check("bytes", a.bytes, b.bytes)) return;
    check_pointer("address", a.address, b.address);
  }

  void compare(const MemFreeParams& a, const MemFreeParams& b) { check_pointer("address", a.address, b.address); }

  void compare(const BatchMemOpParams& a, const BatchMemOpParams& b) {
    if (check("number of operations", a.operations.size(), b.operations.size())) return;
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
      if (a.operations[i] == b.operations[i]) continue;
      return report(absl::StrCat("operation ", i), describe(a_, a.operations[i]), describe(b_, b.operations[i]));
    }
  }

  void compare(const SemaphoreParams& a, const SemaphoreParams& b) {
    if (check("number of semaphores", a.semaphores.size(), b.semaphores.size())) return;
    for (std::size_t i = 0; i < a.semaphores.size(); ++i) {
      if (a.semaphores[i] == b.semaphores[i]) continue;
      return report(absl::StrCat("semaphore ", i), describe(a.semaphores[i]), describe(b.semaphores[i]));
    }
  }

  void compare_edges() {
    place_.clear();
    if (a_.edges == b_.edges) return;
    const auto [a, b] = std::mismatch(a_.edges.begin(), a_.edges.end(), b_.edges.begin(), b_.edges.end());
    const std::string none = "no further edge";
    report(absl::StrCat("edge ", a - a_.edges.begin()), a == a_.edges.end() ? none : describe_edge(*a),
           b == b_.edges.end() ? none : describe_edge(*b));
  }

  static std::string describe_edge(const Edge& edge) {
    std::string text = absl::StrCat(edge.from, " -> ", edge.to);
    if (edge.type != EdgeType::kFull) absl::StrAppend(&text, ", ", to_string(edge.type));
    if (edge.from_port != 0 || edge.to_port != 0) {
      absl::StrAppend(&text, ", port ", edge.from_port, " to port ", edge.to_port);
    }
    return text;
  }

  void compare_allocations() {
    const std::size_t common = std::min(a_.allocations.size(), b_.allocations.size());
    for (std::size_t i = 0; i < common; ++i) {
      const Allocation& a = a_.allocations[i];
      const Allocation& b = b_.allocations[i];
      place_ = absl::StrCat("allocation ", i);
      if (a.kind != b.kind) return report("kind", to_string(a.kind), to_string(b.kind));
      if (check("device", a.device, b.device) || check("bytes", a.bytes, b.bytes)) return;
    }
    place_.clear();
    check("number of allocations", a_.allocations.size(), b_.allocations.size());
  }

  // Last: two graphs whose nodes and edges agree differ here only when one inside of them is empty.
  void compare_bodies() {
    const auto owners = [](const GraphIr& graph) {
      std::string text;
      for (const Body& body : graph.bodies) absl::StrAppend(&text, text.empty() ? "" : ", ", body.owner);
      return text.empty() ? std::string("none") : text;
    };
    place_.clear();
    if (a_.bodies != b_.bodies) report("owners of bodies", owners(a_), owners(b_));
  }

  static std::string list_nodes(const GraphIr& graph, std::size_t first) {
    constexpr std::size_t kShown = 8;
    std::string text;
    const std::size_t end = std::min(graph.nodes.size(), first + kShown);
    for (std::size_t n = first; n < end; ++n) {
      absl::StrAppend(&text, n == first ? "" : ", ", node_label(graph, static_cast<std::uint32_t>(n)));
    }
    if (end < graph.nodes.size()) absl::StrAppend(&text, " and ", graph.nodes.size() - end, " more");
    return text;
  }

  template <class Number>
  bool check(const std::string& field, Number a, Number b) {
    if (a == b) return false;
    report(field, absl::StrCat(a), absl::StrCat(b));
    return true;
  }

  bool check_pointer(const std::string& field, const std::optional<Pointer>& a, const std::optional<Pointer>& b) {
    if (a == b) return false;
    report(field, a ? describe(a_, *a) : "array", b ? describe(b_, *b) : "array");
    return true;
  }

  void report(const std::string& field, std::string a, std::string b) {
    found_ = Difference{.where = place_.empty() ? field : absl::StrCat(place_, ": ", field),
                        .a = std::move(a),
                        .b = std::move(b),
                        .only_in_a = {},
                        .only_in_b = {}};
  }

  const GraphIr& a_;
  const GraphIr& b_;
  std::vector<std::uint32_t> functions_a_, functions_b_;  // their numbers in a list of both graphs' functions
  std::string place_;
  std::optional<Difference> found_;
};

}  // namespace

std::optional<Difference> first_difference(const GraphIr& a, const GraphIr& b) { return Comparison(a, b).run(); }

}  // namespace cgrt::ir
