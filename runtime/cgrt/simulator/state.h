// What a simulated driver knows: contexts, streams and their queues, events, captures, memory,
// graphs, executables. Internal to simulator/.
//
// One lock around every call; nothing here locks by itself.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cgrt/driver/kernel_identity.h"
#include "cgrt/simulator/simulator.h"

namespace cgrt::simulator {

struct Capture;
struct PerThread;
struct Body;
struct Conditional;

// Set when a piece of work has been done; shared by all that wait for it.
struct Marker {
  bool done = false;
};
using MarkerRef = std::shared_ptr<Marker>;

struct Work {
  std::function<bool()> run;      // false: not over yet, to be called again; null: nothing
  std::vector<MarkerRef> gates;   // what must be done before
  std::function<bool()> can_run;  // null: it can
  MarkerRef done = std::make_shared<Marker>();
};

// Memory of an allocation node: an address for as long as a graph or work has the node.
struct GraphMemory {
  ~GraphMemory();
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;
  CUgraph graph = nullptr;     // whose node allocates it
  CUgraph freed_by = nullptr;  // the graph that has a node which frees it
  bool is_live = false;        // allocated by a launch, and not freed, in the order of the calls
  // The only executables that allocate it and that free it; null: none.
  CUgraphExec alloc_exec = nullptr, free_exec = nullptr;
  CUgraphExec& exec_of(CUgraphNodeType type) { return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? alloc_exec : free_exec; }
};

// A signal of semaphores or a wait for them, as the driver takes it and tells it.
struct SemaphoreData {
  std::vector<CUexternalSemaphore> handles;
  std::vector<std::shared_ptr<CUextSemaphore_st>> semaphores;  // which stay while there is such a node
  std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> signals;  // of a signal
  std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> waits;      // of a wait
};

// A node's parameters, with all that they point to.
struct NodeData {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUcontext context = nullptr;

  const driver::KernelIdentity* kernel = nullptr;
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  std::shared_ptr<const unsigned char> values;  // all arguments, each at its offset; never changed
  std::vector<void*> arguments;                 // into values

  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;  // that are not at their defaults
  CUgraphDeviceNode updatable = nullptr;                             // null: not device-updatable

  CUDA_MEMCPY3D copy{};
  bool reads_device = false, writes_device = false;  // what `copy` names, as it was when the node was given it
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUhostFn function = nullptr;
  void* user_data = nullptr;
  CUevent event = nullptr;
  std::shared_ptr<Conditional> conditional;  // of a conditional node
  CUgraphConditionalNodeType conditional_type = CU_GRAPH_COND_TYPE_IF;
  std::shared_ptr<GraphMemory> memory;               // of an allocation node, or a free
  std::vector<CUstreamBatchMemOpParams> operations;  // in memory
  std::shared_ptr<const SemaphoreData> semaphores;   // of a signal or a wait
  std::vector<std::shared_ptr<const Body>> bodies;   // in an executable: a child graph, or those of a conditional node
};
using NodeDataRef = std::shared_ptr<const NodeData>;

// What an executable runs: nodes, and for each the positions that it waits for.
using DependencyList = std::vector<std::pair<std::size_t, CUgraphEdgeData>>;
struct Body {
  std::vector<NodeDataRef> nodes;
  std::vector<DependencyList> dependencies;
  std::vector<bool> enabled;
};

// What a conditional handle names. Executables use it too, when their graph is gone.
struct Conditional {
  CUgraph graph = nullptr;  // null: destroyed
  CUcontext context = nullptr;
  bool is_assigned = false;  // `at_launch` is, when a graph is launched
  unsigned at_launch = 0, value = 0;
  CUgraphNode node = nullptr;  // null: none uses it yet
  CUgraphExec exec = nullptr;  // the only one of its graph; null: none
};

struct Dependency {
  CUgraphNode node = nullptr;
  CUgraphEdgeData edge{};
};

// A variable of a library.
struct Variable {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
};

}  // namespace cgrt::simulator

