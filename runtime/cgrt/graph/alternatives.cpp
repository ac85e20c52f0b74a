#include "cgrt/graph/alternatives.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/align.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/graph/walk.h"
#include "cgrt/stream/keep.h"

namespace cgrt {
namespace {

using internal::GraphState;

// What nodes have in common that can take each other's place.
struct Class {
  CUgraphNodeParams params;     // of one of them
  LaunchAttributes attributes;  // of kernels, in normal form
  internal::OperandPlaces places;
};

bool is_same(const Class& a, const Class& b) {
  if (a.params.type != b.params.type) return false;
  if (a.params.type != CU_GRAPH_NODE_TYPE_KERNEL)
    return a.places == b.places && internal::is_same_shape(a.params, b.params);
  const auto& x = a.params.kernel;
  const auto& y = b.params.kernel;
  return x.func == y.func && x.blockDimX == y.blockDimX && x.blockDimY == y.blockDimY && x.blockDimZ == y.blockDimZ &&
         x.sharedMemBytes == y.sharedMemBytes && internal::are_interchangeable(a.attributes, b.attributes);
}

bool can_be_alternative(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return true;
    default: return false;
  }
}

struct Item {
  std::size_t kind;  // the number of its class
  CUgraphNode node;  // one of a step's
  std::string scope;
  std::vector<std::size_t> steps;  // that have it, ascending
};

using Numbers = std::vector<std::size_t>;  // of items, ascending

class Row {
 public:
  explicit Row(CUcontext context) : context_(context) {}

  // Puts in what the step has and the row has not.
  absl::Status add_step(const GraphState& step) {
    CGRT_ASSIGN_OR_RETURN(std::vector<Item> items, items_of(step));
    const auto kinds = [](const std::vector<Item>& of) {
      std::vector<std::size_t> out(of.size());
      std::transform(of.begin(), of.end(), out.begin(), [](const Item& item) { return item.kind; });
      return out;
    };
    std::vector<Item> merged;
    std::size_t i = 0, j = 0;
    const auto take = [&](std::vector<Item>& from, std::size_t& at, std::size_t until) {
      while (at < until) merged.push_back(std::move(from[at++]));
    };
    for (const auto& [ours, theirs] : internal::align(kinds(items_), kinds(items))) {
      take(items_, i, ours);
      take(items, j, theirs);
      merged.push_back(std::move(items_[i++]));
      merged.back().steps.push_back(step_count_);
      ++j;
    }
    take(items_, i, items_.size());
    take(items, j, items.size());
    items_ = std::move(merged);
    ++step_count_;
    return absl::OkStatus();
  }

  Numbers all() const {
    Numbers numbers(items_.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return numbers;
  }

  // For each set of kernels that only the host can switch and that some step has, all items but those of other sets.
  // Empty: the steps do not differ in these.
  std::vector<Numbers> variants() const {
    const auto is_switched_by_host = [&](const Item& item) {
      return item.steps.size() != step_count_ && internal::is_changed_by_host(classes_[item.kind].attributes);
    };
    std::set<Numbers> distinct;
    for (std::size_t step = 0; step < step_count_; ++step) {
      Numbers has;
      for (std::size_t i = 0; i < items_.size(); ++i) {
        const std::vector<std::size_t>& steps = items_[i].steps;
        if (!is_switched_by_host(items_[i]) || std::binary_search(steps.begin(), steps.end(), step)) has.push_back(i);
      }
      distinct.insert(std::move(has));
    }
    return distinct.size() > 1 ? std::vector<Numbers>(distinct.begin(), distinct.end()) : std::vector<Numbers>();
  }

  absl::Status build(const Numbers& numbers, GraphState& graph) const {
    internal::Edges before;
    for (const std::size_t number : numbers) {
      const Item& item = items_[number];
      const CUgraphNodeType type = classes_[item.kind].params.type;
      if (!internal::can_be_left_out(type) && item.steps.size() != step_count_) {
        return absl::FailedPreconditionError(
            absl::StrCat("The ", describe_node(item.node), " is in ", item.steps.size(), " of ", step_count_,
                         " steps, and only kernels and copies can be left out: put it into all of them, in the same "
                         "place."));
      }
      CGRT_ASSIGN_OR_RETURN(const CUgraphNode node, internal::copy_node(item.node, before, graph.context, graph));
      if (graph.scope_runs.empty() ? !item.scope.empty() : graph.scope_runs.back().scope != item.scope) {
        CGRT_ASSIGN_OR_RETURN(const std::size_t count, internal::count_nodes(graph.handle));
        graph.scope_runs.push_back({count - 1, item.scope});
      }
      if (item.steps.front() != 0) graph.left_out_at_first.push_back(node);
      before = {{node}, {}, {CUgraphEdgeData{}}};
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<Item>> items_of(const GraphState& step) {
    CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(step.handle, &step));
    std::vector<Item> items;
    CGRT_RETURN_IF_ERROR(add_items(walk, 0, items));
    return items;
  }

  // Those inside child graphs where these stand.
  absl::Status add_items(const internal::Walk& walk, std::uint32_t graph, std::vector<Item>& items) {
    CUgraphNode before = nullptr;
    for (std::uint32_t id = walk.graphs[graph].first_node; id < walk.nodes.size(); ++id) {
      const internal::WalkedNode& node = walk.nodes[id];
      if (node.graph != graph) break;
      CGRT_RETURN_IF_ERROR(check_order(node.handle, before));
      before = node.handle;
      if (node.type == CU_GRAPH_NODE_TYPE_EMPTY) continue;
      if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CGRT_RETURN_IF_ERROR(add_items(walk, node.child, items));
        continue;
      }
      if (!can_be_alternative(node.type)) {
        return absl::UnimplementedError(absl::StrCat(
            "Step ", step_count_, " has a ", describe_node(node.handle),
            ", and alternatives are made of what can be copied into one graph. Let the steps have their memory from a "
            "GraphPool, or make an executable of each."));
      }
      CGRT_ASSIGN_OR_RETURN(const std::size_t kind, kind_of(node));
      items.push_back({kind, node.handle, walk.scope_of(node), {step_count_}});
    }
    return absl::OkStatus();
  }

  // A row has one order: a step that leaves some of it open would be slowed down without a word.
  absl::Status check_order(CUgraphNode node, CUgraphNode before) {
    edges_ = {};
    CGRT_RETURN_IF_ERROR(internal::add_edges_to(node, edges_));
    const bool is_behind = std::find(edges_.from.begin(), edges_.from.end(), before) != edges_.from.end();
    if (before == nullptr ? edges_.from.empty() : is_behind) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("Step ", step_count_, " forks: its ", describe_node(node), " does not wait for the ",
                     describe_node(before), " before it. The nodes of a graph of alternatives stand in one row."));
  }

