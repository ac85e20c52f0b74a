// Captures that fail, and what is left afterwards.
#include <thread>

#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

absl::Status one_kernel(StreamRef stream, const DeviceBuffer& buffer) {
  return launch(stream, kConfig, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 2.0f, kCount);
}

// That the stream still takes work and a capture.
absl::Status note_usable(World& world, Notes& notes, StreamRef stream, const DeviceBuffer& buffer) {
  CGRT_ASSIGN_OR_RETURN(bool capturing, stream.is_capturing());
  EXPECT(!capturing);
  notes.status("eager after", one_kernel(stream, buffer));
  notes.status("synchronize after", stream.synchronize());
  notes.status("capture after", capture(stream, [&](StreamRef s) { return one_kernel(s, buffer); }).status());
  static_cast<void>(world);
  return absl::OkStatus();
}

BEHAVIOUR("a capture whose callback fails keeps the callback's status and leaves the stream usable") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
    return absl::AbortedError("caller gave up");
  });

  EXPECT(graph.status() == absl::AbortedError("caller gave up"));
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("unjoined work is refused and named") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event forked, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
    CGRT_RETURN_IF_ERROR(s.record(forked.ref()));
    CGRT_RETURN_IF_ERROR(side.ref().wait(forked.ref()));
    CGRT_RETURN_IF_ERROR(
        launch(side.ref(), kConfig, shift_kernel(), buffer.as<float>(), buffer.as<float>(), 1.0f, kCount));
    return one_kernel(s, buffer);
  });

  notes.status("capture", graph.status());
  EXPECT(graph.status().message().find("kernel \"cgrt::testing::shift<float>\"") != std::string::npos);
  CGRT_ASSIGN_OR_RETURN(bool side_capturing, side.ref().is_capturing());
  EXPECT(!side_capturing);
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("an allocation inside a capture is refused and is the error that the capture reports") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  for (CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    const absl::StatusOr<Graph> graph = capture(
        stream.ref(),
        [&](StreamRef s) -> absl::Status {
          notes.status("allocate", DeviceBuffer::create(world.device(), 256).status());
          notes.status("launch afterwards", one_kernel(s, buffer));
          return absl::OkStatus();
        },
        mode);
    notes.status("capture", graph.status());
    if (!graph.ok()) EXPECT(graph.status().message().find("cuMemAlloc") != std::string::npos);
  }
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("buffers that die while streams are captured are freed and disturb no capture") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal}) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer device_memory, DeviceBuffer::create(world.device(), 64));
    CGRT_ASSIGN_OR_RETURN(PinnedBuffer pinned, PinnedBuffer::create(world.device(), 64));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer other, DeviceBuffer::create(world.device(), 64));
    CGRT_ASSIGN_OR_RETURN(Graph small, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(small));
    const absl::StatusOr<Graph> graph = capture(
        stream.ref(),
        [&](StreamRef s) -> absl::Status {
          { const DeviceBuffer dies = std::move(device_memory); }
          { const PinnedBuffer dies = std::move(pinned); }
          { const GraphExec dies = std::move(exec); }
          std::thread([&] { const DeviceBuffer dies = std::move(other); }).join();
          return one_kernel(s, buffer);
        },
        mode);
    notes.status(mode == CaptureMode::kGlobal ? "global" : "of this thread", graph.status());
  }
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("synchronizing with a capturing stream is refused and ends the capture") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    notes.status("synchronize", s.synchronize());
    notes.status("launch afterwards", one_kernel(s, buffer));
    return absl::OkStatus();
  });

  notes.status("capture", graph.status());
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("asking a capturing stream for completion answers captured and does not disturb the capture") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    notes.completion("stream", s.completion());
    notes.status("is_complete", s.is_complete().status());
    return one_kernel(s, buffer);
  });

  notes.status("capture", graph.status());
  if (graph.ok()) return notes.graph("graph", *graph);
  return absl::OkStatus();
}