// The driver's handles.
struct CUctx_st {
  int device = 0;
  CUstream legacy = nullptr;                   // its default stream
  int retained = 0;                            // a primary context is active while it is
  std::map<CUlimit, std::size_t> limits = {};  // that were set
};
struct CUlib_st {
  std::string image;
  bool is_text = false;  // PTX
  std::map<std::string, cgrt::simulator::Variable, std::less<>> variables = {};
};
struct CUfunc_st {
  const cgrt::driver::KernelIdentity* kernel = nullptr;
  CUcontext context = nullptr;
};
struct CUstream_st {
  std::uint64_t id = ++last_id;  // of no other stream, ever
  CUcontext context = nullptr;
  bool blocking = false;
  int priority = 0;
  bool held = false;
  bool destroyed = false;  // no handle any more, but work is left
  std::deque<cgrt::simulator::Work> queue;
  cgrt::simulator::MarkerRef last;  // of the newest work
  cgrt::simulator::Capture* capture = nullptr;
  std::vector<cgrt::simulator::Dependency> frontier;  // while capturing
  // What cuStreamGetCaptureInfo listed last: the caller's until the next call on this stream.
  std::vector<CUgraphNode> listed_nodes;
  std::vector<CUgraphEdgeData> listed_edges;
  static inline std::atomic<std::uint64_t> last_id{0};
};
struct CUevent_st {
  CUcontext context = nullptr;
  bool timing = false;
  cgrt::simulator::MarkerRef record;  // null: never recorded
  std::uint64_t capture_id = 0;       // not 0: last recorded in that capture
  std::vector<cgrt::simulator::Dependency> frontier;
};
struct CUgraphNode_st {
  CUgraph graph = nullptr;
  cgrt::simulator::NodeDataRef data;
  std::vector<cgrt::simulator::Dependency> dependencies;
  std::vector<std::unique_ptr<CUgraph_st>> inside;  // a child graph, or the bodies of a conditional node
  std::vector<CUgraph> body_handles;                // of a conditional node, for the caller
  ~CUgraphNode_st();
};
// What a device-updatable node runs with now. Kept as long as the simulator, since kernels hold its handle.
struct CUgraphDeviceUpdatableNode_st {
  CUgraphExec exec = nullptr;  // its only one; null: none
  cgrt::simulator::NodeDataRef data;
  bool is_enabled = true;
  bool is_uploaded = false;  // the executable, or it has run
};
// A file of 8 bytes, and a descriptor of it: whoever else has one signals and waits too.
struct CUextSemaphore_st {
  ~CUextSemaphore_st();
  bool is_timeline = false;
  int fd = -1;
  cuuint64_t* word = nullptr;  // a timeline's value; of a binary semaphore 1 while it is signaled
};
struct CUuserObject_st {
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;   // in the order of creation
  std::vector<std::shared_ptr<void>> kept;              // user objects
  CUgraphNode owner = nullptr;                          // the child graph or conditional node that it is in; null: none
  std::unordered_map<CUgraphNode, CUgraphNode> clones;  // of a clone: by the original's node
};
inline CUgraphNode_st::~CUgraphNode_st() = default;
struct CUgraphExec_st {
  cuuint64_t flags = 0;
  cgrt::simulator::Body body;
  // Of the template's nodes: their positions, after those of the nodes that they are inside of, each with the number
  // of the graph inside that node.
  std::unordered_map<CUgraphNode, std::vector<std::size_t>> paths;
  std::vector<std::shared_ptr<void>> kept;
  cgrt::simulator::MarkerRef last_launch;
};

namespace cgrt::simulator {

struct Capture {
  std::uint64_t id = 0;
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const PerThread* thread = nullptr;
  std::unique_ptr<CUgraph_st> graph;
  std::set<CUstream> streams;
  bool invalid = false;
};

// What a driver keeps per thread. Entries outlive their threads, so that none is taken for another's.
struct PerThread {
  std::vector<CUcontext> contexts;  // the stack; the last is current
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<CUcontext, CUstream> streams;  // per-thread default streams
};

// A kernel of a library. Kept as long as the simulator, since nodes name it.
struct LoadedKernel {
  CUlibrary library = nullptr;  // null: unloaded
  std::string name;
  bool is_known = false;  // its parameters are
  std::vector<std::uint32_t> sizes, offsets;
  driver::KernelIdentity identity{};
};

// kMapped: memory at a reserved address. kRegistered: the host's, which somebody made pinned. kVariable: a library's.
enum class Origin { kAllocated, kMapped, kRegistered, kVariable };

struct Allocation {
  std::size_t bytes = 0;
  bool on_device = false;
  CUcontext context = nullptr;
  std::uint64_t buffer_id = 0;
  GraphMemory* of_graph = nullptr;  // null: an ordinary one
  Origin origin = Origin::kAllocated;
};

// Memory of a device without an address: a file, which may be mapped several times.
struct PhysicalMemory {
  ~PhysicalMemory();
  int fd = -1;
  std::size_t bytes = 0;
  int device = 0;
  std::size_t* used_bytes = nullptr;  // of the device
};

struct Mapping {
  std::size_t bytes = 0;
  std::shared_ptr<PhysicalMemory> memory;  // stays while it is mapped
};

struct State {
  explicit State(SimulatorOptions options_);
  ~State();

