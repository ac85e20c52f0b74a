// What a capture that failed says of the call that ended it: each error of captures, made by the capturing thread and
// by another one, through cgrt and through the driver itself, as libraries do.
//
// A line has the code of the call, that of the capture, and what its message tells: which call, with which code, and
// whose. "certain": the message is sure of it.
#include <functional>
#include <regex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/capture_scene.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {
namespace {

// A call to be made inside the capture of `scene.stream`, with the scene's context current: its code.
using Call = std::function<int(Scene& scene)>;

struct Place {
  CaptureMode mode;
  bool is_other_thread;
};
constexpr Place kPlaces[] = {{CaptureMode::kThreadLocal, false},
                             {CaptureMode::kThreadLocal, true},
                             {CaptureMode::kGlobal, false},
                             {CaptureMode::kGlobal, true}};

absl::Status note_call(World& world, Notes& notes, const std::string& name, const Place& place, const Call& call,
                       StreamKind kind) {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, kind));
  int code = 0;
  const auto call_in_context = [&] {
    const absl::StatusOr<ScopedContext> current = ScopedContext::enter(scene.context);
    code = current.ok() ? call(scene) : code_of(current.status());
  };
  const absl::Status captured = capture(
                                    scene.stream,
                                    [&](StreamRef s) -> absl::Status {
                                      CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
                                      CGRT_RETURN_IF_ERROR(s.record(scene.fork));
                                      if (place.is_other_thread) {
                                        std::thread(call_in_context).join();
                                      } else {
                                        call_in_context();
                                      }
                                      return absl::OkStatus();
                                    },
                                    place.mode)
                                    .status();
  const std::string where = absl::StrCat(place.mode == CaptureMode::kGlobal ? "global" : "thread-local", ", ",
                                         place.is_other_thread ? "another" : "this", " thread");
  notes.line(absl::StrCat(name, ", ", where, ": call ", code, ", capture ", code_of(captured),
                          captured.ok() ? "" : absl::StrCat(", tells ", told(captured))));
  EXPECT(!scene.stream.ref().is_capturing().value_or(true));
  EXPECT(!scene.side.ref().is_capturing().value_or(true));
  CGRT_RETURN_IF_ERROR(scene.other.ref().synchronize());
  CGRT_RETURN_IF_ERROR(scene.launch(scene.stream, kPlain));
  return scene.stream.ref().synchronize();
}

absl::Status note_calls(World& world, Notes& notes, const std::vector<std::pair<const char*, Call>>& calls,
                        StreamKind kind = StreamKind::kNonBlocking) {
  for (const auto& [name, call] : calls) {
    for (const Place& place : kPlaces) CGRT_RETURN_IF_ERROR(note_call(world, notes, name, place, call, kind));
  }
  return absl::OkStatus();
}

BEHAVIOUR("error 900, an allocation, names the call, its thread and the capture") {
  return note_calls(world, notes,
                    {{"through cgrt", [](Scene& w) { return code_of(DeviceBuffer::create(w.context, 64).status()); }},
                     {"raw", [](Scene&) {
                        CUdeviceptr address = 0;
                        const CUresult result = driver::api().MemAlloc(&address, 64);
                        driver::api().MemFree(address);
                        return code_of(result);
                      }}});
}

BEHAVIOUR("error 900, questions and waits, names the call, its thread and the capture") {
  return note_calls(
      world, notes,
      {{"synchronize", [](Scene& w) { return code_of(w.stream.ref().synchronize()); }},
       {"raw synchronize", [](Scene& w) { return code_of(driver::api().StreamSynchronize(w.stream.ref().get())); }},
       {"raw query", [](Scene& w) { return code_of(driver::api().StreamQuery(w.stream.ref().get())); }},
       {"raw query of another stream",
        [](Scene& w) { return code_of(driver::api().StreamQuery(w.other.ref().get())); }},
       {"raw query of another event",
        [](Scene& w) { return code_of(driver::api().EventQuery(w.outside.ref().get())); }}});
}

BEHAVIOUR("error 900, a graph launched into a capture, names the call, its thread and the capture") {
  return note_calls(
      world, notes,
      {{"through cgrt", [](Scene& w) { return code_of(w.exec.launch(w.stream)); }},
       {"raw", [](Scene& w) { return code_of(driver::api().GraphLaunch(w.exec.get(), w.stream.ref().get())); }}});
}

