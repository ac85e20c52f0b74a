#include "operations/operations.h"

#include "cgrt/driver/api.h"
#include "cgrt/driver/capture_log.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "support/loaded_kernels.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {

std::vector<Operation>& operations() {
  static std::vector<Operation> all;
  return all;
}

namespace {

Graph make_graph(DeviceRef device) { return *Graph::create(device); }

ExternalSemaphore make_semaphore() {
  const absl::StatusOr<TestSemaphore> made = TestSemaphore::create(SemaphoreKind::kTimeline);
  return made.ok() ? made->imported().value() : ExternalSemaphore();
}

}  // namespace

Objects::Objects(Semaphore wanted)
    : stream(*Stream::create(device)),
      side(*Stream::create(device)),
      event(*Event::create(device)),
      timed(*Event::create(device, EventTiming::kEnabled)),
      buffer(*DeviceBuffer::create(device, 256)),
      pinned(*PinnedBuffer::create(device, 256)),
      graph(make_graph(device)),
      kernel(*graph.add_kernel({}, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 1.0f, 32)),
      copied(*graph.add_copy(after(kernel), buffer.data(), pinned.data(), 64)),
      filled(*graph.add_fill(after(kernel), {buffer.data(), 0, 4, 8})),
      host(*graph.add_host(
          after(kernel), [](void*) {}, nullptr)),
      recorded(*graph.add_event_record(after(kernel), timed.ref())),
      waited(*graph.add_event_wait(after(kernel), timed.ref())),
      child(*graph.add_child(after(kernel), make_graph(device))),
      exec(*instantiate(graph)),
      semaphore(wanted == Semaphore::kTimeline ? make_semaphore() : ExternalSemaphore()),
      x(buffer.as<float>()) {
  static_cast<void>(stream.ref().record(event.ref()));
  static_cast<void>(stream.ref().record(timed.ref()));
  static_cast<void>(stream.ref().synchronize());
}

namespace {

OPERATION("DeviceRef::get", { return w.device.get().status(); });
OPERATION("DeviceRef::name", { return w.device.name().status(); });
OPERATION("DeviceRef::attribute", { return w.device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE).status(); });
OPERATION("device_count", { return device_count().status(); });
OPERATION("driver_version", { return driver_version().status(); });
OPERATION("ContextRef::get", { return ContextRef(w.device).get().status(); });
OPERATION("ContextRef::device", {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(w.device).get());
  return ContextRef(context).device().status();
});
OPERATION("ScopedContext::enter", {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(w.device).get());
  return ScopedContext::enter(context).status();
});

OPERATION("Event::create", { return Event::create(w.device).status(); });
OPERATION("EventRef::completion", { return w.event.ref().completion().status(); });
OPERATION("EventRef::is_complete", { return w.event.ref().is_complete().status(); });
OPERATION("EventRef::synchronize", { return w.event.ref().synchronize(); });
// The simulator has no times: the answer when nothing is failed is kUnimplemented.
OPERATION("elapsed_time", {
  const absl::Status status = elapsed_time(w.timed.ref(), w.timed.ref()).status();
  return status.code() == absl::StatusCode::kUnimplemented ? absl::OkStatus() : status;
});

OPERATION("Stream::create", { return Stream::create(w.device).status(); });
OPERATION("Stream::adopt", {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(w.device));
  const CUstream handle = std::move(stream).release();
  const absl::StatusOr<Stream> adopted = Stream::adopt(handle);
  if (!adopted.ok()) driver::destroy_stream(handle);
  return adopted.status();
});
OPERATION("StreamRef::completion", { return w.stream.ref().completion().status(); });
OPERATION("StreamRef::is_complete", { return w.stream.ref().is_complete().status(); });
OPERATION("StreamRef::is_capturing", { return w.stream.ref().is_capturing().status(); });
OPERATION("StreamRef::synchronize", { return w.stream.ref().synchronize(); });
OPERATION("StreamRef::record", { return w.stream.ref().record(w.event.ref()); });
OPERATION("StreamRef::wait", { return w.side.ref().wait(w.event.ref()); });
OPERATION("StreamRef::context", { return StreamRef(w.stream.ref().get()).context().status(); });

