// What a Graph owns, shared with its executables and cursors: their node handles are valid only while the
// definition lives. Internal to graph/ and exec/.
//
//   Graph ──> GraphState ──> driver graph              A child that was moved in keeps its state, under its
//   Cursor ─────^   │ children                         parent's; from then on it keeps the parent's driver
//   GraphExec ──^   └──> GraphState of each child      graph alive, which has its own inside.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/node.h"
#include "cgrt/graph/node_table.h"
#include "cgrt/graph/scope.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"
#include "cgrt/memory/external_semaphore.h"
#include "cgrt/target/capture_context.h"

namespace cgrt::internal {

// Destroys a driver graph when the last GraphState of it and of what was moved into it is gone.
struct GraphOwner {
  explicit GraphOwner(CUgraph graph_) : graph(graph_) {}
  ~GraphOwner();
  GraphOwner(const GraphOwner&) = delete;
  GraphOwner& operator=(const GraphOwner&) = delete;

  CUgraph graph;                      // null: another's by now
  std::shared_ptr<GraphOwner> outer;  // whose it is then
};

struct GraphState {
  // Owns `graph`, which may be set later.
  GraphState(CUgraph graph, CUcontext context_) : handle(graph), context(context_) {}
  ~GraphState();
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;

  // To be called before a node is made.
  absl::Status prepare() {
    return knowledge.is_complete() && is_scope_noted() ? absl::OkStatus() : complete_and_note_scope();
  }
  bool is_scope_noted() const { return current_scope_id() == scope_id; }

  // Leaves the driver graph to `parent`'s, into which it was moved.
  void move_into(GraphState& parent);
  // Leaves it to the caller.
  CUgraph release();
  // The node at `position` is gone, and what was inside of it.
  void note_removed(std::size_t position);
  // Edges are others, here or inside of its nodes.
  void note_edges_replaced();
  // What was edited of the graph's first `node_count` nodes, as an executable has them: here, and inside of them, where
  // nodes that were added count too. Grows with each edit.
  std::uint64_t edits_of(std::size_t node_count) const;
  // prepare() of all that is inside of the node at `position`, to be called before it is removed: executables that were
  // made from a graph inside know its nodes from there.
  absl::Status prepare_insides(std::size_t position);
  // Whether `other` is this graph or inside of it.
  bool contains(const GraphState& other) const;

  // First what each new node looks at.
  CUgraph handle;
  CUcontext context;
  std::uint64_t scope_id = 0;
  NodeKnowledge knowledge;
  std::uint64_t edits = 0;  // nodes removed, edges added, removed and replaced
  std::uint64_t added = 0;  // nodes, by calls of this library

  bool is_owned = true;               // by this or by `owner`; else inside a driver graph that another state owns
  std::shared_ptr<GraphOwner> owner;  // null: this

  std::vector<ScopeRun> scope_runs;

  struct Child {
    std::size_t position;
    CUgraphNode node;
    std::shared_ptr<GraphState> state;
  };
  std::vector<Child> children;  // that this library put in, ascending

  // The driver does not tell these (CUDA 13.0).
  struct ConditionalHandle {
    CUgraphConditionalHandle handle;
    std::optional<unsigned> at_launch;
  };
  std::vector<ConditionalHandle> conditional_handles;
  struct ConditionalNode {
    std::size_t position;
    CUgraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    std::vector<std::shared_ptr<GraphState>> bodies;
  };
  std::vector<ConditionalNode> conditionals;      // ascending
  bool has_rebindable = false;                    // an executable whose nodes are changed on the device
  std::vector<CUgraphNode> patch_nodes;           // that change them: exec/patches.h
  std::vector<std::shared_ptr<const void>> kept;  // libraries of kernels, by the driver graph as well

  // Of a graph that has the nodes of several steps (graph/alternatives.h), those that its first step does not have.
  std::vector<CUgraphNode> left_out_at_first;
  bool has_alternatives = false;
  // Where its steps differ in kernels that only the host can switch, graphs with no such kernel that one of their steps
  // does not have.
  struct Variant {
    std::shared_ptr<GraphState> state;
    std::vector<std::uint32_t> positions;  // in this graph, of its nodes
  };
  std::vector<Variant> variants;
  bool is_body = false;            // of a conditional node
  bool is_in_conditional = false;  // a body, or inside of one

