#include "cgrt/graph/graph_state.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/keep.h"

namespace cgrt::internal {

GraphOwner::~GraphOwner() {
  if (graph != nullptr) driver::destroy_graph(graph);
}

GraphState::~GraphState() {
  if (is_owned && owner == nullptr && handle != nullptr) driver::destroy_graph(handle);
}

absl::Status GraphState::complete_and_note_scope() {
  CGRT_RETURN_IF_ERROR(knowledge.complete(handle));
  if (is_scope_noted()) return absl::OkStatus();
  return driver::to_status(internal::note_scope(handle, scope_runs, scope_id), "cuGraphGetNodes");
}

void GraphState::move_into(GraphState& parent) {
  if (parent.owner == nullptr) parent.owner = std::make_shared<GraphOwner>(parent.is_owned ? parent.handle : nullptr);
  if (owner == nullptr) {
    owner = parent.owner;
  } else {  // shared with what was moved in here: that goes along
    owner->graph = nullptr;
    owner->outer = parent.owner;
  }
}

CUgraph GraphState::release() {
  if (is_body) return nullptr;
  is_owned = false;
  if (owner != nullptr) owner->graph = nullptr;
  return handle;
}

bool GraphState::contains(const GraphState& other) const {
  const auto has_other = [&](const std::shared_ptr<GraphState>& inside) { return inside->contains(other); };
  return handle == other.handle ||
         std::any_of(children.begin(), children.end(), [&](const Child& child) { return has_other(child.state); }) ||
         std::any_of(conditionals.begin(), conditionals.end(), [&](const ConditionalNode& node) {
           return std::any_of(node.bodies.begin(), node.bodies.end(), has_other);
         });
}

namespace {

// All graphs inside of a graph's nodes, or of the one at `position`; not those inside of these.
std::vector<GraphState*> insides_of(const GraphState& state, std::optional<std::size_t> position = std::nullopt) {
  const auto is_meant = [&](std::size_t at) { return !position.has_value() || *position == at; };
  std::vector<GraphState*> insides;
  for (const GraphState::Child& child : state.children) {
    if (is_meant(child.position)) insides.push_back(child.state.get());
  }
  for (const GraphState::ConditionalNode& node : state.conditionals) {
    if (!is_meant(node.position)) continue;
    for (const std::shared_ptr<GraphState>& body : node.bodies) insides.push_back(body.get());
  }
  return insides;
}

std::uint64_t edits_inside(const GraphState& inside) { return inside.added + inside.edits_of(SIZE_MAX); }

// Of a driver graph that is gone with the node that it was in.
void forget(GraphState& state) {
  state.handle = nullptr;
  ++state.edits;
  state.is_owned = false;
  state.owner = nullptr;
  for (GraphState* inside : insides_of(state)) forget(*inside);
}

template <class Node>
void take_out(std::vector<Node>& nodes, std::size_t position) {
  std::erase_if(nodes, [&](const Node& node) { return node.position == position; });
  for (Node& node : nodes) node.position -= node.position > position ? 1 : 0;
}

}  // namespace

std::uint64_t GraphState::edits_of(std::size_t node_count) const {
  std::uint64_t count = edits;
  for (const Child& child : children) {
    if (child.position < node_count) count += edits_inside(*child.state);
  }
  for (const ConditionalNode& node : conditionals) {
    if (node.position >= node_count) continue;
    for (const std::shared_ptr<GraphState>& body : node.bodies) count += edits_inside(*body);
  }
  return count;
}

absl::Status GraphState::prepare_insides(std::size_t position) {
  std::vector<GraphState*> insides = insides_of(*this, position);
  while (!insides.empty()) {
    GraphState* const inside = insides.back();
    insides.pop_back();
    CGRT_RETURN_IF_ERROR(inside->prepare());
    const std::vector<GraphState*> more = insides_of(*inside);
    insides.insert(insides.end(), more.begin(), more.end());
  }
  return absl::OkStatus();
}

void GraphState::note_removed(std::size_t position) {
  knowledge.remove(position);
  ++edits;
  for (GraphState* inside : insides_of(*this, position)) {
    edits += edits_inside(*inside);
    forget(*inside);
  }
  take_out(children, position);
  take_out(conditionals, position);
  for (ScopeRun& run : scope_runs) run.first_node -= run.first_node > position ? 1 : 0;
  for (std::size_t i = 1; i < scope_runs.size();) {  // of two that begin at one node, the first has none
    if (scope_runs[i].first_node == scope_runs[i - 1].first_node) {
      scope_runs.erase(scope_runs.begin() + static_cast<std::ptrdiff_t>(i - 1));
    } else {
      ++i;
    }
  }
}

void GraphState::note_edges_replaced() {
  ++edits;
  variants.clear();
  for (GraphState* inside : insides_of(*this)) inside->note_edges_replaced();
}

bool has_conditionals(const GraphState& state) {
  return !state.conditionals.empty() ||
         std::any_of(state.children.begin(), state.children.end(),
                     [](const GraphState::Child& child) { return has_conditionals(*child.state); });
}

bool has_rebindable(const GraphState& state) {
  return state.has_rebindable ||
         std::any_of(state.children.begin(), state.children.end(),
                     [](const GraphState::Child& child) { return has_rebindable(*child.state); });
}

absl::Status add_edges_to(CUgraphNode node, Edges& edges) {
  constexpr std::size_t kGuess = 8;
  const std::size_t before = edges.from.size();
  std::size_t room = kGuess, count = 0;
  const auto ask = [&] {
    count = room;
    edges.from.resize(before + room);
    edges.data.resize(before + room);
    // Without the edge data the driver refuses to list programmatic edges.
    return driver::to_status(
        driver::api().GraphNodeGetDependencies(node, edges.from.data() + before, edges.data.data() + before, &count),
        "cuGraphNodeGetDependencies");
  };
  CGRT_RETURN_IF_ERROR(ask());
  if (count == room) {  // and maybe more
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetDependencies(node, nullptr, nullptr, &room),
                                           "cuGraphNodeGetDependencies"));
    CGRT_RETURN_IF_ERROR(ask());
  }
  edges.from.resize(before + count);
  edges.data.resize(before + count);
  edges.to.resize(before + count, node);
  return absl::OkStatus();
}

