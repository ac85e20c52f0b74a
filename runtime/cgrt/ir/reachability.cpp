#include "cgrt/ir/reachability.h"

#include <algorithm>
#include <array>

#include "cgrt/ir/analysis.h"

namespace cgrt::ir {
namespace {

constexpr std::size_t kStarts = 512;  // of one pass: a cache line for each node
using Bits = std::array<std::uint64_t, kStarts / 64>;

bool is_plain(const Edge& edge) { return edge.type == EdgeType::kFull && edge.from_port == 0; }

bool is_first_of(const Edge& edge, Paths paths) {
  return paths == Paths::kWaiting ? waits_for_end(edge) : is_plain(edge);
}

}  // namespace

bool waits_for_end(const Edge& edge) { return edge.type == EdgeType::kProgrammatic || edge.from_port == 0; }

Reachability::Reachability(const GraphIr& graph, std::uint64_t max_steps) : graph_(graph), max_steps_(max_steps) {
  find_order();
  const std::size_t count = graph.nodes.size();
  first_before_.resize(count + 1);
  for (const Edge& edge : graph.edges) ++first_before_[positions_[edge.to] + 1];
  for (std::size_t n = 0; n < count; ++n) first_before_[n + 1] += first_before_[n];
  before_.resize(graph.edges.size());
  std::vector<std::size_t> next(first_before_.begin(), first_before_.end() - 1);
  for (Edge edge : graph.edges) {
    edge.from = positions_[edge.from];
    edge.to = positions_[edge.to];
    before_[next[edge.to]++] = edge;
  }
  levels_.resize(count);
  for (const std::uint32_t node : order_) {
    const std::size_t at = positions_[node];
    for (std::size_t i = first_before_[at]; i < first_before_[at + 1]; ++i) {
      levels_[node] = std::max(levels_[node], levels_[order_[before_[i].from]] + 1);
    }
  }
}

// The topological order of each body, those of a node's bodies at once behind the node.
void Reachability::find_order() {
  const std::size_t count = graph_.nodes.size(), bodies = graph_.bodies.size() + 1;
  std::vector<std::vector<std::uint32_t>> of_body(bodies);
  if (const auto order = topological_order(graph_); order.has_value()) {
    for (const std::uint32_t node : *order) of_body[graph_.nodes[node].body].push_back(node);
  }
  bodies_.resize(bodies);
  std::vector<std::vector<std::uint32_t>> inside(count);
  for (std::uint32_t body = 1; body < bodies; ++body) {
    const std::uint32_t owner = graph_.bodies[body - 1].owner;
    inside[owner].push_back(body);
    // Jumps lengthen with the depth so that any depth is a logarithm of steps away: the jump of the parent's jump where
    // the last two are of one length.
    const std::uint32_t parent = graph_.nodes[owner].body, jump = bodies_[parent].jump;
    const std::uint32_t first = bodies_[parent].depth - bodies_[jump].depth;
    const std::uint32_t second = bodies_[jump].depth - bodies_[bodies_[jump].jump].depth;
    bodies_[body] = {parent, first == second ? bodies_[jump].jump : parent, bodies_[parent].depth + 1};
  }

  positions_.resize(count);
  std::vector<std::uint32_t> todo(of_body[0].rbegin(), of_body[0].rend());
  while (!todo.empty()) {
    const std::uint32_t node = todo.back();
    todo.pop_back();
    positions_[node] = static_cast<std::uint32_t>(order_.size());
    order_.push_back(node);
    for (auto body = inside[node].rbegin(); body != inside[node].rend(); ++body) {
      todo.insert(todo.end(), of_body[*body].rbegin(), of_body[*body].rend());
    }
  }
}

bool Reachability::has_edge(NodePair pair, Paths paths) const {
  auto edge = std::lower_bound(graph_.edges.begin(), graph_.edges.end(), Edge{.from = pair.from, .to = pair.to});
  for (; edge != graph_.edges.end() && edge->from == pair.from && edge->to == pair.to; ++edge) {
    if (is_first_of(*edge, paths)) return true;
  }
  return false;
}

std::vector<Reach> Reachability::ask(std::span<const NodePair> pairs, Paths paths) {
  std::vector<Reach> answers(pairs.size(), Reach::kNone);
  std::vector<Step> left;
  for (std::uint32_t i = 0; i < pairs.size(); ++i) {
    const NodePair& pair = pairs[i];
    if (levels_[pair.from] >= levels_[pair.to] || graph_.nodes[pair.from].body != graph_.nodes[pair.to].body) continue;
    if (paths != Paths::kIndirectFull && has_edge(pair, paths)) {
      answers[i] = Reach::kYes;
    } else if (levels_[pair.from] + 1 < levels_[pair.to]) {
      left.push_back({positions_[pair.from], positions_[pair.to], i});
    }
  }
  std::sort(left.begin(), left.end(), [](const Step& a, const Step& b) { return a.start < b.start; });
  for (std::size_t begin = 0, end = 0; begin < left.size(); begin = end) {
    std::size_t starts = 0;
    for (end = begin; end < left.size(); ++end) {
      const bool is_new = end == begin || left[end].start != left[end - 1].start;
      if (is_new && starts++ == kStarts) break;
    }
    answer(std::span(left).subspan(begin, end - begin), paths, answers);
  }
  return answers;
}

void Reachability::answer(std::span<const Step> batch, Paths paths, std::vector<Reach>& answers) {
  const std::size_t first = batch.front().start;
  std::size_t last = 0;
  for (const Step& step : batch) last = std::max<std::size_t>(last, step.end);
  const std::uint64_t cost = last - first + first_before_[last + 1] - first_before_[first];
  if (cost > max_steps_ - std::min(steps_, max_steps_)) {
    for (const Step& step : batch) answers[step.pair] = Reach::kNotLookedAt;
    return;
  }
  steps_ += cost;

  // Which starts lead to a node, and which of them in two edges or more. Starts are numbered as they come.
  std::vector<Bits> reached(last - first + 1), by_more(paths == Paths::kIndirectFull ? reached.size() : 0);
  std::vector<std::uint32_t> numbers(reached.size(), kStarts);
  std::uint32_t starts = 0;
  for (const Step& step : batch) {
    if (numbers[step.start - first] == kStarts) numbers[step.start - first] = starts++;
  }
  for (std::size_t at = first + 1; at <= last; ++at) {
    Bits& bits = reached[at - first];
    for (std::size_t i = first_before_[at]; i < first_before_[at + 1]; ++i) {
      const Edge& edge = before_[i];
      if (edge.from < first || (paths == Paths::kIndirectFull && !is_plain(edge))) continue;
      const Bits& other = reached[edge.from - first];
      for (std::size_t word = 0; word < bits.size(); ++word) bits[word] |= other[word];
      if (!by_more.empty()) {
        for (std::size_t word = 0; word < bits.size(); ++word) by_more[at - first][word] |= other[word];
      }
      const std::uint32_t number = numbers[edge.from - first];
      if (number != kStarts && is_first_of(edge, paths)) bits[number / 64] |= std::uint64_t{1} << number % 64;
    }
  }
  for (const Step& step : batch) {
    const std::uint32_t number = numbers[step.start - first];
    const Bits& bits = (by_more.empty() ? reached : by_more)[step.end - first];
    if ((bits[number / 64] >> number % 64 & 1) != 0) answers[step.pair] = Reach::kYes;
  }
}

// The body at this depth that `body` is in.
std::uint32_t Reachability::around(std::uint32_t body, std::uint32_t depth) const {
  while (bodies_[body].depth > depth) {
    const Nesting& nesting = bodies_[body];
    body = bodies_[nesting.jump].depth >= depth ? nesting.jump : nesting.parent;
  }
  return body;
}

NodePair Reachability::in_common_body(NodePair pair) const {
  const std::uint32_t body_a = graph_.nodes[pair.from].body, body_b = graph_.nodes[pair.to].body;
  const std::uint32_t depth = std::min(bodies_[body_a].depth, bodies_[body_b].depth);
  std::uint32_t a = around(body_a, depth), b = around(body_b, depth);
  while (a != b) {
    const bool jumps = bodies_[a].jump != bodies_[b].jump;
    a = jumps ? bodies_[a].jump : bodies_[a].parent;
    b = jumps ? bodies_[b].jump : bodies_[b].parent;
  }
  const auto node_in = [&](std::uint32_t node, std::uint32_t body) {
    return body == a ? node : graph_.bodies[around(body, bodies_[a].depth + 1) - 1].owner;
  };
  return {node_in(pair.from, body_a), node_in(pair.to, body_b)};
}

}  // namespace cgrt::ir
