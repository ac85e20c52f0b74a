// Which questions end a capture and which do not, and which call a capture that has ended is blamed on.
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "behaviour/cluster_probe.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

BEHAVIOUR("an event that was recorded in an outer capture during an inner one may be asked") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream inner, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));

  const absl::StatusOr<Graph> outer = capture(probe.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
    notes.status("inner capture", capture(inner, [&](StreamRef) { return s.record(event); }).status());
    notes.completion("event", event.ref().completion());
    return absl::OkStatus();
  });

  notes.status("outer capture", outer.status());
  notes.completion("event after", event.ref().completion());
  return absl::OkStatus();
}

BEHAVIOUR("an event that another thread recorded in a stream of the capture may be asked") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event fork, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event join, Event::create(world.device()));

  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    const absl::StatusOr<Graph> graph = capture(
        probe.stream,
        [&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
          CGRT_RETURN_IF_ERROR(s.record(fork));
          absl::Status worker;
          std::thread([&] {
            worker = side.ref().wait(fork);
            if (worker.ok()) worker = probe.launch(side, kPlain);
            if (worker.ok()) worker = side.ref().record(join);
            notes.completion("on that thread", join.ref().completion());
          }).join();
          CGRT_RETURN_IF_ERROR(worker);
          notes.completion("on this thread", join.ref().completion());
          notes.status("synchronize", join.ref().synchronize());
          return s.wait(join);
        },
        mode);
    notes.status("capture", graph.status());
    if (graph.ok()) CGRT_RETURN_IF_ERROR(notes.graph("graph", *graph));
  }
  return absl::OkStatus();
}

BEHAVIOUR("an event that was recorded through its raw handle may be asked during a capture") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device(), EventTiming::kEnabled));
  const auto record = [&](StreamRef stream) {
    return driver::to_status(driver::api().EventRecord(event.ref().get(), stream.get()), "cuEventRecord");
  };

  const absl::StatusOr<Graph> graph = capture(probe.stream, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(record(s));
    notes.completion("in the capture", event.ref().completion());
    notes.completion("as a bare handle", EventRef(event.ref().get()).completion());
    CGRT_RETURN_IF_ERROR(record(other));
    EXPECT(event.ref().completion().value_or(Completion::kCaptured) != Completion::kCaptured);
    return absl::OkStatus();
  });

  notes.status("capture", graph.status());
  return other.ref().synchronize();
}

BEHAVIOUR("an event of a capture that cuStreamBeginCapture began ends that capture when it is asked") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  const CUstream stream = probe.stream.ref().get();
  const driver::Api& api = driver::api();
  CGRT_RETURN_IF_ERROR(
      driver::to_status(api.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture"));
  CGRT_RETURN_IF_ERROR(probe.stream.ref().record(event));

  notes.completion("event", event.ref().completion());

  CUgraph graph = nullptr;
  notes.status("end", driver::to_status(api.StreamEndCapture(stream, &graph), "cuStreamEndCapture"));
  return absl::OkStatus();
}

BEHAVIOUR("a refused launch ends the capture that it is made in, and is what the capture reports") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const std::pair<const char*, LaunchConfig> refused[] = {
      {"block of 2048", {.grid = 1, .block = 2048}},
      {"cluster of 16", {.grid = 32, .block = 64, .attributes = {.cluster = {16}}}},
      {"grid no multiple of the cluster", {.grid = 3, .block = 64, .attributes = {.cluster = {2}}}},
      {"too many cooperative blocks", {.grid = 1000000, .block = 64, .attributes = {.cooperative = true}}},
      {"too much shared memory", {.grid = 1, .block = 64, .shared_bytes = 1 << 20}},
  };
  for (const auto& [name, config] : refused) {
    const std::string what = name;
    for (const bool is_raw : {false, true}) {
      if (is_raw && config.attributes.cluster == Dim3()) continue;
      const absl::StatusOr<Graph> graph = capture(probe.stream, [&](StreamRef s) -> absl::Status {
        notes.status(what, is_raw ? launch_raw(s, config, probe.data()) : probe.launch(s, config));
        notes.status("another launch", probe.launch(s, kPlain));
        return absl::OkStatus();
      });
      notes.status("capture", graph.status());
      EXPECT(absl::StrContains(graph.status().message(), "was ended by a call of the same thread"));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a failure that a callback recovers from is not blamed for what ended the capture later") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer x, DeviceBuffer::create(world.device(), 64));
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  const auto recovered = [&](StreamRef s) -> absl::Status {
    const FillParams refused{
        .destination = x.data(), .value = 0, .element_bytes = 4, .count = 4, .height = 2, .pitch = 3};
    notes.status("refused memset", fill(s, refused));
    return probe.launch(s, kPlain);
  };
  const auto allocate_raw = [&]() -> absl::Status {  // as a library does, inside
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
    CUdeviceptr address = 0;
    static_cast<void>(driver::api().MemAlloc(&address, 64));
    return absl::OkStatus();
  };

  const absl::Status alone = capture(probe.stream, recovered).status();
  notes.status("the refused memset alone", alone);
  const absl::Status ours = capture(probe.stream, [&](StreamRef s) -> absl::Status {
                              CGRT_RETURN_IF_ERROR(recovered(s));
                              static_cast<void>(DeviceBuffer::create(world.device(), 64));
                              return absl::OkStatus();
                            }).status();
  notes.status("then an allocation of this library", ours);
  EXPECT(absl::StrContains(ours.message(), "cuMemAlloc"));
  const absl::Status theirs = capture(probe.stream, [&](StreamRef s) -> absl::Status {
                                CGRT_RETURN_IF_ERROR(recovered(s));
                                CGRT_RETURN_IF_ERROR(allocate_raw());
                                notes.status("a launch afterwards", probe.launch(s, kPlain));
                                return absl::OkStatus();
                              }).status();
  notes.status("then an allocation of another library", theirs);
  EXPECT(absl::StrContains(theirs.message(), "was ended by a call of the same thread: cuMemAlloc_v2 returned 900"));
  const absl::Status before = capture(probe.stream, [&](StreamRef s) -> absl::Status {
                                CGRT_RETURN_IF_ERROR(allocate_raw());
                                notes.status("another launch", recovered(s));
                                return absl::OkStatus();
                              }).status();
  notes.status("an allocation of another library, then the refused memset", before);
  EXPECT(absl::StrContains(before.message(), "was ended by a call of the same thread: cuMemAlloc_v2 returned 900"));
  return absl::OkStatus();
}

BEHAVIOUR("which refused calls end a capture") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer x, DeviceBuffer::create(world.device(), 64));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  CGRT_RETURN_IF_ERROR(capture(probe.stream, [&](StreamRef s) { return s.record(event); }).status());
  CGRT_ASSIGN_OR_RETURN(Graph empty, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(empty));
  void* const data = x.data();
  const std::pair<const char*, std::function<absl::Status(StreamRef)>> calls[] = {
      {"memset with a pitch below its width",
       [&](StreamRef s) {
         return fill(s, {.destination = data, .value = 0, .element_bytes = 4, .count = 4, .height = 2, .pitch = 3});
       }},
      {"copy with a pitch below its width",
       [&](StreamRef s) {
         return copy(s, CopyParams{.destination = data,
                                   .source = data,
                                   .bytes = 8,
                                   .height = 2,
                                   .destination_pitch = 3,
                                   .source_pitch = 8});
       }},
      {"wait for an event of an ended capture", [&](StreamRef s) { return s.wait(event); }},
      {"launch of a graph", [&](StreamRef s) { return exec.launch(s); }},
      {"launch of a block of 2048", [&](StreamRef s) { return probe.launch(s, {.grid = 1, .block = 2048}); }},
  };
  for (const auto& [name, call] : calls) {
    const absl::StatusOr<Graph> graph = capture(probe.stream, [&](StreamRef s) -> absl::Status {
      notes.status(name, call(s));
      return absl::OkStatus();
    });
    notes.status("  the capture", graph.status());
  }
  return absl::OkStatus();
}