absl::StatusOr<Edges> edges_of(const std::vector<CUgraphNode>& nodes) {
  Edges edges;
  for (CUgraphNode node : nodes) CGRT_RETURN_IF_ERROR(add_edges_to(node, edges));
  return edges;
}

absl::StatusOr<std::size_t> count_nodes(CUgraph graph) {
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes"));
  return count;
}

absl::StatusOr<std::vector<CUgraphNode>> nodes_of(CUgraph graph) {
  CGRT_ASSIGN_OR_RETURN(std::size_t count, count_nodes(graph));
  std::vector<CUgraphNode> nodes(count);
  if (count == 0) return nodes;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes"));
  return nodes;
}

absl::StatusOr<CUgraph> graph_inside(CUgraphNode child) {
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphChildGraphNodeGetGraph(child, &graph), "cuGraphChildGraphNodeGetGraph"));
  return graph;
}

absl::StatusOr<std::shared_ptr<GraphState>> copy_state(const GraphState& original, CUgraph copy, bool is_owned) {
  auto state = std::make_shared<GraphState>(copy, original.context);
  state->is_owned = false;  // while this may fail, the caller's
  state->scope_id = original.scope_id;
  state->scope_runs = original.scope_runs;
  state->has_alternatives = original.has_alternatives;
  state->kept = original.kept;
  std::vector<CUgraphNode> nodes;
  if (!original.knowledge.is_empty() || !original.children.empty()) {
    CGRT_ASSIGN_OR_RETURN(nodes, nodes_of(copy));
  }
  for (CUgraphNode node : original.left_out_at_first) {
    CUgraphNode left_out = nullptr;
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphNodeFindInClone(&left_out, node, copy), "cuGraphNodeFindInClone"));
    state->left_out_at_first.push_back(left_out);
  }
  CGRT_RETURN_IF_ERROR(state->knowledge.know_as(original.knowledge, nodes));
  for (const GraphState::Child& child : original.children) {
    const CUgraphNode node = nodes[child.position];
    CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
    CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphState> inner, copy_state(*child.state, inside, false));
    state->children.push_back({child.position, node, std::move(inner)});
  }
  state->is_owned = is_owned;
  return state;
}

absl::StatusOr<std::shared_ptr<GraphState>> clone_graph(const GraphState& original) {
  CUgraph handle = nullptr;
  if (const CUresult result = driver::api().GraphClone(&handle, original.handle); result != CUDA_SUCCESS) {
    const absl::Status failure = driver::to_status(result, "cuGraphClone");
    const std::string node = what_forbids_copies(original.handle);
    if (node.empty()) return failure;
    return driver::annotate(failure,
                            absl::StrCat("Because of ", node, " this graph can have no clone: build it again"));
  }
  absl::StatusOr<std::shared_ptr<GraphState>> copy = copy_state(original, handle, true);
  if (!copy.ok()) {
    driver::destroy_graph(handle);
    return copy.status();
  }
  for (const std::shared_ptr<const void>& library : libraries_lost_by_copy(original)) {
    CGRT_RETURN_IF_ERROR(keep_in_graph(handle, library));
  }
  return copy;
}

absl::Status keep(const GraphState& state, std::shared_ptr<const void> resource) {
  const std::shared_ptr<const void> until_unlocked = resource;  // what it owns may call this library when it dies
  const std::unique_lock beside_no_first_update = hold_completion();
  for (const GraphState::Variant& variant : state.variants) {
    CGRT_RETURN_IF_ERROR(keep_in_graph(variant.state->handle, resource));
  }
  return keep_in_graph(state.handle, std::move(resource));
}

CUgraph outermost(const GraphState& state) {
  for (const GraphOwner* owner = state.owner.get(); owner != nullptr; owner = owner->outer.get()) {
    if (owner->graph != nullptr) return owner->graph;
  }
  return state.handle;
}

std::vector<std::shared_ptr<const void>> libraries_in(const GraphState& state) {
  std::vector<std::shared_ptr<const void>> libraries = state.kept;
  for (const GraphState* inside : insides_of(state)) {
    for (std::shared_ptr<const void>& library : libraries_in(*inside)) {
      if (std::find(libraries.begin(), libraries.end(), library) == libraries.end()) {
        libraries.push_back(std::move(library));
      }
    }
  }
  return libraries;
}

std::vector<std::shared_ptr<const void>> libraries_lost_by_copy(const GraphState& state) {
  return outermost(state) == state.handle ? std::vector<std::shared_ptr<const void>>() : libraries_in(state);
}

}  // namespace cgrt::internal
