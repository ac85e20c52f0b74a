// One line per public operation.
#include "cgrt/driver/instrument.h"
#include "fault/fault.h"

namespace cgrt::testing {
namespace {

FAULT("DeviceRef::get", { return w.device.get().status(); });
FAULT("DeviceRef::name", { return w.device.name().status(); });
FAULT("DeviceRef::attribute", { return w.device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE).status(); });
FAULT("device_count", { return device_count().status(); });
FAULT("driver_version", { return driver_version().status(); });
FAULT("ContextRef::get", { return ContextRef(w.device).get().status(); });
FAULT("ContextRef::device", {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(w.device).get());
  return ContextRef(context).device().status();
});
FAULT("ScopedContext::enter", {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(w.device).get());
  return ScopedContext::enter(context).status();
});

FAULT("Event::create", { return Event::create(w.device).status(); });
FAULT("EventRef::completion", { return w.event.ref().completion().status(); });
FAULT("EventRef::is_complete", { return w.event.ref().is_complete().status(); });
FAULT("EventRef::synchronize", { return w.event.ref().synchronize(); });
// The simulator has no times: the answer when nothing is failed is kUnimplemented.
FAULT("elapsed_time", {
  CGRT_RETURN_IF_ERROR(w.stream.ref().record(w.timed.ref()));
  CGRT_RETURN_IF_ERROR(w.stream.ref().synchronize());
  const absl::Status status = elapsed_time(w.timed.ref(), w.timed.ref()).status();
  return status.code() == absl::StatusCode::kUnimplemented ? absl::OkStatus() : status;
});

FAULT("Stream::create", { return Stream::create(w.device).status(); });
FAULT("Stream::adopt", {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(w.device));
  const CUstream handle = std::move(stream).release();
  const absl::StatusOr<Stream> adopted = Stream::adopt(handle);
  if (!adopted.ok()) driver::destroy_stream(handle);
  return adopted.status();
});
FAULT("StreamRef::completion", { return w.stream.ref().completion().status(); });
FAULT("StreamRef::is_complete", { return w.stream.ref().is_complete().status(); });
FAULT("StreamRef::is_capturing", { return w.stream.ref().is_capturing().status(); });
FAULT("StreamRef::synchronize", { return w.stream.ref().synchronize(); });
FAULT("StreamRef::record", { return w.stream.ref().record(w.event.ref()); });
FAULT("StreamRef::wait", { return w.side.ref().wait(w.event.ref()); });
FAULT("StreamRef::context", { return StreamRef(w.stream.ref().get()).context().status(); });

FAULT("DeviceBuffer::create", { return DeviceBuffer::create(w.device, 64).status(); });
FAULT("PinnedBuffer::create", { return PinnedBuffer::create(w.device, 64).status(); });
FAULT("copy", { return copy(w.stream.ref(), w.x, w.pinned.data(), 64); });
FAULT("fill8", { return fill8(w.stream.ref(), w.x, 1, 4); });
FAULT("fill16", { return fill16(w.stream.ref(), w.x, 1, 4); });
FAULT("copy", {
  return copy(w.stream.ref(), CopyParams{.destination = w.x,
                                         .source = w.pinned.data(),
                                         .bytes = 8,
                                         .height = 2,
                                         .destination_pitch = 16,
                                         .source_pitch = 16});
});
FAULT("fill", {
  for (const std::uint32_t size : {1u, 2u, 4u}) {
    CGRT_RETURN_IF_ERROR(fill(w.stream.ref(), {w.x, 1, size, 2, 2, 16}));
  }
  return absl::OkStatus();
});
FAULT("record_event", {
  CGRT_RETURN_IF_ERROR(capture(w.stream.ref(), [&](StreamRef s) { return record_event(s, w.event.ref()); }).status());
  return record_event(w.stream.ref(), w.event.ref());
});
FAULT("wait_event", {
  CGRT_RETURN_IF_ERROR(capture(w.stream.ref(), [&](StreamRef s) { return wait_event(s, w.event.ref()); }).status());
  return wait_event(w.stream.ref(), w.event.ref());
});
FAULT("launch_host", {
  CGRT_RETURN_IF_ERROR(launch_host(
      w.stream.ref(), [](void*) {}, nullptr));
  CGRT_RETURN_IF_ERROR(capture(w.stream.ref(), [&](StreamRef s) { return launch_host(s, [] {}); }).status());
  return launch_host(w.stream.ref(), [] {});
});
FAULT("fill32", { return fill32(w.stream.ref(), w.x, 1, 4); });

