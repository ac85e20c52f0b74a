#include "cgrt/inspect/budget.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/analysis.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using Values = std::map<std::string, std::uint64_t, std::less<>>;

// In the order of Comparison.
constexpr const char* kOperators[] = {"<", "<=", "=", ">=", ">"};

bool holds(std::uint64_t value, const Budget& budget) {
  switch (budget.comparison) {
    case Comparison::kLess: return value < budget.limit;
    case Comparison::kLessOrEqual: return value <= budget.limit;
    case Comparison::kEqual: return value == budget.limit;
    case Comparison::kGreaterOrEqual: return value >= budget.limit;
    case Comparison::kGreater: break;
  }
  return value > budget.limit;
}

std::string name_of(ir::NodeKind kind) { return absl::StrReplaceAll(ir::to_string(kind), {{" ", "_"}}); }

Values values_of(const ir::GraphIr& graph) {
  const ir::Shape shape = ir::shape_of(graph);
  Values values = {{"nodes", graph.nodes.size()}, {"edges", graph.edges.size()},
                   {"programmatic_edges", 0},     {"depth", shape.depth},
                   {"width", shape.width},        {"roots", shape.roots},
                   {"leaves", shape.leaves},      {"bodies", graph.bodies.size()},
                   {"copied_bytes", 0},           {"set_bytes", 0},
                   {"allocated_bytes", 0},        {"allocations", graph.allocations.size()}};
  for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(ir::NodeKind::kConditional); ++kind) {
    values[name_of(static_cast<ir::NodeKind>(kind))] = 0;
  }
  for (const ir::Edge& edge : graph.edges) values["programmatic_edges"] += edge.type != ir::EdgeType::kFull ? 1 : 0;
  const auto add = [&](const char* name, std::uint64_t bytes) { values[name] = saturating_sum(values[name], bytes); };
  for (const ir::Node& node : graph.nodes) {
    ++values[name_of(node.kind)];
    if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
      add("copied_bytes", saturating_product(saturating_product(copy->width_bytes, copy->height), copy->depth));
    } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
      add("set_bytes", saturating_product(saturating_product(set->width, set->element_bytes), set->height));
    } else if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
      add("allocated_bytes", alloc->bytes);
    }
  }
  return values;
}

// Reads the text from the front; columns count from 1.
class BudgetParser {
 public:
  explicit BudgetParser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Budget>> parse() {
    const std::vector<std::string> names = budget_names();
    std::vector<Budget> budgets;
    do {
      Budget& budget = budgets.emplace_back();
      skip_spaces();
      const std::size_t begin = at_;
      while (at_ < text_.size() && (text_[at_] == '_' || (text_[at_] >= 'a' && text_[at_] <= 'z'))) ++at_;
      budget.name = text_.substr(begin, at_ - begin);
      if (std::find(names.begin(), names.end(), budget.name) == names.end()) {
        at_ = begin;
        return expected(absl::StrCat("one of ", absl::StrJoin(names, ", ")));
      }
      skip_spaces();
      CGRT_ASSIGN_OR_RETURN(budget.comparison, comparison());
      skip_spaces();
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), budget.limit);
      if (error != std::errc()) return expected("a number below 2^64");
      at_ = static_cast<std::size_t>(end - text_.data());
      skip_spaces();
    } while (take(","));
    if (at_ != text_.size()) return expected("\",\"");
    return budgets;
  }

 private:
  absl::StatusOr<Comparison> comparison() {
    for (const Comparison two : {Comparison::kLessOrEqual, Comparison::kGreaterOrEqual, Comparison::kLess,
                                 Comparison::kGreater, Comparison::kEqual}) {
      if (take(kOperators[static_cast<std::size_t>(two)])) return two;
    }
    return expected("one of <, <=, =, >=, >");
  }

  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  absl::Status expected(const std::string& what) const {
    const std::string_view rest = text_.substr(at_, 20);
    return absl::InvalidArgumentError(absl::StrCat(
        "column ", at_ + 1, ": expected ", what, ", found ",
        rest.empty() ? "the end" : absl::StrCat("\"", ir::printable(rest), rest.size() == 20 ? "..." : "", "\""), "."));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> budget_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_of({})) names.push_back(name);
  return names;
}

absl::StatusOr<std::vector<Budget>> parse_budgets(std::string_view text) { return BudgetParser(text).parse(); }

std::vector<std::string> broken_budgets(const ir::GraphIr& graph, const std::vector<Budget>& budgets) {
  const Values values = values_of(graph);
  std::vector<std::string> broken;
  for (const Budget& budget : budgets) {
    const auto found = values.find(budget.name);
    const std::uint64_t value = found != values.end() ? found->second : 0;
    if (found != values.end() && holds(value, budget)) continue;
    broken.push_back(absl::StrCat(budget.name, " is ", value, ", and is to be ",
                                  kOperators[static_cast<std::size_t>(budget.comparison)], " ", budget.limit, "."));
  }
  return broken;
}

}  // namespace cgrt::inspect
