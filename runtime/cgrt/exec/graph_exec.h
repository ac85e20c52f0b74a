// GraphExec: an executable made from a Graph.
//
//   CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
//   CGRT_RETURN_IF_ERROR(exec.upload(stream));
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));
//   CGRT_RETURN_IF_ERROR(exec.set_params(scaled, config, kernel, y, x, 3.0f, n));   // for later launches
//   CGRT_RETURN_IF_ERROR(exec.update(other_graph));                                 // of all nodes
//
// One that is rebindable changes the arguments and grids of a thousand nodes for some microseconds. The same calls, run
// again, say what they are now (binding.h: without running them again):
//
//   const auto step = [&](LaunchTarget target, float* out, const float* in, int count) {
//     return launch(target, config, kernel, out, in, 2.0f, count);
//   };
//   CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream, [&](LaunchTarget target) { return step(target, y, x, n); }));
//   CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));                                                          // x to y
//   CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, z, y, n / 2); }));
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));                                                          // y to z
//
// Thread-safe: calls on one executable from several threads are serialized by a lock of its own;
// moving or destroying it is not. It keeps its definition alive, so the graph may be destroyed; it may be changed,
// too, by one other thread, but not beside find_blockers and guard_addresses, which read it, nor beside a launch that
// CUDA refuses with CUDA_ERROR_INVALID_VALUE, which names the allocation node whose memory is not freed.
// CUDA orders the launches of one executable after each other, also in different streams.
// Destroying it while launches are in flight is allowed, CUDA frees it later; while streams are captured
// too, which disturbs no capture. It waits for them where it alone keeps what they use: kernels of a Library that nodes
// were set to, and what rebound steps handed over.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cgrt/exec/binding.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/node.h"
#include "cgrt/stream/stream.h"

