// Work in several streams of a capture: left unjoined, joined for the caller, and in branches of fork_join.
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/capture_scene.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

BEHAVIOUR("error 904, unjoined work, is joined where that is asked for") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  const auto fork_raw = [&]() -> absl::Status {  // as a library does, inside
    const driver::Api& api = driver::api();
    return driver::to_status(api.StreamWaitEvent(scene.side.ref().get(), scene.fork.ref().get(), 0),
                             "cuStreamWaitEvent");
  };
  for (const bool is_raw : {false, true}) {
    for (const bool is_other_thread : {false, true}) {
      for (const UnjoinedWork unjoined : {UnjoinedWork::kRefused, UnjoinedWork::kJoined}) {
        const absl::StatusOr<Graph> graph = capture(
            scene.stream,
            [&](StreamRef s) -> absl::Status {
              CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
              CGRT_RETURN_IF_ERROR(s.record(scene.fork));
              absl::Status forked;
              const auto fork = [&] {
                forked = is_raw ? fork_raw() : scene.side.ref().wait(scene.fork);
                if (forked.ok()) forked = scene.launch(scene.side, kPlain);
              };
              if (is_other_thread) {
                std::thread(fork).join();
              } else {
                fork();
              }
              CGRT_RETURN_IF_ERROR(forked);
              return scene.launch(s, kPlain);
            },
            unjoined);
        const std::string name =
            absl::StrCat(is_raw ? "raw" : "through cgrt", is_other_thread ? ", another thread" : ", this thread",
                         unjoined == UnjoinedWork::kJoined ? ", joined" : ", refused");
        notes.line(absl::StrCat(name, ": capture ", code_of(graph.status())));
        if (graph.ok()) CGRT_RETURN_IF_ERROR(notes.graph(name, *graph));
        const bool is_named = absl::StrContains(graph.status().message(), "cgrt::testing::scale\" in stream 0x");
        EXPECT(graph.ok() || is_named == (!is_raw && !is_other_thread));
      }
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("work that is joined for the caller comes before what the cursor adds next") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor place = graph.cursor();
  const absl::Status captured = capture_into(
      place, scene.stream,
      [&](StreamRef s) -> absl::Status {
        CGRT_RETURN_IF_ERROR(s.record(scene.fork));
        CGRT_RETURN_IF_ERROR(scene.side.ref().wait(scene.fork));
        CGRT_RETURN_IF_ERROR(scene.launch(scene.side, kPlain));
        return scene.launch(s, kPlain);
      },
      UnjoinedWork::kJoined);
  CGRT_RETURN_IF_ERROR(captured);
  CGRT_RETURN_IF_ERROR(place.add_empty());
  return notes.graph("graph", graph);
}

// Scales, then in branches: two shifts of what was scaled, one scale of it, and, where asked, nothing; then the sum.
struct Diamond {
  static absl::StatusOr<Diamond> create(World& world) {
    Diamond diamond;
    CGRT_ASSIGN_OR_RETURN(diamond.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(diamond.sides, SideStreams::create(world.device(), 2));
    for (DeviceBuffer* buffer : {&diamond.x, &diamond.y, &diamond.z}) {
      CGRT_ASSIGN_OR_RETURN(*buffer, device_floats(world, kCount, 1.0f));
    }
    return diamond;
  }
  absl::Status step(LaunchTarget target, bool has_idle_branch) {
    const auto change = [&](LaunchTarget t, auto kernel, const DeviceBuffer& out, const DeviceBuffer& in, float by) {
      return cgrt::launch(t, LaunchConfig{.grid = 1, .block = 64}, kernel, out.as<float>(), in.as<const float>(), by,
                          int{kCount});
    };
    const auto shifts = [&](LaunchTarget t) -> absl::Status {
      CGRT_RETURN_IF_ERROR(change(t, shift_kernel(), y, x, 1.0f));
      return change(t, shift_kernel(), y, y, 2.0f);
    };
    const auto scale = [&](LaunchTarget t) { return change(t, scale_kernel(), z, x, 10.0f); };
    const auto nothing = [](LaunchTarget) { return absl::OkStatus(); };
    CGRT_RETURN_IF_ERROR(change(target, scale_kernel(), x, x, 2.0f));
    if (has_idle_branch) {
      CGRT_RETURN_IF_ERROR(fork_join(target, sides, {shifts, scale, nothing}));
    } else {
      CGRT_RETURN_IF_ERROR(fork_join(target, sides, {shifts, scale}));
    }
    return cgrt::launch(target, LaunchConfig{.grid = 1, .block = 64}, add_kernel(), x.as<float>(), y.as<const float>(),
                        z.as<const float>(), int{kCount});
  }

  static constexpr int kCount = 64;
  Stream stream;
  SideStreams sides;
  DeviceBuffer x, y, z;
};

BEHAVIOUR("fork and join: branches of one call site are the same in every target") {
  for (const bool has_idle_branch : {false, true}) {
    CGRT_ASSIGN_OR_RETURN(Diamond diamond, Diamond::create(world));
    const auto step = [&](LaunchTarget target) { return diamond.step(target, has_idle_branch); };
    const auto note_sum = [&](const char* name) -> absl::Status {
      CGRT_RETURN_IF_ERROR(diamond.stream.ref().synchronize());
      CGRT_ASSIGN_OR_RETURN(const std::vector<float> sum, read_floats(world, diamond.x));
      notes.line(absl::StrCat(name, ": ", sum[0], ", ", sum[63]));
      return absl::OkStatus();
    };

    CGRT_RETURN_IF_ERROR(step(diamond.stream));  // (2 + 3) + 20
    CGRT_RETURN_IF_ERROR(note_sum("eager"));
    CGRT_ASSIGN_OR_RETURN(Graph captured, capture(diamond.stream, step));
    CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
    Cursor cursor = built.cursor();
    CGRT_RETURN_IF_ERROR(step(cursor));
    for (Graph* graph : {&captured, &built}) {
      const char* const name = graph == &captured ? "captured" : "built";
      CGRT_RETURN_IF_ERROR(notes.graph(name, *graph));
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
      CGRT_RETURN_IF_ERROR(exec.launch(diamond.stream));
      CGRT_RETURN_IF_ERROR(note_sum(name));
    }
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(captured));
    CGRT_ASSIGN_OR_RETURN(diamond.x, device_floats(world, Diamond::kCount, 3.0f));
    CGRT_RETURN_IF_ERROR(exec.rebind(step));
    CGRT_RETURN_IF_ERROR(exec.launch(diamond.stream));
    CGRT_RETURN_IF_ERROR(note_sum("rebound"));
  }
  return absl::OkStatus();
}

BEHAVIOUR("fork and join: branches in a stream wait for what was before, and what is next waits for them") {
  CGRT_ASSIGN_OR_RETURN(Diamond diamond, Diamond::create(world));
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, diamond.stream));
  CGRT_RETURN_IF_ERROR(diamond.step(diamond.stream, false));
  CGRT_ASSIGN_OR_RETURN(const Event end, Event::create(world.device()));
  CGRT_RETURN_IF_ERROR(diamond.stream.ref().record(end));
  notes.completion("behind the gate", end.ref().completion());
  gate.open();
  CGRT_RETURN_IF_ERROR(end.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> sum, read_floats(world, diamond.x));
  notes.line(absl::StrCat("sum: ", sum[0]));
  return absl::OkStatus();
}