OPERATION("DeviceBuffer::create", { return DeviceBuffer::create(w.device, 64).status(); });
OPERATION("PinnedBuffer::create", { return PinnedBuffer::create(w.device, 64).status(); });
OPERATION("copy", { return copy(w.stream.ref(), w.x, w.pinned.data(), 64); });
OPERATION("fill8", { return fill8(w.stream.ref(), w.x, 1, 4); });
OPERATION("fill16", { return fill16(w.stream.ref(), w.x, 1, 4); });
OPERATION("copy", {
  return copy(w.stream.ref(), CopyParams{.destination = w.x,
                                         .source = w.pinned.data(),
                                         .bytes = 8,
                                         .height = 2,
                                         .destination_pitch = 16,
                                         .source_pitch = 16});
});
OPERATION("fill", {
  for (const std::uint32_t size : {1u, 2u, 4u}) {
    CGRT_RETURN_IF_ERROR(fill(w.stream.ref(), {w.x, 1, size, 2, 2, 16}));
  }
  return absl::OkStatus();
});
OPERATION("allocate_async", {
  CGRT_ASSIGN_OR_RETURN(void* const memory, allocate_async(w.stream.ref(), 64));
  return free_async(w.stream.ref(), memory);
});
OPERATION("free_async", {
  CGRT_ASSIGN_OR_RETURN(void* const memory, allocate_async(w.side.ref(), 64));
  return free_async(w.side.ref(), memory);
});
OPERATION("memory_ops", {
  const MemoryOp ops[] = {write_op(reinterpret_cast<std::uint32_t*>(w.x), 7u),
                          wait_op(reinterpret_cast<const std::uint32_t*>(w.x), 7u)};
  return memory_ops(w.stream.ref(), ops);
});
OPERATION("write_value", { return write_value(w.stream.ref(), w.pinned.as<std::uint64_t>(), std::uint64_t{3}); });
OPERATION("wait_value", {
  CGRT_RETURN_IF_ERROR(write_value(w.stream.ref(), w.pinned.as<std::uint64_t>(), std::uint64_t{3}));
  return wait_value(w.stream.ref(), w.pinned.as<std::uint64_t>(), std::uint64_t{3}, WaitCondition::kEqual);
});
OPERATION("record_event", { return record_event(w.stream.ref(), w.event.ref()); });
OPERATION("wait_event", { return wait_event(w.stream.ref(), w.event.ref()); });
OPERATION("launch_host", {
  CGRT_RETURN_IF_ERROR(launch_host(
      w.stream.ref(), [](void*) {}, nullptr));
  return launch_host(w.stream.ref(), [] {});
});
OPERATION("and::captured events and host functions", {
  return capture(w.stream.ref(),
                 [&](StreamRef s) -> absl::Status {
                   CGRT_RETURN_IF_ERROR(record_event(s, w.event.ref()));
                   CGRT_RETURN_IF_ERROR(wait_event(s, w.event.ref()));
                   return launch_host(s, [] {});
                 })
      .status();
});
OPERATION("fill32", { return fill32(w.stream.ref(), w.x, 1, 4); });

OPERATION("launch", {
  CGRT_RETURN_IF_ERROR(w.step(w.stream.ref()));
  return w.step(w.stream.ref().get());  // a bare handle
});
OPERATION("SideStreams::create", { return SideStreams::create(w.device, 2).status(); });
OPERATION("fork_join", {
  CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(w.device, 2));
  const auto step = [&](LaunchTarget target) { return w.step(target); };
  return fork_join(w.stream.ref(), sides, {step, step, step});
});
OPERATION("GraphPool::create", { return GraphPool::create(w.device, 4096).status(); });
OPERATION("GraphPool::allocate", {
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(w.device, 4096));
  CGRT_RETURN_IF_ERROR(pool.allocate(w.stream.ref(), 64).status());
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  return pool.allocate(cursor, 64).status();
});
OPERATION("GraphPool::allocate", {  // in a capture
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(w.device, 4096));
  return capture(w.side.ref(), [&](StreamRef s) { return pool.allocate(s, 64).status(); }).status();
});
OPERATION("GraphPool::free", {
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(w.device, 4096));
  CGRT_ASSIGN_OR_RETURN(void* const block, pool.allocate(w.stream.ref(), 64));
  return pool.free(block);
});
OPERATION("occupancy", { return occupancy(scale_kernel(), w.device, Dim3(64), 0).status(); });
OPERATION("suggest_config", { return suggest_config(add_kernel(), w.device, 100).status(); });
OPERATION("set_max_shared_bytes", { return set_max_shared_bytes(scale_kernel(), w.device, 1000); });

OPERATION("allow_large_clusters", {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(w.device, loaded_cubin()));
  CGRT_ASSIGN_OR_RETURN(const auto kernel, library.kernel<loaded_cluster_width>("cluster_width"));
  return allow_large_clusters(kernel, w.device);
});
OPERATION("available_shared_bytes", { return available_shared_bytes(scale_kernel(), w.device, Dim3(64), 1).status(); });
OPERATION("max_cluster_size", { return max_cluster_size(scale_kernel(), w.device, Dim3(64), 0).status(); });
OPERATION("max_active_clusters",
          { return max_active_clusters(scale_kernel(), w.device, Dim3(2), Dim3(64), 0).status(); });
OPERATION("max_cooperative_blocks", { return max_cooperative_blocks(scale_kernel(), w.device, Dim3(64), 0).status(); });
OPERATION("preload", { return preload(add_kernel(), w.device); });

