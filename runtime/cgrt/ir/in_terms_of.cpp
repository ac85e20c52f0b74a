#include "cgrt/ir/in_terms_of.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <variant>

#include "cgrt/ir/function_table.h"
#include "cgrt/ir/matching.h"
#include "cgrt/ir/named.h"

namespace cgrt::ir {
namespace {

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

}  // namespace

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

}  // namespace cgrt::ir