namespace cgrt {

enum class InstantiateFlags : unsigned {
  kNone = 0,
  kAutoFreeOnLaunch = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,  // what alloc nodes left is freed at relaunch
  kUseNodePriority = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,     // of the nodes, not of the launching stream
};
constexpr InstantiateFlags operator|(InstantiateFlags a, InstantiateFlags b) {
  return static_cast<InstantiateFlags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

enum class NodeState { kEnabled, kDisabled };

// How far down the ladder an update went.
enum class UpdateRung {
  kWholeGraph,    // the executable now has the parameters of the other graph
  kInstantiated,  // the update was refused, and the executable was made anew from the other graph
  kRefused,       // the executable is as it was
};

// Why an update was refused; the values are CUgraphExecUpdateResult's.
enum class UpdateRefusal {
  kNone = CU_GRAPH_EXEC_UPDATE_SUCCESS,
  kUnknown = CU_GRAPH_EXEC_UPDATE_ERROR,
  kTopologyChanged = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
  kNodeTypeChanged = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
  kFunctionChanged = CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED,
  kParametersChanged = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
  kNotSupported = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
  kUnsupportedFunctionChange = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
  kAttributesChanged = CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED,
};
const char* to_string(UpdateRefusal refusal);  // "topology changed", ...

// One thing that keeps an executable from taking over a graph.
struct UpdateBlocker {
  std::optional<NodeRef> node;  // of that graph, or, when it is in the executable alone, of its own
  UpdateRefusal refusal;        // as CUDA answers it
  std::string text;             // "kernel "scale" (node 3): its cluster is (2, 1, 1), in the executable (1, 1, 1)"
};

struct UpdateReport {
  UpdateRung rung = UpdateRung::kWholeGraph;
  UpdateRefusal refusal = UpdateRefusal::kNone;
  std::optional<NodeRef> node;  // the first that CUDA objects to, in the other graph; it names at most one
  std::string text;             // why it was refused, as sentences; empty when updated
};

// How far down the ladder an executable went, since it was made or counted last.
struct UpdateCounts {
  std::uint64_t set = 0;           // parameters of one node
  std::uint64_t updated = 0;       // whole graphs taken over
  std::uint64_t instantiated = 0;  // made anew, after a refusal
  std::uint64_t refused = 0;       // left as it was, after a refusal
};

class GraphExec {
 public:
  // Takes over an executable that the caller instantiated from `graph`, which may be an adopted one, and which has
  // not changed since. On failure it stays the caller's.
  static absl::StatusOr<GraphExec> adopt(CUgraphExec exec, const Graph& graph);
  // To be destroyed with cuGraphExecDestroy; that of get(). What was rebound and not launched is lost; what steps and
  // set_params had this keep, host functions, loaded code and graphs of captured calls, is let go: where there is such,
  // this waits for the launches in flight.
  CUgraphExec release() &&;

  GraphExec();  // empty, as when moved from: every call is kFailedPrecondition
  GraphExec(GraphExec&&) noexcept;
  GraphExec& operator=(GraphExec&&) noexcept;
  ~GraphExec();

  // Asynchronous. Into a stream that is being captured: kFailedPrecondition, and the capture ends. kInvalidArgument
  // while memory that the launch before allocated is not freed (memory/stream_memory.h).
  absl::Status launch(StreamRef stream);

  // Puts the executable onto the device ahead of its first launch, which otherwise pays for it (0.7 us per node on an
  // H200). Asynchronous; refused in a capture as launch is. Launch it soon: until its first launch, an uploaded
  // executable slows all graphs in its context, from 0.98 to 1.15 us per node (H200, driver 580). If it is destroyed
  // without a launch, they stay slow.
  absl::Status upload(StreamRef stream);

  // New parameters for one node of the graph that this was made from, for launches from now on;
  // those in flight keep theirs. Refused parameters change nothing. Launch attributes cannot change:
  // kFailedPrecondition when they differ from the node's.
  template <class... Args>
  absl::Status set_params(KernelNode node, const LaunchConfig& config, Kernel<Args...> kernel,
                          std::type_identity_t<Args>... arguments) {
    void* packed[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    return set_params(node, internal::kernel_launch(config, kernel.identity(), packed));
  }
  absl::Status set_params(KernelNode node, const KernelLaunch& launch);
  absl::Status set_params(MemcpyNode node, const CopyParams& copy);
  absl::Status set_params(MemsetNode node, const FillParams& fill);
  // `data` must stay valid until the last launch that calls `function` has ended.
  absl::Status set_params(HostNode node, CUhostFn function, void* data);
  absl::Status set_params(EventRecordNode node, EventRef event);
  absl::Status set_params(EventWaitNode node, EventRef event);
  absl::Status set_params(BatchMemOpNode node, absl::Span<const MemoryOp> ops);                // as many as it has
  absl::Status set_params(SemaphoreSignalNode node, absl::Span<const SemaphoreValue> values);  // as many as it has
  absl::Status set_params(SemaphoreWaitNode node, absl::Span<const SemaphoreValue> values);
  // Takes over all parameters of `child`, launch attributes too, which must have the topology of the
  // node's own child. Code of its kernels that was loaded at run time stays loaded (launch/library.h); what `child`
  // keeps besides (Graph::keep) is not taken over: keep it in this graph.
  absl::Status set_params(ChildGraphNode node, const Graph& child);

  // A disabled node does nothing at launches from now on, as if it were empty; those in flight are
  // not touched. Its parameters can be set meanwhile, and updates keep it disabled.
  absl::Status set_enabled(KernelNode node, NodeState state);
  absl::Status set_enabled(MemcpyNode node, NodeState state);
  absl::Status set_enabled(MemsetNode node, NodeState state);
  absl::StatusOr<NodeState> enabled(const NodeRef& node) const;

  // Takes over the parameters of all nodes of `other`, which must have the same topology and the same launch
  // attributes. Where it has not, the answer is kFailedPrecondition with the reason, and the executable is as it was.
  // CUDA itself would silently keep some old attributes (memory sync domain, carveout, access policy, and a cluster
  // where `other` has none), so these are compared first. That costs nothing for graphs that this library built or
  // captured, while no launch in them has attributes; for other graphs the driver is asked, at 0.3 us a kernel node.
  // `other` may be destroyed: the driver hands what it keeps (Graph::keep) to the executable.
  absl::Status update(const Graph& other);

  // The same, but a refusal is a report and not an error: see UpdateReport. Errors are other failures of the call; a
  // rebindable executable and an `other` of build_alternatives are kFailedPrecondition here and below.
  absl::StatusOr<UpdateReport> try_update(const Graph& other);

  // The same, and on a refusal the executable is instantiated anew from `other`, with the flags that it had. Node
  // handles for set_params are then those of `other`, all nodes are enabled, and what other threads set between the
  // refusal and then is lost. The report says which of both was done. The executable that was is destroyed, which may
  // wait as said above.
  absl::StatusOr<UpdateReport> update_or_instantiate(const Graph& other);

  // All nodes that keep update() from taking over `other`, and why: by CUDA's rules of topology, kinds, contexts,
  // memory and attributes, and where `other` was taken over, none. Costs some microseconds a node; a refusal itself
  // names the first alone. Reads the graph that this was made from, and is not to be called beside a change of it:
  // kFailedPrecondition once nodes or edges of it or inside of it were removed, edges added, or nodes added inside of
  // those that the executable has.
  absl::StatusOr<std::vector<UpdateBlocker>> find_blockers(const Graph& other);

  // What was counted since this was made or asked last; counting begins again at 0. An empty GraphExec: zeros. Counted
  // under the lock of the calls that it counts.
  UpdateCounts take_counts();

  // Runs the calls again that this executable, which must be rebindable, was made from: `step` launches, copies and
  // sets into its target what it did when the graph was built or captured, with other arguments and grids. The k-th
  // call meets the k-th node, in the order of their creation. Counts for launches from now on; those in flight keep
  // theirs. Only what differs is sent, with the next launch. `step` runs on this thread, before this returns, and must
  // not call this executable.
  // kFailedPrecondition names the call with another kernel, block, shared memory or attributes, another grid of a
  // cooperative kernel, the call of another kind, too many or too few; kInvalidArgument is as of the call itself, and
  // kUnimplemented a library's call that allocates. Then, and when `step` fails, nothing has changed. Nodes that no
  // call makes (empty ones) are passed over. In a graph of build_alternatives (graph/alternatives.h) calls may pass
  // over nodes, which do not run then. Does not block, with one exception: where no step of such a graph runs these
  // calls together, an executable of all nodes may be instantiated, once. What the calls hand over, as a launch_host
  // with a std::function does, is kept until another step has taken its place and the launches before have ended; a
  // later rebind destroys it, as it does what graphs kept (Graph::keep), and waits where that frees device memory. Its
  // destructor may call this executable. Graphs of captured calls are kept, too, with what their libraries retain on
  // these (cuGraphRetainUserObject); those with a key, up to 256, as long as the executable. While there is such, each
  // launch records an event, and the executable waits for its launches when it is destroyed.
  absl::Status rebind(absl::FunctionRef<absl::Status(LaunchTarget)> step);

  // Runs the calls as rebind does, and changes nothing: what they say is for rebind(Binding), as often as wanted, which
  // runs no calls (1,000 nodes: a few microseconds). Fails as rebind does, but that operands of copies are refused by
  // rebind(Binding) alone, which sets them.
  absl::StatusOr<Binding> prepare(absl::FunctionRef<absl::Status(LaunchTarget)> step);
  // kInvalidArgument for a binding of another executable.
  absl::Status rebind(const Binding& binding);

  // Argument `argument` of a kernel of this executable, which must be rebindable, counted from 0; whoever launched or
  // captured it. kInvalidArgument when it has another size than T.
  template <class T>
  absl::StatusOr<Slot<T>> slot(KernelNode node, std::size_t argument) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const absl::StatusOr<std::pair<std::uint64_t, std::uint32_t>> found = find_slot(node, argument, sizeof(T));
    if (!found.ok()) return found.status();
    return Slot<T>(found->first, found->second);
  }
  // Counts for launches from now on, as a rebind does.
  template <class T>
  absl::Status set(const Slot<T>& slot, const std::type_identity_t<T>& value) {
    return set_slot(slot.executable(), slot.word(), &value, sizeof(T));
  }
  // The same for the grid of a kernel. kFailedPrecondition: the executable is not rebindable, or the kernel
  // cooperative. kInvalidArgument: not a kernel of it; a grid that no device can launch, or no multiple of the kernel's
  // cluster.
  absl::Status set_grid(KernelNode node, Dim3 grid);

  // Where this executable, which must be rebindable, has addresses of the `bytes` bytes at `buffer`: in arguments of
  // kernels, each word of 8 bytes that is aligned there, also inside structs, whoever made the kernel; and in operands
  // of copies, memsets and memory operations. By node. Not in bodies of conditional nodes; and an address behind the
  // last byte is none of the buffer's: hand over one byte more where kernels take its end.
  absl::StatusOr<std::vector<BufferUse>> find_buffer(const void* buffer, std::size_t bytes) const;
  // Makes those addresses the same distance from `replacement`, for launches from now on; returns how many. None is no
  // error. kFailedPrecondition, and nothing changes, where a node in the body of a conditional node has one. A number
  // that looks like such an address is taken for one: kernels of others do not say which of their arguments are
  // pointers. To leave some out, hand over the rest of what find_buffer said.
  absl::StatusOr<std::size_t> rebind_buffer(const void* old, std::size_t bytes, void* replacement);
  // kInvalidArgument for a use that is none of this executable's. Whether a use still has the old address is not looked
  // at: ask find_buffer again after a rebind.
  absl::Status rebind_buffer(absl::Span<const BufferUse> uses, void* replacement);

  // From now on each launch first asks the driver whether the memory that enabled nodes have addresses of is still what
  // it was when they got them: now, or later by set_params, update or rebind. Where some was freed, also when other
  // memory is at its address by then, launch is kFailedPrecondition, which names node and argument, and nothing is
  // launched. For debugging: about 5 us a node here and in each update, 0.06 us an allocation in each launch. Looked
  // at are operands, and aligned words of 8 bytes of kernels' arguments that are addresses which the driver knows then;
  // it knows whole allocations, so that nothing is said of memory that an allocator of one's own takes back. Memory of
  // the graph's allocation nodes is left out; that of another graph's is other memory at each launch of that graph.
  // What the device changes by itself is not seen. Where the driver fails to answer, the call that set the node returns
  // that, and counts. Begins with the graph that this was made from, as it is now: call it before nodes are set or
  // disabled, before an update, and not beside a change of that graph; kFailedPrecondition where it was in a node that
  // was removed. With CGRT_GUARD_ADDRESSES in the environment every executable is made so.
  absl::Status guard_addresses();

  // What the next launch is of. Valid until the next update_or_instantiate; where steps have executables of their own
  // (graph/alternatives.h), another after a rebind. Null: empty.
  CUgraphExec get() const;

 private:
  friend absl::StatusOr<GraphExec> instantiate(const Graph& graph, InstantiateFlags flags);
  friend absl::StatusOr<GraphExec> instantiate_rebindable(Graph& graph, InstantiateFlags flags);
  static absl::StatusOr<GraphExec> make(const Graph& graph, InstantiateFlags flags, bool has_variants);
  absl::Status set_node_enabled(const NodeRef& node, NodeState state);
  absl::Status set_semaphores(CUgraphNode node, SemaphoreAction action, absl::Span<const SemaphoreValue> values);
  absl::StatusOr<std::pair<std::uint64_t, std::uint32_t>> find_slot(KernelNode node, std::size_t argument,
                                                                    std::size_t bytes) const;
  absl::Status set_slot(std::uint64_t executable, std::uint32_t word, const void* value, std::size_t bytes);
  absl::StatusOr<std::optional<UpdateReport>> refusal_of(const Graph& other);  // nullopt: it was taken over
  struct State;
  explicit GraphExec(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Blocks the host, and waits for no work but where this lets go what graphs kept (Graph::keep); costs 1.0 to 2.1 us a
// node from 10 nodes on (H200). Disturbs no capture. The graph may change or die afterwards. Short of memory
// (kResourceExhausted), it trims the memory that graphs freed on this device and tries once more.
absl::StatusOr<GraphExec> instantiate(const Graph& graph, InstantiateFlags flags = InstantiateFlags::kNone);

// The same, and all of its kernels, but those in bodies of conditional nodes, can be changed by rebind(): they become
// device-updatable, for good. CUDA then allows the graph one executable at a time and no clone, and the executable no
// update(); set_params and set_enabled work on kernels as rebind() does. Memsets cannot be disabled in it, nor child
// graphs be set (kFailedPrecondition). What changes them, a kernel "patch_nodes" for
// each 2,729 words that can change, is added to the graph in front of all nodes, and runs in launches that have
// something to change. Kernels with clusters stay as they are, unless they are inside child graphs: the host sets those
// that change, 1 to 3 us each, as driver 580 runs them on a part of the multiprocessors once the device has changed
// their grid or enabled them. kFailedPrecondition, and the graph stays as it was, where CUDA has no way: kernels on a
// second device, a programmatic edge between two kernels that become device-updatable (names both; see
// remove_programmatic_edges in graph/programmatic.h). Where CUDA itself fails to instantiate, as for lack of memory,
// they are device-updatable already. A launch costs 2 % more than a plain one (1,000 nodes, H200).
absl::StatusOr<GraphExec> instantiate_rebindable(Graph& graph, InstantiateFlags flags = InstantiateFlags::kNone);

// Called after every successful instantiate, on the thread that did it; null: nobody. There is one observer: setting it
// replaces the one before. Thread-safe; calls of the old one may still be running. For dump/.
using InstantiateObserver = void (*)(const Graph& graph);
void set_instantiate_observer(InstantiateObserver observer);

}  // namespace cgrt
