// capture: the work that a callback puts into a stream becomes a graph instead of running.
//
//   const auto step = [&](LaunchTarget target) { return launch(target, config, kernel, y, x, n); };
//   CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream, step));
//
//   stream:  idle --begin--> capturing --end--> idle          (graph)
//                                \--callback or end fails--> idle   (no graph, no handle left)
//
// The capture ends on every path, and the stream is usable afterwards. Other streams join it through events (record in
// one, wait in the other; fork_join does both), and are joined back before the callback returns (UnjoinedWork). A
// Stream that is part of the capture may be destroyed inside of it, and goes when the capture has ended; streams that
// no Stream owns must live until then.
//
// When the callback fails, capture returns the callback's status. When the callback succeeds although a call ended the
// capture, capture returns the error of that call where it was made through this library in this thread. Any other is
// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, and the message has what the driver's log says: the call, its result, its
// thread, and the capture. These calls end a capture: a refused launch into it, an unsafe call (CaptureMode),
// synchronizing with the captured stream, and a wait for what is outside of the capture. Other failed calls leave it
// valid; docs/threads.md lists all of both kinds.
//
// Call from any thread; the stream must not be used by another one until it returns.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/stream/stream.h"

namespace cgrt {

class Cursor;

// Whose unsafe calls (allocating, synchronizing) end the capture with an error: this thread's, any
// thread's, nobody's. docs/threads.md lists what each public operation does.
enum class CaptureMode { kThreadLocal, kGlobal, kRelaxed };

// What becomes of work in side streams that the captured stream has not waited for when the callback returns: it is an
// error, which names the work and its stream where that joined by StreamRef::wait; or it is joined for the caller, in
// whatever way it got there. To find it, each captured node is asked for its dependents.
enum class UnjoinedWork { kRefused, kJoined };

struct CaptureOptions {
  CaptureOptions(CaptureMode mode_ = CaptureMode::kThreadLocal, UnjoinedWork unjoined_ = UnjoinedWork::kRefused)
      : mode(mode_), unjoined(unjoined_) {}
  CaptureOptions(UnjoinedWork unjoined_) : CaptureOptions(CaptureMode::kThreadLocal, unjoined_) {}

  CaptureMode mode;
  UnjoinedWork unjoined;
};

absl::StatusOr<Graph> capture(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                              CaptureOptions options = {});

// The same into a graph that is being built, the body of a conditional node too: what is captured becomes nodes of
// `place`'s graph that wait for its frontier, and its frontier is what the stream would wait for next. When it fails,
// the graph and `place` are as they were; the driver's own capture into a graph destroys that graph then, and has the
// next use of a conditional node around it crash (driver 580). So the nodes are captured into a graph of their own and
// copied, which takes three times as long (1.1 to 3.3 us a node from 10 nodes on, H200); what the driver cannot copy,
// as memory allocations, is kUnimplemented. What others than cgrt retain on the captured graph
// (cuGraphRetainUserObject) is kept with the graph where they made nodes, too.
absl::Status capture_into(Cursor& place, StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                          CaptureOptions options = {});

struct CapturedOrRun {
  Graph graph;          // empty when the work could not be captured: then it has been put into the stream
  absl::Status reason;  // why there is no graph; ok when there is one

  bool is_captured() const { return reason.ok(); }
};

// Captures, and where that cannot be, runs: when a call that no capture can have (an allocation, a synchronization, a
// library that does either) ends it, or work is left unjoined, `record` is called a second time, and its work goes into
// the stream at once. Into the legacy default stream, which cannot be captured, `record` works at once, and is called
// once. Not a launch that no device can run, nor a failure of the callback's own, unless it carries an error of CUDA's
// that a capture gives (800, 801, 900 to 908): these are returned. A stream that somebody else captures is refused, as
// by capture.
absl::StatusOr<CapturedOrRun> capture_or_run(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                                             CaptureOptions options = {});

namespace internal {

// Captures `call` from `stream`, nobody else's, in `context`, which is current meanwhile.
absl::StatusOr<Graph> capture_call(CUcontext context, StreamRef stream, absl::FunctionRef<absl::Status(CUstream)> call);

}  // namespace internal
}  // namespace cgrt