OPERATION("Library::load", { return Library::load(w.device, loaded_cubin()).status(); });
OPERATION("Library::kernel", {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(w.device, loaded_ptx()));
  CGRT_ASSIGN_OR_RETURN(const auto scale, library.kernel<loaded_scale>("scale"));
  CGRT_RETURN_IF_ERROR((library.kernel<Range, float*, short>("fill").status()));
  return launch(w.side.ref(), w.kConfig, scale, w.x, w.x, 1.0f, 32);
});
OPERATION("Library::kernel_ref", {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(w.device, loaded_ptx()));
  return library.kernel_ref("fill").status();
});
OPERATION("Library::kernel_names", {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(w.device, loaded_ptx()));
  return library.kernel_names().status();
});
OPERATION("ForeignKernel::adopt", {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(*scale_kernel().identity(), &kernel), "resolve"));
  CGRT_RETURN_IF_ERROR(ForeignKernel::adopt(kernel, w.device).status());
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(w.device).get());
  {
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().KernelGetFunction(&function, kernel), "cuKernelGetFunction"));
  }
  CGRT_ASSIGN_OR_RETURN(const ForeignKernel foreign, ForeignKernel::adopt(function, w.device));
  CGRT_RETURN_IF_ERROR(occupancy(foreign.ref(), w.device, Dim3(64), 0).status());
  CGRT_ASSIGN_OR_RETURN(const auto scale, foreign.as<float*, const float*, float, int>());
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.add_kernel({}, w.kConfig, scale, w.x, w.x, 1.0f, 32).status();
});
OPERATION("ForeignKernel::as", {
  CUkernel kernel = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(*scale_kernel().identity(), &kernel), "resolve"));
  CGRT_ASSIGN_OR_RETURN(const ForeignKernel foreign, ForeignKernel::adopt(kernel, w.device));
  return foreign.as<float*, const float*, float, int>().status();
});

OPERATION("Graph::create", { return Graph::create(w.device).status(); });
OPERATION("Graph::adopt", {
  CUgraph theirs = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&theirs, 0), "cuGraphCreate"));
  const absl::StatusOr<Graph> graph = Graph::adopt(theirs, w.device);
  if (!graph.ok()) driver::destroy_graph(theirs);  // a failed adopt takes nothing
  return graph.status();
});
OPERATION("Graph::add_kernel", {
  CGRT_RETURN_IF_ERROR(
      w.graph.add_kernel({programmatic(w.kernel)}, w.kConfig, add_kernel(), w.x, w.x, w.x, 32).status());
  return w.graph.add_kernel(after(w.kernel, w.copied), w.kConfig, scale_kernel(), w.x, w.x, 1.0f, 32).status();
});
OPERATION("Graph::add_copy", { return w.graph.add_copy(after(w.kernel), w.x, w.pinned.data(), 64).status(); });
OPERATION("Graph::add_fill", { return w.graph.add_fill(after(w.kernel), {w.x, 1, 4, 4}).status(); });
OPERATION("Graph::add_empty", {
  Scope scope("named");  // notes where it begins
  return w.graph.add_empty(after(w.kernel)).status();
});
OPERATION("Graph::add_kernel", {
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cooperative = true, .cluster = {2}}};
  return w.graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status();
});
OPERATION("Graph::add_host", {
  CGRT_RETURN_IF_ERROR(w.graph
                           .add_host(
                               {}, [](void*) {}, nullptr)
                           .status());
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.add_host({}, [] {}).status();
});
OPERATION("Graph::add_event_record", { return w.graph.add_event_record({}, w.event.ref()).status(); });
OPERATION("Graph::add_event_wait", { return w.graph.add_event_wait({}, w.event.ref()).status(); });
OPERATION("Graph::add_alloc", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(graph.add_alloc({}, 64).status());
  return snapshot(graph).status();
});
OPERATION("Graph::add_free", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, 64));
  CGRT_RETURN_IF_ERROR(graph.add_free(after(memory.node), memory.address).status());
  return snapshot(graph).status();
});
OPERATION("Graph::add_memory_ops", {
  const MemoryOp op = write_op(reinterpret_cast<std::uint32_t*>(w.x), 7u);
  CGRT_RETURN_IF_ERROR(w.graph.add_memory_ops({}, {&op, 1}).status());
  return snapshot(w.graph).status();
});
OPERATION("Cursor::add_alloc", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return allocate_async(graph.cursor(), 64).status();
});
OPERATION("Cursor::add_free", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor place = graph.cursor();
  CGRT_ASSIGN_OR_RETURN(void* const memory, allocate_async(place, 64));
  return free_async(place, memory);
});
OPERATION("Cursor::add_memory_ops",
          { return write_value(w.graph.cursor(), reinterpret_cast<std::uint32_t*>(w.x), 7u); });
