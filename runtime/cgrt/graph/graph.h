// Graph: the definition of a CUDA graph, built node by node. To run it, see exec/graph_exec.h; to
// build it from a stream, graph/capture.h; from call sites, graph/cursor.h.
//
//   CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
//   CGRT_ASSIGN_OR_RETURN(MemcpyNode load, graph.add_copy({}, x, host_x, bytes));
//   CGRT_ASSIGN_OR_RETURN(KernelNode scaled, graph.add_kernel(after(load), config, kernel, y, x, 2.0f, n));
//
// A conditional node runs graphs of its own, when a kernel says so (graph/set_conditional.cuh):
//
//   CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle again, graph.add_conditional_handle(1));
//   CGRT_ASSIGN_OR_RETURN(Conditional loop, graph.add_while({}, again));
//   Cursor body = loop.bodies[0].cursor();
//   CGRT_RETURN_IF_ERROR(launch(body, one_thread, count_down, again, left));
//
// Arguments are copied when a node is added. Not thread-safe: calls on one graph from several
// threads need a lock of the caller's. Moving a Graph keeps its nodes and cursors valid.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/graph/node.h"
#include "cgrt/launch/launch.h"
#include "cgrt/stream/keep.h"

namespace cgrt {

class Cursor;
struct Conditional;
struct GraphAllocation;
namespace internal {
struct GraphState;
}

// Does not own. Must not outlive the graph.
class GraphRef {
 public:
  GraphRef(CUgraph graph) : handle_(graph) {}  // implicit: callers hold cudaGraph_t
  GraphRef(std::nullptr_t) = delete;
  CUgraph get() const { return handle_; }

 private:
  CUgraph handle_;
};

class Graph {
 public:
  // Nodes added through this object run in `context`.
  static absl::StatusOr<Graph> create(ContextRef context);
  // Takes over a graph that the caller made or captured. On failure it stays the caller's.
  static absl::StatusOr<Graph> adopt(CUgraph graph, ContextRef context);
  // To be destroyed with cuGraphDestroy, after the cursors and executables that were made from it. Null for the body of
  // a conditional node, which stays its node's.
  CUgraph release() &&;

  Graph() = default;  // empty, as when moved from: every call is kFailedPrecondition
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;