FAULT("launch", {
  CGRT_RETURN_IF_ERROR(w.step(w.stream.ref()));
  return w.step(w.stream.ref().get());  // a bare handle
});
FAULT("occupancy", { return occupancy(scale_kernel(), w.device, Dim3(64), 0).status(); });
FAULT("suggest_config", { return suggest_config(add_kernel(), w.device, 100).status(); });
FAULT("set_max_shared_bytes", { return set_max_shared_bytes(scale_kernel(), w.device, 1000); });

FAULT("available_shared_bytes", { return available_shared_bytes(scale_kernel(), w.device, Dim3(64), 1).status(); });
FAULT("max_cluster_size", { return max_cluster_size(scale_kernel(), w.device, Dim3(64), 0).status(); });
FAULT("max_active_clusters", { return max_active_clusters(scale_kernel(), w.device, Dim3(2), Dim3(64), 0).status(); });
FAULT("max_cooperative_blocks", { return max_cooperative_blocks(scale_kernel(), w.device, Dim3(64), 0).status(); });
FAULT("preload", { return preload(add_kernel(), w.device); });

FAULT("Graph::create", { return Graph::create(w.device).status(); });
FAULT("Graph::adopt", {
  CUgraph theirs = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&theirs, 0), "cuGraphCreate"));
  const absl::StatusOr<Graph> graph = Graph::adopt(theirs, w.device);
  if (!graph.ok()) driver::destroy_graph(theirs);  // a failed adopt takes nothing
  return graph.status();
});
FAULT("Graph::add_kernel", {
  CGRT_RETURN_IF_ERROR(
      w.graph.add_kernel({programmatic(w.kernel)}, w.kConfig, add_kernel(), w.x, w.x, w.x, 32).status());
  return w.graph.add_kernel(after(w.kernel, w.copied), w.kConfig, scale_kernel(), w.x, w.x, 1.0f, 32).status();
});
FAULT("Graph::add_copy", { return w.graph.add_copy(after(w.kernel), w.x, w.pinned.data(), 64).status(); });
FAULT("Graph::add_fill", { return w.graph.add_fill(after(w.kernel), {w.x, 1, 4, 4}).status(); });
FAULT("Graph::add_empty", {
  Scope scope("named");  // notes where it begins
  return w.graph.add_empty(after(w.kernel)).status();
});
FAULT("Graph::add_kernel", {
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cooperative = true, .cluster = {2}}};
  return w.graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status();
});
FAULT("Graph::add_host", {
  CGRT_RETURN_IF_ERROR(w.graph
                           .add_host(
                               {}, [](void*) {}, nullptr)
                           .status());
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.add_host({}, [] {}).status();
});
FAULT("Graph::add_event_record", { return w.graph.add_event_record({}, w.event.ref()).status(); });
FAULT("Graph::add_event_wait", { return w.graph.add_event_wait({}, w.event.ref()).status(); });
FAULT("Graph::add_child", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_RETURN_IF_ERROR(graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status());
  CGRT_RETURN_IF_ERROR(w.graph.add_child({}, graph).status());
  return w.graph.add_child({}, std::move(graph)).status();
});
FAULT("Graph::clone", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  CGRT_RETURN_IF_ERROR(graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status());
  CGRT_RETURN_IF_ERROR(graph.add_child({}, w.graph).status());
  return graph.clone().status();
});
FAULT("Graph::find_in_clone", {
  CGRT_ASSIGN_OR_RETURN(Graph copy, w.graph.clone());
  return copy.find_in_clone(w.kernel).status();
});
FAULT("Graph::keep", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.keep(std::make_shared<const int>(1));
});
FAULT("Graph::node_count", { return w.graph.node_count().status(); });
FAULT("Cursor::add_kernel", { return w.step(w.graph.cursor()); });
FAULT("Cursor::add_copy", { return copy(w.graph.cursor(after(w.kernel)), w.x, w.pinned.data(), 64); });
FAULT("Cursor::add_fill", { return fill32(w.graph.cursor(), w.x, 1, 4); });
FAULT("Cursor::add_empty", { return w.graph.cursor().add_empty(); });
FAULT("Cursor::add_child", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  CGRT_RETURN_IF_ERROR(w.graph.cursor().add_child(graph));
  return w.graph.cursor().add_child(std::move(graph));
});
FAULT("Cursor::add_host", { return w.graph.cursor().add_host({[](void*) {}, nullptr}); });
FAULT("Cursor::add_event_record", { return record_event(w.graph.cursor(), w.event.ref()); });
FAULT("Cursor::add_event_wait", { return wait_event(w.graph.cursor(), w.event.ref()); });
FAULT("Cursor::keep", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.cursor().keep(std::make_shared<const int>(1));
});
FAULT("Cursor::context", { return w.graph.cursor().context().status(); });
FAULT("capture", {
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
FAULT("snapshot", {
  CGRT_RETURN_IF_ERROR(snapshot(w.graph.ref()).status());
  return snapshot(w.graph).status();
});

FAULT("instantiate", { return instantiate(w.graph).status(); });
FAULT("GraphExec::launch", { return w.exec.launch(w.stream.ref()); });
FAULT("GraphExec::upload", { return w.exec.upload(w.stream.ref()); });
FAULT("GraphExec::set_params", {
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
FAULT("GraphExec::set_enabled", { return w.exec.set_enabled(w.kernel, NodeState::kDisabled); });
FAULT("GraphExec::enabled", { return w.exec.enabled(w.kernel).status(); });
FAULT("GraphExec::update", { return w.exec.update(w.graph).status(); });

FAULT("capture", {
  const LaunchConfig config{.grid = 2, .block = 64, .attributes = {.cluster = {2}}};
  return capture(w.stream.ref(), [&](StreamRef s) { return launch(s, config, scale_kernel(), w.x, w.x, 1.0f, 32); })
      .status();
});

// Operations that fail by themselves: their error paths make driver calls too.
FAULT("and::a device that does not exist",
      { return DeviceRef(9).get().ok() ? absl::InternalError("device 9 exists") : absl::OkStatus(); });
FAULT("and::a resource for a graph that is gone", {
  CUgraph gone = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphCreate(&gone, 0), "cuGraphCreate"));
  driver::destroy_graph(gone);
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::adopt(gone, w.device));
  return graph.keep(std::make_shared<const int>(1)).ok() ? absl::InternalError("kept") : absl::OkStatus();
});
FAULT("and::a launch too large", {
  const absl::Status status =
      launch(w.stream.ref(), {.grid = 1, .block = 64, .shared_bytes = 60000}, scale_kernel(), w.x, w.x, 1.0f, 32);
  return status.ok() ? absl::InternalError("60000 bytes were taken") : absl::OkStatus();
});
FAULT("and::a node whose attributes are refused", {
  const LaunchConfig config{.grid = 100000, .block = 64, .attributes = {.cooperative = true}};
  const absl::Status status = w.graph.add_kernel({}, config, scale_kernel(), w.x, w.x, 1.0f, 32).status();
  return status.ok() ? absl::InternalError("100000 blocks were taken") : absl::OkStatus();
});
FAULT_WHILE_FAILING("cuGraphInstantiateWithParams", "and::instantiate without memory", {
  static_cast<void>(instantiate(w.graph));  // succeeds once memory is there again
  return absl::OkStatus();
});
FAULT("and::unjoined work in a capture", {
  const absl::Status status = capture(w.stream.ref(), [&](StreamRef s) -> absl::Status {
                                CGRT_RETURN_IF_ERROR(w.step(s));
                                CGRT_RETURN_IF_ERROR(s.record(w.event.ref()));
                                CGRT_RETURN_IF_ERROR(w.side.ref().wait(w.event.ref()));
                                return w.step(w.side.ref());
                              }).status();
  return status.ok() ? absl::InternalError("unjoined work was taken") : absl::OkStatus();
});
FAULT("and::an update with another topology", {
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(w.device));
  for (int i = 0; i < 3; ++i) CGRT_RETURN_IF_ERROR(w.step(other.cursor()));
  CGRT_ASSIGN_OR_RETURN(UpdateReport report, w.exec.update(other));
  return report.rung == UpdateRung::kRefused ? absl::OkStatus() : absl::InternalError("taken over");
});

}  // namespace
}  // namespace cgrt::testing