OPERATION("Graph::add_child", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_RETURN_IF_ERROR(graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status());
  CGRT_RETURN_IF_ERROR(w.graph.add_child({}, graph).status());
  return w.graph.add_child({}, std::move(graph)).status();
});
OPERATION("Graph::remove", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_ASSIGN_OR_RETURN(const KernelNode first, graph.add_kernel({}, w.kConfig, scale_kernel(), w.x, w.x, 1.0f, 32));
  CGRT_RETURN_IF_ERROR(graph.add_kernel(after(first), config, scale_kernel(), w.x, w.x, 1.0f, 32).status());
  return graph.remove(first);
});
OPERATION("Graph::add_edge", {
  CGRT_ASSIGN_OR_RETURN(const EmptyNode last, w.graph.add_empty({}));
  return w.graph.add_edge(launched(w.kernel), last);
});
OPERATION("Graph::remove_edge", {
  CGRT_ASSIGN_OR_RETURN(const EmptyNode last, w.graph.add_empty(after(w.kernel)));
  return w.graph.remove_edge(w.kernel, last);
});
OPERATION("Graph::set_params", {
  CGRT_RETURN_IF_ERROR(w.graph.set_params(w.kernel, w.kConfig, scale_kernel(), w.x, w.x, 3.0f, 32));
  CGRT_RETURN_IF_ERROR(w.graph.set_params(w.copied, CopyParams{w.x, w.pinned.data(), 32}));
  CGRT_RETURN_IF_ERROR(w.graph.set_params(w.filled, FillParams{w.x, 2, 4, 4}));
  CGRT_RETURN_IF_ERROR(w.graph.set_params(
      w.host, [](void*) {}, nullptr));
  CGRT_RETURN_IF_ERROR(w.graph.set_params(w.recorded, w.event.ref()));
  CGRT_RETURN_IF_ERROR(w.graph.set_params(w.waited, w.event.ref()));
  const MemoryOp op = write_op(reinterpret_cast<std::uint32_t*>(w.x), 7u);
  CGRT_ASSIGN_OR_RETURN(const BatchMemOpNode node, w.graph.add_memory_ops({}, {&op, 1}));
  return w.graph.set_params(node, {&op, 1});
});
OPERATION("Graph::clone", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_RETURN_IF_ERROR(graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status());
  CGRT_RETURN_IF_ERROR(graph.add_child({}, w.graph).status());
  return graph.clone().status();
});
OPERATION("Graph::find_in_clone", {
  CGRT_ASSIGN_OR_RETURN(Graph copy, w.graph.clone());
  return copy.find_in_clone(w.kernel).status();
});
OPERATION("Graph::keep", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.keep(std::make_shared<const int>(1));
});
OPERATION("Graph::node_count", { return w.graph.node_count().status(); });
OPERATION("Cursor::add_kernel", { return w.step(w.graph.cursor()); });
OPERATION("Cursor::add_copy", { return copy(w.graph.cursor(after(w.kernel)), w.x, w.pinned.data(), 64); });
OPERATION("Cursor::add_fill", { return fill32(w.graph.cursor(), w.x, 1, 4); });
OPERATION("Cursor::add_empty", { return w.graph.cursor().add_empty(); });
OPERATION("Cursor::add_child", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.graph.cursor().add_child(graph));
  return w.graph.cursor().add_child(std::move(graph));
});
OPERATION("Graph::add_conditional_handle", { return w.graph.add_conditional_handle(1).status(); });
OPERATION("Graph::add_if", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.add_if({}, handle).status();
});
OPERATION("Graph::add_if_else", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.add_if_else({}, handle).status();
});
OPERATION("Graph::add_while", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.add_while({}, handle).status();
});
OPERATION("Graph::add_switch", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional node, w.graph.add_switch({}, handle, 2));
  return w.step(node.bodies[1].cursor());
});
OPERATION("Cursor::add_if", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.cursor().add_if(handle).status();
});
OPERATION("Cursor::add_if_else", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.cursor().add_if_else(handle).status();
});
OPERATION("Cursor::add_while", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.cursor().add_while(handle).status();
});
OPERATION("Cursor::add_switch", {
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, w.graph.add_conditional_handle(1));
  return w.graph.cursor().add_switch(handle, 2).status();
});
OPERATION("Cursor::add_host", { return w.graph.cursor().add_host({[](void*) {}, nullptr}); });
OPERATION("Cursor::add_event_record", { return record_event(w.graph.cursor(), w.event.ref()); });
OPERATION("Cursor::add_event_wait", { return wait_event(w.graph.cursor(), w.event.ref()); });
OPERATION("Cursor::fork_join", {
  SideStreams none;
  const auto step = [&](LaunchTarget target) { return w.step(target); };
  Cursor cursor = w.graph.cursor();
  return fork_join(cursor, none, {step, step});
});
OPERATION("Cursor::keep", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.cursor().keep(std::make_shared<const int>(1));
});
OPERATION("Cursor::context", { return w.graph.cursor().context().status(); });
OPERATION("capture_into", {
  Cursor place = w.graph.cursor(after(w.kernel));
  return capture_into(place, w.stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(w.step(s));
    return w.step(s);
  });
});
OPERATION("capture", {
  return capture(w.stream.ref(),
                 [&](StreamRef s) -> absl::Status {
                   Scope scope("captured");
                   CGRT_RETURN_IF_ERROR(w.step(s));
                   CGRT_RETURN_IF_ERROR(s.record(w.event.ref()));
                   CGRT_RETURN_IF_ERROR(w.side.ref().wait(w.event.ref()));
                   CGRT_RETURN_IF_ERROR(fill32(w.side.ref(), w.x, 0, 4));
                   CGRT_RETURN_IF_ERROR(w.side.ref().record(w.event.ref()));
                   CGRT_RETURN_IF_ERROR(s.wait(w.event.ref()));
                   return copy(s, w.x, w.pinned.data(), 64);
                 })
      .status();
});
OPERATION("snapshot", {
  CGRT_RETURN_IF_ERROR(snapshot(w.graph.ref()).status());
  std::vector<AllocationId> ids;
  CGRT_RETURN_IF_ERROR(snapshot(
                           w.graph.ref(), [](CUgraphNode) -> const NodeNote* { return nullptr; }, ids)
                           .status());
  return snapshot(w.graph).status();
});