  // Each waits for `dependencies`, which are nodes of this graph; none: a root. Never blocks. kInvalidArgument names
  // the node's parameters, or the dependency that is not a node of this graph, or is named twice.
  template <class... Args>
  absl::StatusOr<KernelNode> add_kernel(Dependencies dependencies, const LaunchConfig& config, Kernel<Args...> kernel,
                                        std::type_identity_t<Args>... arguments) {
    void* packed[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    return add_kernel(dependencies, internal::kernel_launch(config, kernel.identity(), packed));
  }
  absl::StatusOr<KernelNode> add_kernel(Dependencies dependencies, const KernelLaunch& launch);
  // As copy and fill (memory/copy.h). The addresses are the driver's to check; 0 bytes are kInvalidArgument.
  absl::StatusOr<MemcpyNode> add_copy(Dependencies dependencies, void* destination, const void* source,
                                      std::size_t bytes);
  absl::StatusOr<MemsetNode> add_fill(Dependencies dependencies, const FillParams& fill);
  absl::StatusOr<MemcpyNode> add_copy(Dependencies dependencies, const CopyParams& copy);
  absl::StatusOr<EmptyNode> add_empty(Dependencies dependencies);
  // See launch/host.h: the first does not own what `data` points to, the second keeps `function`.
  absl::StatusOr<HostNode> add_host(Dependencies dependencies, CUhostFn function, void* data);
  absl::StatusOr<HostNode> add_host(Dependencies dependencies, std::function<void()> function);
  // The event must outlive the graph's last launch.
  absl::StatusOr<EventRecordNode> add_event_record(Dependencies dependencies, EventRef event);
  absl::StatusOr<EventWaitNode> add_event_wait(Dependencies dependencies, EventRef event);
  // See memory/stream_memory.h, also for what CUDA does not do with such a graph. The address is valid for nodes that
  // wait for the node. kInvalidArgument: 0 bytes; memory that is not an allocation node's, or that the graph frees
  // already.
  absl::StatusOr<GraphAllocation> add_alloc(Dependencies dependencies, std::size_t bytes);
  absl::StatusOr<MemFreeNode> add_free(Dependencies dependencies, void* address);
  // See memory/memory_op.h. In their order, as one node.
  absl::StatusOr<BatchMemOpNode> add_memory_ops(Dependencies dependencies, absl::Span<const MemoryOp> ops);
  // See memory/external_semaphore.h. One node each. The semaphores must outlive the graph's last launch: see keep.
  absl::StatusOr<SemaphoreSignalNode> add_semaphore_signal(Dependencies dependencies,
                                                           absl::Span<const SemaphoreValue> values);
  absl::StatusOr<SemaphoreWaitNode> add_semaphore_wait(Dependencies dependencies,
                                                       absl::Span<const SemaphoreValue> values);
  // A copy of `child` as one node; what it keeps is kept. kInvalidArgument for the graph itself and for one that it
  // is inside of. kFailedPrecondition for a graph with conditional nodes or of build_alternatives. An error of the
  // driver's, with the reason, for one that CUDA does not copy: it allocates or frees memory, or was made rebindable.
  absl::StatusOr<ChildGraphNode> add_child(Dependencies dependencies, const Graph& child);
  // Moves `child` in instead: its nodes, cursors and executables stay valid, and its nodes are also those of
  // executables of this graph. Executables of `child` keep this graph alive from then on. On failure it stays the
  // caller's. Refused as above, but for what CUDA does not copy.
  absl::StatusOr<ChildGraphNode> add_child(Dependencies dependencies, Graph&& child);

  // A value on the device that says whether, how often or which bodies of a conditional node run. Kernels of the graph
  // take the handle as an argument and set the value (graph/set_conditional.cuh). It is `at_launch` when a launch of
  // the graph begins; nullopt: what it was when the launch before ended, undefined in the first. Each handle belongs to
  // one conditional node, of this graph or inside of it: a graph with one that has none cannot be instantiated.
  absl::StatusOr<CUgraphConditionalHandle> add_conditional_handle(std::optional<unsigned> at_launch);

  // Conditional nodes. Their bodies are empty graphs, to be filled as any graph is, before the graph is instantiated:
  // with kernels, copies, memsets, empty and conditional nodes and child graphs of those, in the context of this graph.
  // kInvalidArgument: the handle is not of this graph or one around it, or has a node already.
  // A graph with such nodes can have one executable at a time and no clone, and cannot be a child graph.
  absl::StatusOr<Conditional> add_if(Dependencies dependencies, CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_if_else(Dependencies dependencies, CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_while(Dependencies dependencies, CUgraphConditionalHandle handle);
  absl::StatusOr<Conditional> add_switch(Dependencies dependencies, CUgraphConditionalHandle handle, unsigned bodies);

  // Takes a node out: what waited for it waits for it no more, and for what it waited for neither. What is inside of it
  // goes with it: cursors, nodes and Graphs of a child or of bodies are invalid then. Executables that were made before
  // go on as they were; only the handle of the node is invalid for them too. Lists the nodes: 0.1 us for each of them.
  // kInvalidArgument: not a node of this graph. kFailedPrecondition once instantiate_rebindable has taken this graph or
  // a child of it, also when that executable is gone. An error of the driver's, with the reason: the graph allocates or
  // frees memory.
  absl::Status remove(const NodeRef& node);
  // Lets `to` wait for `from`, a node or programmatic(node) or launched(node). kInvalidArgument: there is an edge
  // already, of whatever kind; one of both is no node of this graph; both are the same; nodes of those kinds cannot
  // have such an edge. An edge that closes a circle is refused when the graph is instantiated, which names its nodes.
  absl::Status add_edge(const Dependency& from, const NodeRef& to);
  // kInvalidArgument: there is no edge; one of both is no node of this graph. An error of the driver's, with the
  // reason: the graph allocates or frees memory.
  absl::Status remove_edge(const NodeRef& from, const NodeRef& to);

  // New parameters for a node of this graph or inside of it, for executables that are made or updated from it
  // afterwards. Refused parameters change nothing. A node keeps the launch attributes that it was made with:
  // kFailedPrecondition when the launch asks for others. A kernel stays in its context; copies, memsets and memory
  // operations run in that of this graph from then on, since CUDA does not tell theirs.
  template <class... Args>
  absl::Status set_params(KernelNode node, const LaunchConfig& config, Kernel<Args...> kernel,
                          std::type_identity_t<Args>... arguments) {
    void* packed[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    return set_params(node, internal::kernel_launch(config, kernel.identity(), packed));
  }
  absl::Status set_params(KernelNode node, const KernelLaunch& launch);
  absl::Status set_params(MemcpyNode node, const CopyParams& copy);
  absl::Status set_params(MemsetNode node, const FillParams& fill);
  absl::Status set_params(HostNode node, CUhostFn function, void* data);
  absl::Status set_params(EventRecordNode node, EventRef event);
  absl::Status set_params(EventWaitNode node, EventRef event);
  absl::Status set_params(BatchMemOpNode node, absl::Span<const MemoryOp> ops);
  absl::Status set_params(SemaphoreSignalNode node, absl::Span<const SemaphoreValue> values);
  absl::Status set_params(SemaphoreWaitNode node, absl::Span<const SemaphoreValue> values);

  // An independent copy, with what this one keeps and the same order of nodes. kUnimplemented, from
  // the driver, for graphs with conditional, allocation, free or device-updatable nodes.
  absl::StatusOr<Graph> clone() const;
  // The node of this graph, a clone, that was made from `original`. kInvalidArgument when none was.
  template <class Node>
  absl::StatusOr<Node> find_in_clone(Node original) const {
    absl::StatusOr<NodeRef> found = find_in_clone(static_cast<const NodeRef&>(original));
    if (!found.ok()) return std::move(found).status();
    return Node(found->get());
  }
  absl::StatusOr<NodeRef> find_in_clone(const NodeRef& original) const;

  // A place to launch into: nodes made through it form a chain that starts without dependencies,
  // or after `dependencies`.
  Cursor cursor();
  Cursor cursor(Dependencies dependencies);

  // Keeps `resource` alive until this graph, every executable made from it or updated from it
  // afterwards, and their last launches in flight have ended. Costs nothing per launch. It is then
  // let go by a later create, clone, capture, instantiate, update, rebind or collect_released of this
  // library, on the thread that makes it, which waits for the device where a DeviceBuffer goes.
  absl::Status keep(std::shared_ptr<const void> resource);
  template <class Resource>
  absl::Status keep(Resource&& resource) requires(std::is_rvalue_reference_v<Resource&&> &&
                                                  !std::is_convertible_v<Resource, std::shared_ptr<const void>>) {
    return keep(std::shared_ptr<const void>(std::make_shared<Resource>(std::move(resource))));
  }

  // A child graph counts as one node.
  absl::StatusOr<std::size_t> node_count() const;
  GraphRef ref() const;

  // For the rest of this library.
  explicit Graph(std::shared_ptr<internal::GraphState> state) : state_(std::move(state)) {}
  const std::shared_ptr<internal::GraphState>& state() const { return state_; }

 private:
  std::shared_ptr<internal::GraphState> state_;
};

// Memory of an allocation node: the same address at every launch.
struct GraphAllocation {
  MemAllocNode node;
  void* address;
};

// A conditional node and its bodies: of `if` the one that runs when the value is not 0; of `if else` also the one that
// runs when it is; of `while` the one that runs as long as it is not 0, asked before each time; of `switch` those of
// the values 0, 1, ..., of which none runs for another value. Bodies live as long as the node, or these objects.
struct Conditional {
  ConditionalNode node;
  std::vector<Graph> bodies;
};

}  // namespace cgrt