  SimulatorOptions options;
  std::recursive_mutex mutex;
  std::mt19937_64 random;

  std::vector<std::unique_ptr<CUctx_st>> contexts;  // primary, by device
  std::uint64_t id;                                 // of this simulator, for what threads remember
  std::list<PerThread> threads;

  std::list<CUstream_st> streams;
  std::unordered_set<CUstream> live_streams;
  std::unordered_map<CUevent, std::unique_ptr<CUevent_st>> events;
  std::list<Capture> captures;
  std::uint64_t next_capture = 1;

  std::map<CUdeviceptr, Allocation> memory;
  std::vector<std::size_t> used_bytes;  // by device
  std::vector<void*> parked;            // freed while a held stream may still use it
  std::map<CUdeviceptr, std::size_t> reservations;
  std::unordered_map<CUmemGenericAllocationHandle, std::shared_ptr<PhysicalMemory>> physical;
  std::map<CUdeviceptr, Mapping> mappings;
  CUmemGenericAllocationHandle last_physical = 0;

  // By the kernel's symbol: several files may have an identity of one kernel.
  std::unordered_map<const void*, const driver::KernelIdentity*> kernels;
  std::map<std::pair<const void*, CUcontext>, std::unique_ptr<CUfunc_st>> functions;
  std::unordered_map<CUfunction, CUfunc_st*> function_handles;
  std::unordered_map<const void*, int> max_dynamic_shared;
  std::unordered_map<const void*, int> carveouts;  // that kernels prefer
  std::unordered_set<const void*> large_clusters;  // kernels that may have clusters beyond the portable size
  std::unordered_map<CUlibrary, std::unique_ptr<CUlib_st>> libraries;
  std::set<CUlinkState> links;
  std::uintptr_t last_link = 0;
  std::list<LoadedKernel> loaded_kernels;  // a CUkernel of one is the address of its identity
  std::map<std::string, const driver::KernelIdentity*, std::less<>> provided;  // see Simulator::provide

  struct LogCallback {
    CUlogsCallback function = nullptr;
    void* data = nullptr;
    std::uintptr_t number = 0;
  };
  std::vector<LogCallback> log_callbacks;
  std::uintptr_t last_log_callback = 0;

  std::list<CUgraphDeviceUpdatableNode_st> updatable_nodes;
  std::unordered_map<CUgraph, std::unique_ptr<CUgraph_st>> graphs;
  std::unordered_set<CUgraphNode> nodes;                                          // of live graphs and of captures
  std::unordered_set<CUgraph> embedded;                                           // inside of live nodes
  std::map<CUgraphConditionalHandle, std::shared_ptr<Conditional>> conditionals;  // of all graphs that there were
  std::unordered_map<CUgraphExec, std::unique_ptr<CUgraphExec_st>> execs;
  std::unordered_map<CUuserObject, std::unique_ptr<CUuserObject_st>> user_objects;
  std::unordered_map<CUexternalSemaphore, std::shared_ptr<CUextSemaphore_st>> semaphores;
};

// The one simulator in force; never null while a call can reach it.
extern State* state;

using Lock = std::lock_guard<std::recursive_mutex>;

// device.cpp
// CUDA_ERROR_NOT_SUPPORTED; cuGetErrorString will say why.
CUresult unsupported(std::string why);
PerThread& this_thread();
CUcontext current_context();
bool is_context(CUcontext context);

// stream.cpp
CUstream find_stream(CUstream handle, CUresult* result);  // default streams need a current context
void enqueue(CUstream stream, std::function<void()> run, std::vector<MarkerRef> gates = {}, MarkerRef done = nullptr);
// The same for work that may have to wait inside: see Work.
void enqueue_steps(CUstream stream, std::function<bool()> run, std::function<bool()> can_run,
                   std::vector<MarkerRef> gates = {}, MarkerRef done = nullptr);
bool run_one();  // false: nothing can run
CUresult run_until(const std::function<bool()>& done);
void run_all();
inline bool is_legacy(CUstream stream) { return stream->context != nullptr && stream == stream->context->legacy; }
bool is_idle();  // no stream has work

// capture.cpp
// 900 and the end of the captures concerned, when this thread may not make unsafe calls now.
CUresult check_unsafe_call();
Capture* find_capture(std::uint64_t id);
// Ends the capture: its streams are ordinary again.
void leave(Capture& capture);
void invalidate(Capture& capture);
// The capture that `stream` is in, ready for a node; sets the result when it cannot take one.
bool is_capturing(CUstream stream, CUresult* result);
CUgraphNode capture_node(CUstream stream, NodeDataRef data, bool programmatic);
// What a captured stream's event record and wait do.
CUresult capture_record(CUstream stream, CUevent event);
CUresult capture_wait(CUstream stream, CUevent event);
// Work in the legacy stream while a blocking stream captures: 906.
CUresult check_implicit_dependency(CUstream stream);

// memory.cpp
// False when the bytes leave an allocation that they begin in.
bool is_accessible(CUdeviceptr address, std::size_t bytes);
const std::pair<const CUdeviceptr, Allocation>* find_allocation(CUdeviceptr address);
CUresult check_copy(const CUDA_MEMCPY3D& copy);
void set_copy(NodeData& node, const CUDA_MEMCPY3D& copy);  // after check_copy
CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS& fill);
void run_copy(const CUDA_MEMCPY3D& copy);
void run_fill(const CUDA_MEMSET_NODE_PARAMS& fill);