 private:
  [[gnu::cold]] absl::Status complete_and_note_scope();
};

bool has_plain_insides(const GraphState& state);
bool has_conditionals(const GraphState& state);  // also inside of it
bool has_rebindable(const GraphState& state);    // the same
// Whether it is certain that no node has attributes; asks no driver.
inline bool is_known_plain(const GraphState& state) {
  return state.knowledge.is_complete() && state.knowledge.is_empty() &&
         ((state.children.empty() && state.conditionals.empty()) || has_plain_insides(state));
}

absl::StatusOr<std::vector<CUgraphNode>> nodes_of(CUgraph graph);
absl::StatusOr<std::size_t> count_nodes(CUgraph graph);
struct Edges {
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
};
// Asks each of a graph's nodes: cuGraphGetEdges takes the longer for each node the more there are (driver 580: 0.04 us
// of 1,000, 8.9 us of 100,000; a node's dependencies 0.01 and 0.06 us).
absl::StatusOr<Edges> edges_of(const std::vector<CUgraphNode>& nodes);
absl::Status add_edges_to(CUgraphNode node, Edges& edges);  // what one node waits for
absl::StatusOr<CUgraph> graph_inside(CUgraphNode child);

// The state of a copy that the driver made of `original`, whose driver graph is `copy`; owns it when `is_owned`.
absl::StatusOr<std::shared_ptr<GraphState>> copy_state(const GraphState& original, CUgraph copy, bool is_owned);

// See Graph::clone. Without its variants.
absl::StatusOr<std::shared_ptr<GraphState>> clone_graph(const GraphState& original);

// What keeps the code of kernels loaded, in the graph and inside of it.
std::vector<std::shared_ptr<const void>> libraries_in(const GraphState& state);
// The same where the driver's copy of the graph keeps none of it, since the graph around it does.
std::vector<std::shared_ptr<const void>> libraries_lost_by_copy(const GraphState& state);

// The driver's form of node parameters, for adding and for setting; `params` is zero before. Nothing
// is copied: `launch` and its arguments must outlive the call that takes the result, and that is made while `out`
// lives.
struct KernelNodeParams {
  CUDA_KERNEL_NODE_PARAMS driver{};
  const driver::ResolvedFunction* function = nullptr;
  std::optional<ScopedContext> current;  // where the call needs one
};
absl::Status set_kernel_params(KernelNodeParams& out, CUcontext context, const KernelLaunch& launch);
// The driver graph that `state` is, or is inside of, and that executables are made from.
CUgraph outermost(const GraphState& state);
// See Graph. Also in its variants, whose executables are others.
absl::Status keep(const GraphState& state, std::shared_ptr<const void> resource);
// Before a kernel is added: keeps what its code is in, if that was loaded at run time.
absl::Status keep_library(GraphState& state, std::shared_ptr<const void> library);
// The value of an argument, given its position and its offset, as the driver hands a node's parameters out (in
// `kernelParams` or in `extra`); null: it does not.
const void* argument_of(void** values, void** extra, std::size_t index, std::size_t offset);
void set_copy_params(CUgraphNodeParams& params, CUcontext context, const CopyParams& copy);
void set_fill_params(CUgraphNodeParams& params, CUcontext context, const FillParams& fill);
void set_host_params(CUgraphNodeParams& params, const HostParams& host);
void set_record_params(CUgraphNodeParams& params, EventRef event);
void set_wait_params(CUgraphNodeParams& params, EventRef event);
// `operations` must outlive the call that takes the result.
void set_memory_op_params(CUgraphNodeParams& params, CUcontext context,
                          std::vector<CUstreamBatchMemOpParams>& operations);
// The same of `arrays`.
void set_semaphore_params(CUgraphNodeParams& params, SemaphoreAction action, SemaphoreArrays& arrays);

// Dependencies as the driver takes them. `edges` stays empty while all are full.
struct DriverDependencies {
  explicit DriverDependencies(Dependencies dependencies) : nodes(dependencies.size()) {
    for (std::size_t i = 0; i < dependencies.size(); ++i) {
      nodes[i] = dependencies[i].node.get();
      if (dependencies[i].kind == EdgeKind::kFull) continue;
      edges.resize(dependencies.size(), CUgraphEdgeData{});
      if (dependencies[i].kind == EdgeKind::kProgrammatic) {
        edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        edges[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
      } else {
        edges[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
      }
    }
  }
  const CUgraphEdgeData* edge_data() const { return edges.empty() ? nullptr : edges.data(); }

  absl::InlinedVector<CUgraphNode, 8> nodes;
  absl::InlinedVector<CUgraphEdgeData, 8> edges;
};

inline EdgeKind edge_kind(const CUgraphEdgeData& edge) {
  if (edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) return EdgeKind::kProgrammatic;
  return edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER ? EdgeKind::kLaunchCompletion : EdgeKind::kFull;
}

// What is wrong with the graph or the dependencies of a node that the driver refused, as a sentence; empty when nothing
// is.
[[gnu::cold]] std::string broken_dependency(const GraphState& state, Dependencies dependencies);

absl::StatusOr<KernelNode> add_kernel(GraphState& state, Dependencies dependencies, const KernelLaunch& launch);
absl::StatusOr<MemcpyNode> add_copy(GraphState& state, Dependencies dependencies, const CopyParams& copy);
absl::StatusOr<MemsetNode> add_fill(GraphState& state, Dependencies dependencies, const FillParams& fill);
absl::StatusOr<EmptyNode> add_empty(GraphState& state, Dependencies dependencies);
absl::StatusOr<HostNode> add_host(GraphState& state, Dependencies dependencies, const HostParams& host);
absl::StatusOr<EventRecordNode> add_event_record(GraphState& state, Dependencies dependencies, EventRef event);
absl::StatusOr<EventWaitNode> add_event_wait(GraphState& state, Dependencies dependencies, EventRef event);

absl::StatusOr<GraphAllocation> add_alloc(GraphState& state, Dependencies dependencies, std::size_t bytes);
absl::StatusOr<MemFreeNode> add_free(GraphState& state, Dependencies dependencies, void* address);
absl::StatusOr<BatchMemOpNode> add_memory_ops(GraphState& state, Dependencies dependencies,
                                              absl::Span<const MemoryOp> ops);
absl::StatusOr<NodeRef> add_semaphores(GraphState& state, Dependencies dependencies, SemaphoreAction action,
                                       absl::Span<const SemaphoreValue> values);
// "node 2 (mem alloc)", the first whose memory the graph does not free; empty: there is none.
[[gnu::cold]] std::string unfreed_allocation(CUgraph graph);

enum class ChildOwnership { kCopy, kMove };
// Of a graph that can have no clone and one executable at a time, the first node that makes it so; empty: there is
// none.
[[gnu::cold]] std::string what_forbids_copies(CUgraph graph);

absl::StatusOr<bool> is_device_updatable(CUgraphNode kernel);

// Whether a kernel with these attributes is to be changed by set-params on the host, as copies are: one with clusters.
// Where its grid is set or it is enabled on the device, driver 580 runs it on a part of the multiprocessors from then
// on: clusters of n blocks with room for one block in n (H200; cuBLASLt's products take 1.3 to 1.8 times as long).
inline bool is_changed_by_host(const LaunchAttributes& attributes) { return attributes.cluster != Dim3(); }

// Whether a graph and what is inside of it may be in the body of a conditional node.
absl::Status check_in_conditional(CUgraph graph);

// A node with the parameters and attributes of another, which waits for the nodes that `before` comes from. What is no
// kernel runs in `context`.
absl::StatusOr<CUgraphNode> copy_node(CUgraphNode node, const Edges& before, CUcontext context, GraphState& into);

// Copies the nodes of `from`, with their attributes and edges, into another graph; the roots wait for `before`. The
// copies, in the order of the nodes. What `from` keeps is not kept.
absl::StatusOr<std::vector<CUgraphNode>> copy_nodes(const GraphState& from, GraphState& into, Dependencies before);

// See Graph.
absl::Status remove_node(GraphState& state, CUgraphNode node);
absl::Status add_edge(GraphState& state, const Dependency& from, CUgraphNode to);
absl::Status remove_edge(GraphState& state, CUgraphNode from, CUgraphNode to);
absl::Status set_params(GraphState& state, CUgraphNode node, const KernelLaunch& launch);
absl::Status set_params(GraphState& state, CUgraphNode node, CUgraphNodeParams& params);
absl::Status set_semaphores(GraphState& state, CUgraphNode node, SemaphoreAction action,
                            absl::Span<const SemaphoreValue> values);
// "node 1 (kernel "scale") -> node 2 (memset) -> node 1", of nodes that wait for each other; empty: there are none.
[[gnu::cold]] std::string describe_cycle(CUgraph graph);

// On a move that succeeds, the child's driver graph is inside `state`'s.
absl::StatusOr<ChildGraphNode> add_child(GraphState& state, Dependencies dependencies,
                                         const std::shared_ptr<GraphState>& child, ChildOwnership ownership);

absl::StatusOr<Conditional> add_conditional(GraphState& state, Dependencies dependencies,
                                            CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                                            unsigned bodies);

}  // namespace cgrt::internal