BEHAVIOUR("a stream that never forked cannot join, and is told how") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Stream other, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));

  const absl::Status captured = capture(probe.stream, [&](StreamRef s) -> absl::Status {
                                  CGRT_RETURN_IF_ERROR(probe.launch(other, kPlain));
                                  CGRT_RETURN_IF_ERROR(other.ref().record(event));
                                  const absl::Status wait = s.wait(event);
                                  notes.status("wait", wait);
                                  EXPECT(absl::StrContains(wait.message(), "has not joined it"));
                                  return absl::OkStatus();
                                }).status();

  notes.status("capture", captured);
  return other.ref().synchronize();
}

BEHAVIOUR("the legacy default stream has no answers while a blocking stream is captured, and takes no work") {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  const StreamRef legacy = StreamRef::legacy_default();
  const std::pair<const char*, std::function<absl::Status()>> calls[] = {
      {"is_capturing", [&] { return legacy.is_capturing().status(); }},
      {"completion", [&] { return legacy.completion().status(); }},
      {"record", [&] { return legacy.record(event); }},
      {"launch", [&] { return probe.launch(legacy, kPlain); }},
  };
  for (const StreamKind kind : {StreamKind::kBlocking, StreamKind::kNonBlocking}) {
    CGRT_ASSIGN_OR_RETURN(const Stream captured, Stream::create(world.device(), {.kind = kind}));
    notes.line(kind == StreamKind::kBlocking ? "blocking" : "non-blocking");
    for (const auto& [name, call] : calls) {
      const absl::StatusOr<Graph> graph = capture(captured, [&](StreamRef s) -> absl::Status {
        CGRT_RETURN_IF_ERROR(probe.launch(s, kPlain));
        notes.status(name, call());
        return absl::OkStatus();
      });
      notes.status("  the capture", graph.status());
    }
  }
  return legacy.synchronize();
}

BEHAVIOUR("the legacy default stream joins no capture") {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Event event, Event::create(world.device()));
  absl::Status wait;
  const absl::Status captured = capture(stream, [&](StreamRef s) -> absl::Status {
                                  CGRT_RETURN_IF_ERROR(s.record(event));
                                  wait = StreamRef::legacy_default().wait(event);
                                  return absl::OkStatus();
                                }).status();
  notes.status("wait", wait);
  notes.status("capture", captured);
  return StreamRef(stream).synchronize();
}

}  // namespace
}  // namespace cgrt::testing
