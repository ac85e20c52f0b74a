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
FAULT("fill32", { return fill32(w.stream.ref(), w.x, 1, 4); });

FAULT("launch", {
  CGRT_RETURN_IF_ERROR(w.step(w.stream.ref()));
  return w.step(w.stream.ref().get());  // a bare handle
});
FAULT("occupancy", { return occupancy(scale_kernel(), w.device, Dim3(64), 0).status(); });
FAULT("suggest_config", { return suggest_config(add_kernel(), w.device, 100).status(); });
FAULT("set_max_shared_bytes", { return set_max_shared_bytes(scale_kernel(), w.device, 1000); });

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
FAULT("Graph::keep", {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(w.device));
  return graph.keep(std::make_shared<const int>(1));
});
FAULT("Graph::node_count", { return w.graph.node_count().status(); });
FAULT("Cursor::add_kernel", { return w.step(w.graph.cursor()); });
FAULT("Cursor::add_copy", { return copy(w.graph.cursor(after(w.kernel)), w.x, w.pinned.data(), 64); });
FAULT("Cursor::add_fill", { return fill32(w.graph.cursor(), w.x, 1, 4); });
FAULT("Cursor::add_empty", { return w.graph.cursor().add_empty(); });
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
  return w.exec.set_params(w.filled, FillParams{w.x, 2, 4, 4});
});
FAULT("GraphExec::update", { return w.exec.update(w.graph).status(); });

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