BEHAVIOUR("a branch that fails is what fork_join returns, and what was forked is joined") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(world.device(), 2));
  int calls = 0;
  const auto works = [&](LaunchTarget t) {
    ++calls;
    return cgrt::launch(t, kPlain, scale_kernel(), scene.buffer.as<float>(), scene.buffer.as<const float>(), 1.0f, 8);
  };
  const auto fails = [&](LaunchTarget t) -> absl::Status {
    CGRT_RETURN_IF_ERROR(works(t));
    return absl::AbortedError("branch gave up");
  };
  absl::Status forked;
  const auto step = [&](LaunchTarget target) -> absl::Status {
    forked = fork_join(target, sides, {works, fails, works});
    return works(target);
  };

  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(scene.stream, step));
  EXPECT(forked == absl::AbortedError("branch gave up") && calls == 3);
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(step(cursor));
  EXPECT(forked == absl::AbortedError("branch gave up") && calls == 6);
  CGRT_RETURN_IF_ERROR(notes.graph("built", built));
  CGRT_RETURN_IF_ERROR(step(scene.stream));
  return scene.stream.ref().synchronize();
}

BEHAVIOUR("a branch whose call ends the capture is what fork_join and the capture tell") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(world.device(), 1));
  absl::Status forked;
  const absl::Status captured = capture(scene.stream, [&](StreamRef s) -> absl::Status {
                                  const auto works = [&](LaunchTarget t) { return scene.launch(t.stream(), kPlain); };
                                  const auto fails = [&](LaunchTarget t) { return t.stream().synchronize(); };
                                  forked = fork_join(s, sides, {works, fails});
                                  return absl::OkStatus();
                                }).status();
  notes.status("fork_join", forked);
  notes.line(absl::StrCat("capture: ", code_of(captured), ", tells ", told(captured)));
  // The streams are free again.
  const auto works = [&](LaunchTarget t) { return scene.launch(t.stream(), kPlain); };
  CGRT_RETURN_IF_ERROR(fork_join(scene.stream, sides, {works, works}));
  return scene.stream.ref().synchronize();
}

BEHAVIOUR("branches in a stream need a side stream each") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  CGRT_ASSIGN_OR_RETURN(SideStreams sides, SideStreams::create(world.device(), 1));
  SideStreams none;
  int calls = 0;
  const auto works = [&](LaunchTarget) {
    ++calls;
    return absl::OkStatus();
  };
  const absl::Status refused = fork_join(scene.stream, sides, {works, works, works});
  notes.status("three branches, one side stream", refused);
  EXPECT(absl::StrContains(refused.message(), "3 branches in a stream need 2 side streams, and there are 1"));
  EXPECT(calls == 0);
  notes.status("one branch, none", fork_join(scene.stream, none, {works}));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor cursor = graph.cursor();
  notes.status("three branches of a cursor, none", fork_join(cursor, none, {works, works, works}));
  notes.status("no branch", fork_join(scene.stream, none, {}));
  EXPECT(calls == 4);
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