OPERATION("list_nodes", {
  CGRT_RETURN_IF_ERROR(list_nodes(w.graph.ref()).status());
  return list_nodes(w.graph).status();
});
OPERATION("list_edges", {
  CGRT_RETURN_IF_ERROR(list_edges(w.graph.ref()).status());
  return list_edges(w.graph).status();
});
OPERATION("find_node", { return find_node<KernelNode>(w.graph, {.name = "scale"}).status(); });

OPERATION("add_programmatic_edges", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  for (int i = 0; i < 3; ++i) {
    CGRT_RETURN_IF_ERROR(launch(cursor, w.kConfig, waiting_kernel(), w.x, w.x, 1.0f, 32));
  }
  return add_programmatic_edges(graph).status();
});
OPERATION("remove_programmatic_edges", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  for (int i = 0; i < 3; ++i) {
    CGRT_RETURN_IF_ERROR(launch(cursor.programmatic(), w.kConfig, waiting_kernel(), w.x, w.x, 1.0f, 32));
  }
  return remove_programmatic_edges(graph).status();
});

OPERATION("instantiate", { return instantiate(w.graph).status(); });
OPERATION("GraphExec::launch", { return w.exec.launch(w.stream.ref()); });
OPERATION("GraphExec::upload", { return w.exec.upload(w.stream.ref()); });
OPERATION("GraphExec::set_params", {
  CGRT_RETURN_IF_ERROR(w.exec.set_params(w.kernel, w.kConfig, scale_kernel(), w.x, w.x, 3.0f, 32));
  CGRT_RETURN_IF_ERROR(w.exec.set_params(w.copied, CopyParams{w.x, w.pinned.data(), 32}));
  CGRT_RETURN_IF_ERROR(w.exec.set_params(w.filled, FillParams{w.x, 2, 4, 4}));
  CGRT_RETURN_IF_ERROR(w.exec.set_params(
      w.host, [](void*) {}, nullptr));
  CGRT_RETURN_IF_ERROR(w.exec.set_params(w.recorded, w.event.ref()));
  CGRT_RETURN_IF_ERROR(w.exec.set_params(w.waited, w.event.ref()));
  CGRT_ASSIGN_OR_RETURN(Graph empty, Graph::create(w.device));
  return w.exec.set_params(w.child, empty);
});
OPERATION("GraphExec::set_enabled", { return w.exec.set_enabled(w.kernel, NodeState::kDisabled); });
OPERATION("GraphExec::enabled", { return w.exec.enabled(w.kernel).status(); });
OPERATION("GraphExec::update", { return w.exec.update(w.graph); });
OPERATION("GraphExec::try_update", { return w.exec.try_update(w.graph).status(); });
OPERATION("GraphExec::update_or_instantiate", {
  CGRT_RETURN_IF_ERROR(w.exec.update_or_instantiate(w.graph).status());
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.step(other.cursor()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(other));
  return exec.update_or_instantiate(w.graph).status();
});
OPERATION("GraphExec::find_blockers", {
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(w.step(cursor));
  CGRT_RETURN_IF_ERROR(copy(cursor, w.x, w.pinned.data(), 64));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(w.device));
  Cursor place = other.cursor();
  CGRT_RETURN_IF_ERROR(launch(place, config, scale_kernel(), w.x, w.x, 1.0f, 32));
  CGRT_RETURN_IF_ERROR(copy(place, w.x, w.pinned.data(), 32));
  return exec.find_blockers(other).status();
});
OPERATION("GraphExec::guard_addresses", {
  CGRT_ASSIGN_OR_RETURN(Graph inner, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.step(inner.cursor()));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(w.step(cursor));
  CGRT_RETURN_IF_ERROR(fill32(cursor, w.x, 0, 8));
  CGRT_ASSIGN_OR_RETURN(const ChildGraphNode child, graph.add_child({}, inner));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  CGRT_RETURN_IF_ERROR(exec.set_params(child, inner));
  CGRT_RETURN_IF_ERROR(exec.update(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(w.stream.ref()));
  CGRT_ASSIGN_OR_RETURN(GraphExec rebound, instantiate_rebindable(inner));
  CGRT_RETURN_IF_ERROR(rebound.guard_addresses());
  CGRT_RETURN_IF_ERROR(rebound.rebind([&](LaunchTarget target) { return w.step(target); }));
  return rebound.launch(w.stream.ref());
});
OPERATION("advise", { return advise(w.graph, {.arguments = 1}).status(); });
OPERATION("instantiate_rebindable", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(w.step(cursor));
  CGRT_RETURN_IF_ERROR(copy(cursor, w.x, w.pinned.data(), 64));
  CGRT_RETURN_IF_ERROR(fill32(cursor, w.x, 0, 8));
  CGRT_RETURN_IF_ERROR(launch_host(
      cursor, [](void*) {}, nullptr));
  CGRT_RETURN_IF_ERROR(record_event(cursor, w.timed.ref()));
  CGRT_RETURN_IF_ERROR(wait_event(cursor, w.timed.ref()));
  return instantiate_rebindable(graph).status();
});
OPERATION("instantiate_rebindable", {  // with memory of its own
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, 64));
  CGRT_RETURN_IF_ERROR(graph.add_free(after(memory.node), memory.address).status());
  return instantiate_rebindable(graph).status();
});
OPERATION("GraphExec::rebind", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const auto step = [&](LaunchTarget target, float factor) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, w.kConfig, scale_kernel(), w.x, w.x, factor, 32));
    CGRT_RETURN_IF_ERROR(fill32(target, w.x, factor == 1.0f ? 0 : 1, 8));
    return copy(target, w.pinned.data(), w.x, factor == 1.0f ? 32 : 64);
  };
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(step(cursor, 1.0f));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, 2.0f); }));
  CGRT_RETURN_IF_ERROR(exec.launch(w.stream.ref()));
  CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, 1.0f); }));
  return exec.launch(w.side.ref());
});
OPERATION("GraphExec::rebind_buffer", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(w.step(cursor));
  CGRT_RETURN_IF_ERROR(fill32(cursor, w.x, 0, 8));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.rebind_buffer(w.x, 128, w.x + 32).status());
  return exec.launch(w.stream.ref());
});
OPERATION("GraphExec::rebind_buffer", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(w.step(cursor));
  CGRT_RETURN_IF_ERROR(fill32(cursor, w.x, 0, 8));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const std::vector<BufferUse> uses, exec.find_buffer(w.x, 128));
  return exec.rebind_buffer(uses, w.x + 32);
});
OPERATION("GraphExec::find_buffer", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.step(graph.cursor()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  return exec.find_buffer(w.x, 128).status();
});
OPERATION("GraphExec::prepare", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.step(graph.cursor()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const Binding binding, exec.prepare([&](LaunchTarget target) {
    return launch(target, w.kConfig, scale_kernel(), w.x, w.x, 3.0f, 16);
  }));
  CGRT_RETURN_IF_ERROR(exec.rebind(binding));
  return exec.launch(w.stream.ref());
});
OPERATION("GraphExec::slot", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const KernelNode node, graph.add_kernel({}, w.kConfig, scale_kernel(), w.x, w.x, 2.0f, 32));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  return exec.slot<float>(node, 2).status();
});
OPERATION("GraphExec::set", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const KernelNode node, graph.add_kernel({}, w.kConfig, scale_kernel(), w.x, w.x, 2.0f, 32));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const Slot<float> factor, exec.slot<float>(node, 2));
  CGRT_RETURN_IF_ERROR(exec.set(factor, 4.0f));
  return exec.launch(w.stream.ref());
});
OPERATION("GraphExec::set_grid", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const KernelNode node, graph.add_kernel({}, w.kConfig, scale_kernel(), w.x, w.x, 2.0f, 32));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.set_grid(node, Dim3(2)));
  return exec.launch(w.stream.ref());
});
absl::Status clusters_of(LaunchTarget target, std::uint32_t blocks, Objects& w) {
  return launch(target, {.grid = 4, .block = 64, .attributes = {.cluster = {blocks}}}, cluster_kernel(),
                w.pinned.as<int>());
}
absl::StatusOr<Graph> two_steps(Objects& w) {
  return build_alternatives(w.device, 2, [&](LaunchTarget target, std::size_t i) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = i == 0 ? 64u : 32u}, scale_kernel(), w.x, w.x, 1.0f, 32));
    CGRT_RETURN_IF_ERROR(clusters_of(target, i == 0 ? 4 : 2, w));
    if (i == 1) CGRT_RETURN_IF_ERROR(copy(target, w.pinned.data(), w.x, 32));
    CGRT_RETURN_IF_ERROR(fill32(target, w.x, 0, 8));
    return target.sink()->add_captured([&](CUstream s) { return w.step(s); }, {});
  });
}
OPERATION("build_alternatives", { return two_steps(w).status(); });
OPERATION("GraphExec::rebind", {  // to a step that leaves nodes out, with a library's call that has a key
  CGRT_ASSIGN_OR_RETURN(Graph graph, two_steps(w));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto second = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 32}, scale_kernel(), w.x, w.x, 1.0f, 32));
    CGRT_RETURN_IF_ERROR(clusters_of(target, 2, w));
    CGRT_RETURN_IF_ERROR(copy(target, w.pinned.data(), w.x, 32));
    CGRT_RETURN_IF_ERROR(fill32(target, w.x, 0, 8));
    const std::uint64_t key = 1;
    return target.sink()->add_captured([&](CUstream s) { return w.step(s); }, {&key, 1});
  };
  CGRT_RETURN_IF_ERROR(exec.rebind(second));
  CGRT_RETURN_IF_ERROR(exec.rebind(second));  // with what the first one captured
  return exec.launch(w.stream.ref());
});
OPERATION("Cursor::add_captured", {
  Cursor cursor = w.graph.cursor();
  return cursor.add_captured([&](CUstream s) { return w.step(s); }, {});
});
OPERATION("GraphExec::adopt", {
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(w.graph));
  const CUgraphExec handle = std::move(exec).release();
  const absl::StatusOr<GraphExec> adopted = GraphExec::adopt(handle, w.graph);
  if (!adopted.ok()) driver::destroy_graph_exec(handle);
  return adopted.status();
});

