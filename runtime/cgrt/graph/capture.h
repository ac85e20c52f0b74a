// capture: the work that a callback puts into a stream becomes a graph instead of running.
//
//   const auto step = [&](LaunchTarget target) { return launch(target, config, kernel, y, x, n); };
//   CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream, step));
//
//   stream:  idle --begin--> capturing --end--> idle          (graph)
//                                \--callback or end fails--> idle   (no graph, no handle left)
//
// The capture ends on every path, and the stream is usable afterwards. Other streams join it through
// events (record in one, wait in the other), must be joined back before the callback returns, and,
// unless a Stream owns them, must live until then.
//
// When the callback fails, capture returns the callback's status. When the callback succeeds although a call inside it
// ended the capture, capture returns the error of that call, or CUDA_ERROR_STREAM_CAPTURE_INVALIDATED where the call
// was not made through this library in this thread. These calls end a capture: a refused launch into it, an unsafe call
// (CaptureMode), synchronizing with the captured stream, and a wait for what is outside of the capture. Other failed
// calls leave it valid; docs/threads.md lists all of both kinds. Work that was not joined back is named in the error.
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

absl::StatusOr<Graph> capture(StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                              CaptureMode mode = CaptureMode::kThreadLocal);

// The same into a graph that is being built, the body of a conditional node too: what is captured becomes nodes of
// `place`'s graph that wait for its frontier, and its frontier is what the stream would wait for next. When it fails,
// the graph and `place` are as they were; the driver's own capture into a graph destroys that graph then, and has the
// next use of a conditional node around it crash (driver 580). So the nodes are captured into a graph of their own and
// copied, which takes three times as long (1 us a node on an H200); what the driver cannot copy, as memory allocations,
// is kUnimplemented.
absl::Status capture_into(Cursor& place, StreamRef stream, absl::FunctionRef<absl::Status(StreamRef)> record,
                          CaptureMode mode = CaptureMode::kThreadLocal);

namespace internal {

// Captures `call` from `stream`, nobody else's, in `context`, which is current meanwhile.
absl::StatusOr<Graph> capture_call(CUcontext context, StreamRef stream, absl::FunctionRef<absl::Status(CUstream)> call);

}  // namespace internal
}  // namespace cgrt