CUresult allocate(CUdeviceptr* out, std::size_t bytes, bool on_device, CUcontext context);
void free_variable(CUdeviceptr address);
std::uint64_t next_buffer_id();

// stream_memory.cpp
// The node data of an allocation and of a free; 1 when it cannot be.
CUresult alloc_data(std::size_t bytes, CUcontext context, NodeData& data);
CUresult free_data(CUdeviceptr address, NodeData& data);
// Before a node with `data` is in `graph`, and once it is.
CUresult check_memory_node(const NodeData& data, const CUgraph_st& graph);
void note_memory_node(const NodeData& data, CUgraph graph);
bool has_memory_nodes(const CUgraph_st& graph);  // also inside of it
CUresult check_operations(const std::vector<CUstreamBatchMemOpParams>& operations);
bool is_met(const CUstreamBatchMemOpParams& operation);  // true of a write
void run_operation(const CUstreamBatchMemOpParams& operation);

// external_semaphore.cpp
template <class Params>  // a node's
CUresult semaphore_data(const Params& params, NodeData& data);
bool is_met(const SemaphoreData& data, std::size_t i);  // true of a signal
void run_semaphore(const SemaphoreData& data, std::size_t i);

// exec.cpp
// Operations on memory and on semaphores are steps, one after the other, each of which may have to wait.
std::size_t step_count(const NodeData& node);  // 0: the node has none
bool can_step(const NodeData& node, std::size_t i);
void run_step(const NodeData& node, std::size_t i);
void enqueue_steps_of(CUstream stream, const NodeDataRef& node);

// kernel.cpp
const driver::KernelIdentity* find_kernel(CUfunction function);
CUfunction function_of(const driver::KernelIdentity* kernel, CUcontext context);
CUresult check_launch(const driver::KernelIdentity* kernel, Dim3 grid, Dim3 block, unsigned shared_bytes);
// To what a context has: 0 to -5.
int clamped_priority(int priority);
std::shared_ptr<NodeData> kernel_data(const driver::KernelIdentity* kernel, CUcontext context, Dim3 grid, Dim3 block,
                                      unsigned shared_bytes, void* const* arguments);
// 720, 912: what the attribute asks for does not fit the device or the grid.
CUresult check_attribute(const NodeData& kernel, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
CUresult check_attributes(const NodeData& kernel);
// 801, with its name, when the kernel has no host body.
CUresult check_body(const NodeData& node);

// library.cpp
LoadedKernel* find_loaded(const void* symbol);  // null: part of the program
// Takes over what the image does not say of a loaded kernel: its parameters, its host body.
void learn(LoadedKernel& kernel, const driver::KernelIdentity& identity);

// graph.cpp
CUgraphNodeParams generic_params(const CUDA_KERNEL_NODE_PARAMS_v2& kernel);
CUresult node_data(const CUgraphNodeParams& params, NodeDataRef* data);
CUgraphNode append_node(CUgraph_st& graph, NodeDataRef data, std::vector<Dependency> dependencies);
bool has_updatable_nodes(const CUgraph_st& graph);  // also inside of it
bool has_conditional_nodes(const CUgraph_st& graph);
void forget_nodes(const CUgraph_st& graph);
void embed(CUgraphNode_st& node, std::unique_ptr<CUgraph_st> child);
CUgraph_st* find_graph(CUgraph handle);  // live, captured into, or embedded; null: none

// exec.cpp
Body make_body(const CUgraph_st& graph);
void run_node(const NodeData& node);

}  // namespace cgrt::simulator