OPERATION("capture_or_run",
          { return capture_or_run(w.stream.ref(), [&](StreamRef s) { return w.step(s); }).status(); });
OPERATION("capture", {  // whose side stream is joined for it
  return capture(
             w.stream.ref(),
             [&](StreamRef s) -> absl::Status {
               CGRT_RETURN_IF_ERROR(w.step(s));
               CGRT_RETURN_IF_ERROR(s.record(w.event.ref()));
               CGRT_RETURN_IF_ERROR(w.side.ref().wait(w.event.ref()));
               return w.step(w.side.ref());
             },
             UnjoinedWork::kJoined)
      .status();
});
OPERATION("capture", {
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  return capture(w.stream.ref(), [&](StreamRef s) { return launch(s, config, scale_kernel(), w.x, w.x, 1.0f, 32); })
      .status();
});

OPERATION("GraphExec::set_params", {  // whose launch attributes are compared
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig low{.grid = 2, .block = 64, .attributes = {.cluster = {2}, .priority = -100}};
  const LaunchConfig clamped{.grid = 2, .block = 64, .attributes = {.cluster = {2}, .priority = -5}};
  CGRT_ASSIGN_OR_RETURN(KernelNode node, graph.add_kernel({}, low, scale_kernel(), w.x, w.x, 1.0f, 32));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  return exec.set_params(node, clamped, scale_kernel(), w.x, w.x, 1.0f, 32);
});
OPERATION("GraphExec::update", {  // by a graph whose attributes only the driver knows
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.step(graph.cursor()));
  CGRT_ASSIGN_OR_RETURN(Graph child, graph.clone());
  CGRT_RETURN_IF_ERROR(graph.add_child({}, child).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(Graph copy, graph.clone());
  CGRT_ASSIGN_OR_RETURN(Graph adopted, Graph::adopt(std::move(copy).release(), w.device));
  return exec.update(adopted);
});