  absl::StatusOr<std::size_t> kind_of(const internal::WalkedNode& node) {
    Class one{};
    CGRT_RETURN_IF_ERROR(internal::read_params(node.handle, node.type, context_, one.params));
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(one.attributes, internal::attributes_of(node.handle, asked_));
    }
    CGRT_ASSIGN_OR_RETURN(one.places, internal::places_of(one.params));
    const auto found =
        std::find_if(classes_.begin(), classes_.end(), [&](const Class& other) { return is_same(one, other); });
    if (found != classes_.end()) return static_cast<std::size_t>(found - classes_.begin());
    classes_.push_back(one);
    return classes_.size() - 1;
  }

  CUcontext context_;
  std::size_t step_count_ = 0;
  std::vector<Class> classes_;
  std::vector<Item> items_;
  internal::AskedAttributes asked_;
  internal::Edges edges_;  // of one node
};

}  // namespace

absl::StatusOr<Graph> build_alternatives(ContextRef context, std::size_t steps,
                                         absl::FunctionRef<absl::Status(LaunchTarget, std::size_t)> step) {
  if (steps == 0) return absl::InvalidArgumentError("build_alternatives: there is no step.");
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(context));
  GraphState& state = *graph.state();
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(state.context));
  Row row(state.context);
  std::vector<Graph> recorded;  // whose nodes build() copies
  std::vector<bool> keeping;    // by these
  for (std::size_t i = 0; i < steps; ++i) {
    CGRT_ASSIGN_OR_RETURN(Graph one, Graph::create(context));
    Cursor cursor = one.cursor();
    const std::uint64_t kept_before = internal::kept_count.load(std::memory_order_relaxed);
    CGRT_RETURN_IF_ERROR(step(cursor, i));
    CGRT_RETURN_IF_ERROR(row.add_step(*one.state()));
    const bool may_keep =
        !one.state()->children.empty() || internal::kept_count.load(std::memory_order_relaxed) != kept_before;
    keeping.push_back(may_keep);
    recorded.push_back(std::move(one));
  }
  const auto build = [&](const Numbers& numbers, GraphState& into) -> absl::Status {
    for (std::size_t i = 0; i < steps; ++i) {
      if (keeping[i]) CGRT_RETURN_IF_ERROR(internal::keep_in_graph(into.handle, recorded[i].state()));
    }
    CGRT_RETURN_IF_ERROR(row.build(numbers, into));
    into.knowledge.know_nothing();
    into.has_alternatives = true;
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(build(row.all(), state));
  for (const Numbers& numbers : row.variants()) {
    CGRT_ASSIGN_OR_RETURN(const Graph variant, Graph::create(context));
    CGRT_RETURN_IF_ERROR(build(numbers, *variant.state()));
    state.variants.push_back({variant.state(), {numbers.begin(), numbers.end()}});
  }
  return graph;
}

}  // namespace cgrt