BEHAVIOUR("error 901 names the call that came first") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  for (const bool is_other_thread : {false, true}) {
    absl::Status launched;
    const auto raw = [&] { driver::api().StreamSynchronize(scene.stream.ref().get()); };
    const absl::Status captured = capture(scene.stream, [&](StreamRef s) -> absl::Status {
                                    if (is_other_thread) {
                                      std::thread(raw).join();
                                    } else {
                                      raw();
                                    }
                                    launched = scene.launch(s, kPlain);
                                    raw();
                                    return absl::OkStatus();
                                  }).status();
    notes.line(absl::StrCat("launch ", code_of(launched), ", tells ", told(launched), "; capture ", code_of(captured),
                            ", tells ", told(captured)));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a callback's own status stays, also where a raw call has ended the capture") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  const absl::Status captured = capture(scene.stream, [&](StreamRef s) -> absl::Status {
                                  driver::api().StreamSynchronize(s.get());
                                  return absl::AbortedError("caller gave up");
                                }).status();
  EXPECT(captured == absl::AbortedError("caller gave up"));
  EXPECT(!scene.stream.ref().is_capturing().value_or(true));
  return absl::OkStatus();
}

BEHAVIOUR("error 902 names the call in both captures") {
  for (const bool is_other_thread : {false, true}) {
    CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
    for (const bool is_raw : {false, true}) {
      absl::Status inner;
      int code = 0;
      const auto merge = [&] {
        inner = capture(scene.side, [&](StreamRef s) -> absl::Status {
                  code = is_raw ? code_of(driver::api().StreamWaitEvent(s.get(), scene.fork.ref().get(), 0))
                                : code_of(s.wait(scene.fork));
                  return absl::OkStatus();
                }).status();
      };
      const absl::Status outer = capture(scene.stream, [&](StreamRef s) -> absl::Status {
                                   CGRT_RETURN_IF_ERROR(s.record(scene.fork));
                                   if (is_other_thread) {
                                     std::thread(merge).join();
                                   } else {
                                     merge();
                                   }
                                   return absl::OkStatus();
                                 }).status();
      notes.line(absl::StrCat(is_raw ? "raw" : "through cgrt", ", ", is_other_thread ? "another" : "this",
                              " thread: call ", code, "; inner ", code_of(inner), ", tells ", told(inner), "; outer ",
                              code_of(outer), ", tells ", told(outer)));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("error 903, the end of a side stream, names the call, its thread and the capture") {
  return note_calls(world, notes, {{"raw", [](Scene& w) {
                                      CUgraph graph = nullptr;
                                      const absl::Status joined = w.side.ref().wait(w.fork);
                                      if (!joined.ok()) return code_of(joined);
                                      return code_of(driver::api().StreamEndCapture(w.side.ref().get(), &graph));
                                    }}});
}

BEHAVIOUR("error 905, a wait for work outside, names the call, its thread and the capture") {
  return note_calls(world, notes,
                    {{"through cgrt", [](Scene& w) { return code_of(w.stream.ref().wait(w.outside)); }},
                     {"raw", [](Scene& w) {
                        return code_of(driver::api().StreamWaitEvent(w.stream.ref().get(), w.outside.ref().get(), 0));
                      }}});
}

BEHAVIOUR("error 906, work in the legacy default stream, names the call, its thread and the capture") {
  return note_calls(
      world, notes,
      {{"through cgrt", [](Scene& w) { return code_of(w.launch(StreamRef::legacy_default(), kPlain)); }},
       {"raw", [](Scene& w) { return code_of(driver::api().EventRecord(w.outside.ref().get(), CU_STREAM_LEGACY)); }}},
      StreamKind::kBlocking);
}

BEHAVIOUR("error 907, a question about an event of the capture, names the call, its thread and the capture") {
  return note_calls(
      world, notes,
      {{"through cgrt", [](Scene& w) { return code_of(w.fork.ref().is_complete().status()); }},
       {"raw query", [](Scene& w) { return code_of(driver::api().EventQuery(w.fork.ref().get())); }},
       {"raw synchronize", [](Scene& w) { return code_of(driver::api().EventSynchronize(w.fork.ref().get())); }}});
}

BEHAVIOUR("error 908, and an end by somebody else, name the call, its thread and the capture") {
  return note_calls(world, notes, {{"raw", [](Scene& w) {
                                      CUgraph graph = nullptr;
                                      const CUresult ended =
                                          driver::api().StreamEndCapture(w.stream.ref().get(), &graph);
                                      if (graph != nullptr) driver::api().GraphDestroy(graph);
                                      return code_of(ended);
                                    }}});
}

BEHAVIOUR("a refused launch names the call, its thread and the capture") {
  return note_calls(
      world, notes,
      {{"through cgrt", [](Scene& w) { return code_of(w.launch(w.stream, kTooLarge)); }},
       {"in a stream outside, through cgrt", [](Scene& w) { return code_of(w.launch(w.other, kTooLarge)); }}});
}

BEHAVIOUR("a refused launch outside is not blamed for what ended the capture afterwards") {
  const auto then_allocate = [](Scene& w, StreamRef stream) {
    std::thread([&] { static_cast<void>(w.launch(stream, kTooLarge)); }).join();
    CUdeviceptr address = 0;
    return code_of(driver::api().MemAlloc(&address, 64));
  };
  return note_call(
      world, notes, "another thread's launch, then an allocation", kPlaces[0],
      [&](Scene& w) { return then_allocate(w, w.other); }, StreamKind::kNonBlocking);
}

BEHAVIOUR("where several captures are live, a call that names none is told as one of those that failed") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  absl::Status inner;
  const absl::Status outer = capture(scene.stream, [&](StreamRef s) -> absl::Status {
                               CGRT_RETURN_IF_ERROR(scene.launch(s, kPlain));
                               std::thread([&] {
                                 inner = capture(scene.side, [&](StreamRef t) -> absl::Status {
                                           CGRT_RETURN_IF_ERROR(scene.launch(t, kPlain));
                                           driver::api().StreamSynchronize(s.get());
                                           return absl::OkStatus();
                                         }).status();
                               }).join();
                               return absl::OkStatus();
                             }).status();
  notes.line(absl::StrCat("the one: ", code_of(outer), ", tells ", told(outer)));
  notes.line(absl::StrCat("the other: ", code_of(inner), ", tells ", told(inner)));
  EXPECT(absl::StrContains(outer.message(), "Several captures were live"));
  return absl::OkStatus();
}

BEHAVIOUR("the story names the stream, the mode and the threads, and says what to do") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  const auto allocate = [&] {
    const absl::StatusOr<ScopedContext> current = ScopedContext::enter(scene.context);
    CUdeviceptr address = 0;
    driver::api().MemAlloc(&address, 64);
  };
  const absl::Status status = capture(
                                  scene.stream,
                                  [&](StreamRef) -> absl::Status {
                                    std::thread([&] {
                                      pthread_setname_np(pthread_self(), "loader");
                                      allocate();
                                    }).join();
                                    return absl::OkStatus();
                                  },
                                  CaptureMode::kGlobal)
                                  .status();
  const std::regex expected(
      "The capture of stream 0x[0-9a-f]+ \\(global mode, begun by thread [0-9]+\\) was ended by a call of thread "
      "[0-9]+ "
      "\"loader\": cuMemAlloc_v2 returned 900 \\(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED\\): API call conflicts with a "
      "stream capture sequence initiated from another thread\\. Capture in CaptureMode::kThreadLocal.*: "
      "cuStreamEndCapture returned 901 .*");
  notes.status("capture", status);
  EXPECT(std::regex_match(std::string(status.message()), expected));
  return absl::OkStatus();
}

BEHAVIOUR("to listen to the driver's log is no unsafe call") {
  CGRT_ASSIGN_OR_RETURN(Scene scene, Scene::create(world, StreamKind::kNonBlocking));
  const auto listen = [&] {
    CUlogsCallbackHandle handle = nullptr;
    const CUlogsCallback nothing = [](void*, CUlogLevel, char*, std::size_t) {};
    notes.line(absl::StrCat("register ", code_of(driver::api().LogsRegisterCallback(nothing, nullptr, &handle))));
    notes.line(absl::StrCat("unregister ", code_of(driver::api().LogsUnregisterCallback(handle))));
  };
  for (const bool is_other_thread : {false, true}) {
    const absl::Status status = capture(
                                    scene.stream,
                                    [&](StreamRef s) -> absl::Status {
                                      if (is_other_thread) {
                                        std::thread(listen).join();
                                      } else {
                                        listen();
                                      }
                                      return scene.launch(s, kPlain);
                                    },
                                    CaptureMode::kGlobal)
                                    .status();
    notes.status("capture", status);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
