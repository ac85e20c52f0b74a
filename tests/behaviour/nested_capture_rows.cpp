// Captures inside captures, captures of others, what is destroyed while captures are live, and work that runs where it
// cannot be captured.
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/capture_scene.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

constexpr std::pair<const char*, CaptureMode> kModes[] = {
    {"thread-local", CaptureMode::kThreadLocal}, {"global", CaptureMode::kGlobal}, {"relaxed", CaptureMode::kRelaxed}};

void allocate_raw(CUcontext context) {
  const absl::StatusOr<ScopedContext> current = ScopedContext::enter(context);
  CUdeviceptr address = 0;
  driver::api().MemAlloc(&address, 64);
  driver::api().MemFree(address);
}

BEHAVIOUR("capture modes: which thread's unsafe call ends a capture of each") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  for (const auto& [name, mode] : kModes) {
    for (const bool is_same_thread : {true, false}) {
      const absl::StatusOr<Graph> graph = capture(
          scene.stream,
          [&](StreamRef s) -> absl::Status {
            CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
            if (is_same_thread) {
              allocate_raw(scene.context);
            } else {
              std::thread([&] { allocate_raw(scene.context); }).join();
            }
            return absl::OkStatus();
          },
          mode);
      notes.status(std::string(name) + (is_same_thread ? ", a call of its thread" : ", a call of another thread"),
                   graph.status());
      CGRT_RETURN_IF_ERROR(scene.launch(scene.stream, kPlain));  // takes work again
    }
  }
  return scene.stream.ref().synchronize();
}

BEHAVIOUR("captures inside of each other are independent") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  absl::StatusOr<Graph> inner = absl::UnknownError("not made");
  const absl::StatusOr<Graph> outer = capture(scene.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
    inner = capture(scene.side, [&](StreamRef t) -> absl::Status {
      CGRT_RETURN_IF_ERROR(scene.launch(t, kPlain));
      CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));  // into the outer one
      return scene.launch(t, kPlain);
    });
    return scene.launch(s, kPlain);
  });
  notes.status("inner", inner.status());
  notes.status("outer", outer.status());
  if (inner.ok()) CGRT_RETURN_IF_ERROR(notes.graph("inner", *inner));
  if (outer.ok()) CGRT_RETURN_IF_ERROR(notes.graph("outer", *outer));
  return absl::OkStatus();
}

BEHAVIOUR("which of two nested captures an unsafe call ends") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  for (const auto& [outer_name, outer_mode] : kModes) {
    for (const auto& [inner_name, inner_mode] : kModes) {
      absl::Status inner;
      const absl::Status outer = capture(
                                     scene.stream,
                                     [&, mode = inner_mode](StreamRef s) -> absl::Status {
                                       CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
                                       inner = capture(
                                                   scene.side,
                                                   [&](StreamRef t) -> absl::Status {
                                                     CGRT_RETURN_IF_ERROR(scene.launch(t, kPlain));
                                                     allocate_raw(scene.context);
                                                     return absl::OkStatus();
                                                   },
                                                   mode)
                                                   .status();
                                       return absl::OkStatus();
                                     },
                                     outer_mode)
                                     .status();
      notes.line(absl::StrCat(outer_name, " around ", inner_name, ": inner ", code_of(inner), " ", told(inner),
                              ", outer ", code_of(outer), " ", told(outer)));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a call that ended the inner capture alone leaves the outer one whole") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  absl::Status inner;
  const absl::StatusOr<Graph> outer = capture(scene.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
    inner = capture(scene.side, [&](StreamRef t) { return t.synchronize(); }).status();
    return scene.launch(s, kPlain);
  });
  notes.status("inner", inner);
  notes.status("outer", outer.status());
  if (outer.ok()) CGRT_RETURN_IF_ERROR(notes.graph("outer", *outer));
  return absl::OkStatus();
}