BEHAVIOUR("asking an event of this library that a live capture recorded does not disturb the capture") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
    CGRT_RETURN_IF_ERROR(s.record(event.ref()));
    notes.completion("this thread", event.ref().completion());
    std::thread([&] {
      notes.completion("another thread", event.ref().completion());
      notes.status("is_complete", event.ref().is_complete().status());
      notes.status("synchronize", event.ref().synchronize());
    }).join();
    return one_kernel(s, buffer);
  });

  notes.status("capture", graph.status());
  notes.completion("event after", event.ref().completion());
  CGRT_RETURN_IF_ERROR(stream.ref().record(event.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.completion("event recorded again", event.ref().completion());
  return absl::OkStatus();
}

BEHAVIOUR("queries of other streams and events do not disturb a global capture, from any thread") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  CGRT_RETURN_IF_ERROR(other.ref().record(event.ref()));
  CGRT_RETURN_IF_ERROR(other.ref().synchronize());

  const absl::StatusOr<Graph> graph = capture(
      stream.ref(),
      [&](StreamRef s) -> absl::Status {
        notes.completion("other stream, this thread", other.ref().completion());
        notes.completion("event, this thread", event.ref().completion());
        std::thread([&] {
          notes.completion("other stream, other thread", other.ref().completion());
          notes.completion("event, other thread", event.ref().completion());
        }).join();
        return one_kernel(s, buffer);
      },
      CaptureMode::kGlobal);

  notes.status("capture", graph.status());
  return absl::OkStatus();
}

BEHAVIOUR("a stream that is captured already cannot begin another capture, and keeps the first") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
    notes.status("inner", capture(s, [&](StreamRef) { return absl::OkStatus(); }).status());
    return one_kernel(s, buffer);
  });

  notes.status("outer", graph.status());
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("the legacy default stream cannot be captured") {
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(*ContextRef(world.device()).get()));

  notes.status("capture", capture(StreamRef::legacy_default(), [](StreamRef) { return absl::OkStatus(); }).status());

  return absl::OkStatus();
}

BEHAVIOUR("a side stream may be destroyed before the capture ends, joined or not") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  for (const bool joins : {true, false}) {
    const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
      CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
      CGRT_RETURN_IF_ERROR(s.record(event.ref()));
      CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
      CGRT_RETURN_IF_ERROR(side.ref().wait(event.ref()));
      CGRT_RETURN_IF_ERROR(one_kernel(side.ref(), buffer));
      CGRT_RETURN_IF_ERROR(side.ref().record(event.ref()));
      return joins ? s.wait(event.ref()) : absl::OkStatus();
    });
    notes.status(joins ? "joined" : "not joined", graph.status());
  }
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("destroying the captured stream ends its capture") {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
    const CUresult begun = driver::api().StreamBeginCapture(stream.ref().get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    notes.status("begin", driver::to_status(begun, "cuStreamBeginCapture"));
    CGRT_RETURN_IF_ERROR(stream.ref().record(event.ref()));
  }

  notes.completion("its event", event.ref().completion());
  notes.status("an allocation", DeviceBuffer::create(ContextRef(context), 64).status());
  return absl::OkStatus();
}

BEHAVIOUR("two captures cannot be merged") {
  CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::Status outer = capture(a.ref(), [&](StreamRef s) -> absl::Status {
                               CGRT_RETURN_IF_ERROR(one_kernel(s, buffer));
                               CGRT_RETURN_IF_ERROR(s.record(event.ref()));
                               const absl::Status inner = capture(b.ref(), [&](StreamRef t) -> absl::Status {
                                                            CGRT_RETURN_IF_ERROR(one_kernel(t, buffer));
                                                            notes.status("wait across", t.wait(event.ref()));
                                                            return absl::OkStatus();
                                                          }).status();
                               notes.status("inner", inner);
                               return absl::OkStatus();
                             }).status();

  notes.status("outer", outer);
  return note_usable(world, notes, a.ref(), buffer);
}

BEHAVIOUR("a capture cannot wait for work outside it") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, other.ref()));
  CGRT_RETURN_IF_ERROR(other.ref().record(event.ref()));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    notes.status("wait", s.wait(event.ref()));
    return absl::OkStatus();
  });

  notes.status("capture", graph.status());
  gate.open();
  return note_usable(world, notes, stream.ref(), buffer);
}

BEHAVIOUR("an empty capture is an empty graph, which runs") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));

  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream.ref(), [](StreamRef) { return absl::OkStatus(); }));

  CGRT_ASSIGN_OR_RETURN(std::size_t count, graph.node_count());
  EXPECT(count == 0);
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  notes.status("launch", exec.launch(stream.ref()));
  return stream.ref().synchronize();
}

BEHAVIOUR("a launch that fails inside a capture is reported with the kernel's name") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));

  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) {
    return launch(s, LaunchConfig{.grid = 1, .block = 2048}, scale_kernel(), buffer.as<float>(), buffer.as<float>(),
                  2.0f, kCount);
  });

  notes.status("capture", graph.status());
  EXPECT(graph.status().message().find("cgrt::testing::scale") != std::string::npos);
  EXPECT(graph.status().message().find("exceeds (1024, 1024, 64)") != std::string::npos);
  return note_usable(world, notes, stream.ref(), buffer);
}

}  // namespace
}  // namespace cgrt::testing