OPERATION("and::the driver's log is listened to, and no longer", {
  const absl::Status status = capture(w.stream.ref(), [&](StreamRef s) { return w.step(s); }).status();
  driver::CaptureLog::stop_listening();
  return status;
});

// Operations that fail by themselves: their error paths make driver calls too.
OPERATION("and::work that runs where it cannot be captured", {
  CGRT_ASSIGN_OR_RETURN(const CapturedOrRun ran, capture_or_run(w.stream.ref(), [&](StreamRef s) -> absl::Status {
                          CGRT_RETURN_IF_ERROR(w.step(s));
                          return s.synchronize();
                        }));
  return ran.is_captured() ? absl::InternalError("a synchronization was captured") : absl::OkStatus();
});
OPERATION("and::a capture that a raw call has ended", {
  const absl::Status status = capture(w.stream.ref(), [&](StreamRef s) -> absl::Status {
                                driver::api().StreamSynchronize(s.get());
                                return w.step(s);
                              }).status();
  return status.ok() ? absl::InternalError("it went on") : absl::OkStatus();
});
OPERATION("and::a device that does not exist",
          { return DeviceRef(9).get().ok() ? absl::InternalError("device 9 exists") : absl::OkStatus(); });
OPERATION("and::a resource for a graph that is gone", {
  CUgraph gone = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&gone, 0), "cuGraphCreate"));
  driver::destroy_graph(gone);
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::adopt(gone, w.device));
  return graph.keep(std::make_shared<const int>(1)).ok() ? absl::InternalError("kept") : absl::OkStatus();
});
OPERATION("and::a launch too large", {
  const absl::Status status =
      launch(w.stream.ref(), {.grid = 1, .block = 64, .shared_bytes = 60000}, scale_kernel(), w.x, w.x, 1.0f, 32);
  return status.ok() ? absl::InternalError("60000 bytes were taken") : absl::OkStatus();
});
OPERATION("and::a node whose attributes are refused", {
  const LaunchConfig config{.grid = 100000, .block = 64, .attributes = {.cooperative = true}};
  const absl::Status status = w.graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status();
  return status.ok() ? absl::InternalError("100000 blocks were taken") : absl::OkStatus();
});
OPERATION_WHILE_FAILING("cuGraphInstantiateWithParams", "and::instantiate without memory", {
  static_cast<void>(instantiate(w.graph));  // succeeds once memory is there again
  return absl::OkStatus();
});
OPERATION("and::a kernel that a library does not have", {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(w.device, loaded_ptx()));
  return library.kernel<float*>("none").ok() ? absl::InternalError("found") : absl::OkStatus();
});
OPERATION_WHILE_FAILING("cuLibraryGetKernel", "and::PTX that cannot be compiled", {
  static_cast<void>(Library::load(w.device, loaded_ptx()));  // succeeds once it can be
  return absl::OkStatus();
});
OPERATION("and::memory that a launch left", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, 64));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  if (graph.clone().ok()) return absl::InternalError("cloned");
  CGRT_RETURN_IF_ERROR(exec.launch(w.stream.ref()));
  const bool is_launched_again = exec.launch(w.stream.ref()).ok();
  static_cast<void>(free_async(w.stream.ref(), memory.address));
  return is_launched_again ? absl::InternalError("launched twice") : absl::OkStatus();
});
OPERATION("and::edges that cannot be", {
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const EmptyNode foreign, other.add_empty({}));
  if (w.graph.add_edge(w.kernel, w.copied).ok()) return absl::InternalError("added twice");
  if (w.graph.remove_edge(w.copied, w.kernel).ok()) return absl::InternalError("removed without being");
  return w.graph.remove(foreign).ok() ? absl::InternalError("a foreign node was removed") : absl::OkStatus();
});
OPERATION("and::a circle", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const EmptyNode first, graph.add_empty({}));
  CGRT_ASSIGN_OR_RETURN(const EmptyNode second, graph.add_empty(after(first)));
  CGRT_RETURN_IF_ERROR(graph.add_edge(NodeRef(second), first));
  return instantiate(graph).ok() ? absl::InternalError("instantiated") : absl::OkStatus();
});
OPERATION("and::unjoined work in a capture", {
  const absl::Status status = capture(w.stream.ref(), [&](StreamRef s) -> absl::Status {
                                CGRT_RETURN_IF_ERROR(w.step(s));
                                CGRT_RETURN_IF_ERROR(s.record(w.event.ref()));
                                CGRT_RETURN_IF_ERROR(w.side.ref().wait(w.event.ref()));
                                return w.step(w.side.ref());
                              }).status();
  return status.ok() ? absl::InternalError("unjoined work was taken") : absl::OkStatus();
});
OPERATION("and::an update with another topology", {
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(w.device));
  for (int i = 0; i < 3; ++i) CGRT_RETURN_IF_ERROR(w.step(other.cursor()));
  CGRT_ASSIGN_OR_RETURN(UpdateReport report, w.exec.try_update(other));
  return report.rung == UpdateRung::kRefused ? absl::OkStatus() : absl::InternalError("taken over");
});