BEHAVIOUR("five captures inside of each other, the innermost of which fails") {
  std::vector<Stream> streams(5);
  for (Stream& stream : streams) {
    CGRT_ASSIGN_OR_RETURN(stream, Stream::create(world.device()));
  }
  const std::function<absl::Status(std::size_t)> nest = [&](std::size_t depth) -> absl::Status {
    const absl::Status status = capture(streams[depth], [&](StreamRef s) -> absl::Status {
                                  if (depth + 1 < streams.size()) return nest(depth + 1);
                                  driver::api().StreamSynchronize(s.get());
                                  return absl::OkStatus();
                                }).status();
    notes.line(absl::StrCat("capture ", depth, ": ", code_of(status), ", tells ", told(status)));
    return absl::OkStatus();
  };
  return nest(0);
}

BEHAVIOUR("a stream that somebody else captures takes work, and is not captured twice") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(world.device(), 1));
  const driver::Api& api = driver::api();
  const CUstream stream = scene.stream.ref().get();
  CGRT_RETURN_IF_ERROR(
      driver::to_status(api.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture"));

  const auto step = [&](LaunchTarget target) { return scene.launch(target.stream(), kPlain); };
  notes.status("fork_join", fork_join(scene.stream, sides, {step, step}));
  notes.status("capture of it", capture(scene.stream, step).status());
  notes.status("capture_or_run of it", capture_or_run(scene.stream, step).status());
  notes.status("capture of another", capture(scene.other, step).status());

  CUgraph graph = nullptr;
  notes.status("end", driver::to_status(api.StreamEndCapture(stream, &graph), "cuStreamEndCapture"));
  CGRT_ASSIGN_OR_RETURN(const Graph adopted, Graph::adopt(graph, world.device()));
  return notes.graph("theirs", adopted);
}

BEHAVIOUR("somebody else captures another stream inside of a capture") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  const driver::Api& api = driver::api();
  CUgraph theirs = nullptr;
  const absl::StatusOr<Graph> ours = capture(scene.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
    const CUstream side = scene.side.ref().get();
    CGRT_RETURN_IF_ERROR(
        driver::to_status(api.StreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture"));
    CGRT_RETURN_IF_ERROR(scene.launch(scene.side, kPlain));
    return driver::to_status(api.StreamEndCapture(side, &theirs), "cuStreamEndCapture");
  });
  notes.status("ours", ours.status());
  if (ours.ok()) CGRT_RETURN_IF_ERROR(notes.graph("ours", *ours));
  CGRT_ASSIGN_OR_RETURN(const Graph adopted, Graph::adopt(theirs, world.device()));
  return notes.graph("theirs", adopted);
}

BEHAVIOUR("streams of a capture may be destroyed inside of it, and go when it has ended") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  for (const bool is_joined : {true, false}) {
    CGRT_ASSIGN_OR_RETURN(Stream origin, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
    const StreamRef of_origin = origin;
    const absl::StatusOr<Graph> graph = capture(of_origin, [&](StreamRef s) -> absl::Status {
      CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
      CGRT_RETURN_IF_ERROR(s.record(scene.fork));
      CGRT_RETURN_IF_ERROR(side.ref().wait(scene.fork));
      CGRT_RETURN_IF_ERROR(scene.launch(side, kPlain));
      CGRT_RETURN_IF_ERROR(side.ref().record(scene.join));
      side = Stream();
      // Inside of an inner capture, too: it is the outer one's.
      const absl::Status inner = capture(scene.other, [&](StreamRef t) {
                                   origin = Stream();
                                   return scene.launch(t, kPlain);
                                 }).status();
      CGRT_RETURN_IF_ERROR(inner);
      if (is_joined) CGRT_RETURN_IF_ERROR(s.wait(scene.join));
      return scene.launch(s, kPlain);
    });
    notes.status(is_joined ? "joined" : "not joined", graph.status());
    EXPECT(graph.ok() || absl::StrContains(graph.status().message(), "cgrt::testing::scale\" in stream 0x"));
    if (graph.ok()) CGRT_RETURN_IF_ERROR(notes.graph("graph", *graph));
  }
  return absl::OkStatus();
}

BEHAVIOUR("whatever is destroyed while a stream is captured, that capture goes on") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  for (const auto& [name, mode] : kModes) {
    for (const bool is_other_thread : {false, true}) {
      CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
      CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
      CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(world.device(), 64));
      CGRT_ASSIGN_OR_RETURN(PinnedBuffer pinned, PinnedBuffer::create(world.device(), 64));
      CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(world.device(), 2));
      CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 4096));
      CGRT_RETURN_IF_ERROR(pool.allocate(stream, 64).status());
      CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
      CGRT_RETURN_IF_ERROR(scene.launch(stream, kPlain));
      CGRT_RETURN_IF_ERROR(launch(graph.cursor(), kPlain, scale_kernel(), scene.buffer.as<float>(),
                                  scene.buffer.as<const float>(), 1.0f, 8));
      CGRT_ASSIGN_OR_RETURN(DeviceBuffer kept, DeviceBuffer::create(world.device(), 64));
      CGRT_RETURN_IF_ERROR(graph.keep(std::move(kept)));
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
      CGRT_ASSIGN_OR_RETURN(Graph patched, Graph::create(world.device()));
      CGRT_RETURN_IF_ERROR(launch(patched.cursor(), kPlain, scale_kernel(), scene.buffer.as<float>(),
                                  scene.buffer.as<const float>(), 1.0f, 8));
      CGRT_ASSIGN_OR_RETURN(GraphExec rebindable, instantiate_rebindable(patched));
      const auto destroy_all = [&] {
        rebindable = GraphExec();
        exec = GraphExec();
        patched = Graph();
        graph = Graph();
        pool = GraphPool();
        sides = SideStreams();
        pinned = PinnedBuffer();
        buffer = DeviceBuffer();
        event = Event();
        stream = Stream();
        collect_released();
      };
      const absl::Status captured = capture(
                                        scene.stream,
                                        [&](StreamRef s) -> absl::Status {
                                          CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
                                          if (is_other_thread) {
                                            std::thread(destroy_all).join();
                                          } else {
                                            destroy_all();
                                          }
                                          return scene.launch(s, kPlain);
                                        },
                                        mode)
                                        .status();
      notes.status(absl::StrCat(name, is_other_thread ? ", another thread" : ", this thread"), captured);
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("what cannot be captured runs, and says why") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, 64, 1.0f));
  const auto twice = [&](StreamRef s) {
    return launch(s, LaunchConfig{.grid = 1, .block = 64}, scale_kernel(), x.as<float>(), x.as<const float>(), 2.0f,
                  64);
  };
  const std::pair<const char*, std::function<absl::Status(StreamRef)>> works[] = {
      {"a launch", twice},
      {"a launch and an allocation",
       [&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(twice(s));
         return DeviceBuffer::create(world.device(), 64).status();
       }},
      {"a launch and a raw allocation that is not looked at",
       [&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(twice(s));
         allocate_raw(scene.context);
         return absl::OkStatus();
       }},
      {"a launch and a synchronization",
       [&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(twice(s));
         return s.synchronize();
       }},
      {"a launch that no device can run", [&](StreamRef s) { return scene.launch(s, kTooLarge); }},
      {"a failure of its own",
       [&](StreamRef s) -> absl::Status {
         CGRT_RETURN_IF_ERROR(twice(s));
         return absl::AbortedError("gave up");
       }},
  };
  for (const auto& [name, work] : works) {
    int calls = 0;
    absl::StatusOr<CapturedOrRun> made = capture_or_run(scene.stream, [&, &record = work](StreamRef s) {
      ++calls;
      return record(s);
    });
    CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, x));
    notes.line(absl::StrCat(name, ": ", calls == 1 ? "called once" : "called twice", ", x = ", values[0]));
    if (!made.ok()) {
      notes.status("  fails", made.status());
    } else if (made->is_captured()) {
      CGRT_RETURN_IF_ERROR(notes.graph("  graph", made->graph));
    } else {
      notes.status("  ran, since", made->reason);
      EXPECT(absl::IsFailedPrecondition(made->graph.node_count().status()));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("the legacy default stream cannot be captured, and capture_or_run runs") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(scene.context));
  CGRT_ASSIGN_OR_RETURN(const CapturedOrRun made, capture_or_run(StreamRef::legacy_default(),
                                                                 [&](StreamRef s) { return scene.launch(s, kPlain); }));
  notes.status("reason", made.reason);
  return StreamRef::legacy_default().synchronize();
}

}  // namespace
}  // namespace cgrt::testing