// On machines that have semaphores for tests.
#define SEMAPHORE_OPERATION(name, ...)                                                            \
  static const cgrt::testing::RegisterOperation CGRT_CONCAT(operation_, __LINE__)(                \
      name, []([[maybe_unused]] cgrt::testing::Objects & w) -> absl::Status __VA_ARGS__, nullptr, \
      &cgrt::testing::check_test_semaphores)

SEMAPHORE_OPERATION("ExternalSemaphore::import_fd", {
  CGRT_ASSIGN_OR_RETURN(const TestSemaphore made, TestSemaphore::create(SemaphoreKind::kBinary));
  return made.imported().status();
});
SEMAPHORE_OPERATION("signal_semaphores", {
  const SemaphoreValue value{w.semaphore.get(), 1};
  return signal_semaphores(w.stream, {&value, 1});
});
SEMAPHORE_OPERATION("signal_semaphore", { return signal_semaphore(w.stream, w.semaphore, 1); });
SEMAPHORE_OPERATION("wait_semaphores", {
  CGRT_RETURN_IF_ERROR(signal_semaphore(w.stream, w.semaphore, 1));
  const SemaphoreValue value{w.semaphore.get(), 1};
  return wait_semaphores(w.stream, {&value, 1});
});
SEMAPHORE_OPERATION("wait_semaphore", {
  CGRT_RETURN_IF_ERROR(signal_semaphore(w.stream, w.semaphore, 1));
  return wait_semaphore(w.stream, w.semaphore, 1);
});
SEMAPHORE_OPERATION("Graph::add_semaphore_signal", {
  const SemaphoreValue value{w.semaphore.get(), 1};
  CGRT_RETURN_IF_ERROR(w.graph.add_semaphore_signal({}, {&value, 1}).status());
  return snapshot(w.graph).status();
});
SEMAPHORE_OPERATION("Graph::add_semaphore_wait", {
  const SemaphoreValue value{w.semaphore.get(), 1};
  CGRT_RETURN_IF_ERROR(w.graph.add_semaphore_wait({}, {&value, 1}).status());
  return snapshot(w.graph).status();
});
SEMAPHORE_OPERATION("Cursor::add_semaphores", { return wait_semaphore(w.graph.cursor(), w.semaphore, 1); });
SEMAPHORE_OPERATION("Graph::set_params", {
  SemaphoreValue value{w.semaphore.get(), 1};
  CGRT_ASSIGN_OR_RETURN(const SemaphoreSignalNode signal, w.graph.add_semaphore_signal({}, {&value, 1}));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreWaitNode wait, w.graph.add_semaphore_wait(after(signal), {&value, 1}));
  value.value = 2;
  CGRT_RETURN_IF_ERROR(w.graph.set_params(signal, {&value, 1}));
  return w.graph.set_params(wait, {&value, 1});
});
SEMAPHORE_OPERATION("GraphExec::set_params", {
  SemaphoreValue value{w.semaphore.get(), 1};
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreSignalNode signal, graph.add_semaphore_signal({}, {&value, 1}));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreWaitNode wait, graph.add_semaphore_wait(after(signal), {&value, 1}));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  value.value = 2;
  CGRT_RETURN_IF_ERROR(exec.set_params(signal, {&value, 1}));
  return exec.set_params(wait, {&value, 1});
});

}  // namespace
}  // namespace cgrt::testing
