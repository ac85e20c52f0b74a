// Stream: an order of work on a device.
//
//   CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
//   CGRT_RETURN_IF_ERROR(copy(stream, out, in, bytes));
//   CGRT_ASSIGN_OR_RETURN(bool done, stream.ref().is_complete());
//
// StreamRef is thread-safe; a Stream must not be moved or destroyed beside other calls on it.
// Errors: driver/status.h; kFailedPrecondition for an empty Stream.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/stream/completion.h"
#include "cgrt/stream/event.h"

namespace cgrt {

namespace internal {

// What handle 0 means is chosen by how the caller's file was compiled, so the choice must be made
// in that file: internal linkage here, and no out-of-line copy of the constructor that uses it.
static inline CUstream named_stream(CUstream stream) {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
#else
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
#endif
}

void destroy_stream(CUstream stream);

}  // namespace internal

class Stream;

// Does not own. Must not outlive the stream. A literal null cannot be passed; a handle that is 0 at
// run time means the default stream of the file that passes it (legacy, or per-thread when compiled
// with --default-stream per-thread). Make the StreamRef in that file: a template that converts later
// (optional::emplace) may have been instantiated in another one.
class StreamRef {
 public:
  [[gnu::always_inline]] StreamRef(CUstream stream) : handle_(internal::named_stream(stream)) {}
  StreamRef(const Stream& stream);  // implicit: an owned stream is taken where a raw one is
  StreamRef(Stream&&) = delete;
  StreamRef(std::nullptr_t) = delete;
  StreamRef(int) = delete;
  // The same with the stream's context, which saves asking for it at every launch.
  [[gnu::always_inline]] StreamRef(CUstream stream, CUcontext context)
      : handle_(internal::named_stream(stream)), context_(context) {}
  static StreamRef legacy_default() { return StreamRef(CU_STREAM_LEGACY); }
  static StreamRef per_thread_default() { return StreamRef(CU_STREAM_PER_THREAD); }

  // Never blocks. Disturbs no capture, but for the races in docs/threads.md.
  absl::StatusOr<Completion> completion() const;

  // completion() == kDone; kFailedPrecondition while the stream is being captured.
  absl::StatusOr<bool> is_complete() const;

  // Never blocks. kFailedPrecondition for the legacy default stream while a blocking stream of its context is captured.
  absl::StatusOr<bool> is_capturing() const;

  // Blocks until all work in the stream is done. While it is captured: kFailedPrecondition, and the capture ends. So do
  // a kThreadLocal capture of this thread and any thread's kGlobal one, whichever stream is synchronized (CaptureMode).
  absl::Status synchronize() const;

  // `event` is done when the work before this call is. Asynchronous. In a capture, a stream that waits for the event
  // joins it: a fork.
  absl::Status record(EventRef event) const;

  // Later work in this stream waits for the work before the event's last record. Inside a capture
  // this forks or joins. Never blocks the caller.
  absl::Status wait(EventRef event) const;

  // The stream's. Never blocks; asks the driver unless it is known.
  absl::StatusOr<CUcontext> context() const;

  CUstream get() const { return handle_; }              // null: of an empty Stream
  CUcontext known_context() const { return context_; }  // null: not known
  bool operator==(const StreamRef& other) const { return handle_ == other.handle_; }

 private:
  friend class Stream;
  struct Empty {};
  explicit StreamRef(Empty) : handle_(nullptr) {}

  CUstream handle_;
  CUcontext context_ = nullptr;
};

// A blocking stream waits for, and is waited for by, the legacy default stream.
enum class StreamKind { kNonBlocking, kBlocking };

struct StreamOptions {
  StreamKind kind = StreamKind::kNonBlocking;
  int priority = 0;  // lower runs first; clamped to what the device has
};

// Owns. Destroying it while work is pending is allowed; CUDA frees it later. Empty by default and when moved from:
// work that is put into an empty Stream is refused.
class Stream {
 public:
  Stream() = default;
  // Thread-safe. May create the device's primary context, and blocks then.
  static absl::StatusOr<Stream> create(ContextRef context, StreamOptions options = {});
  // Takes over a stream of cuStreamCreate or cudaStreamCreate. kInvalidArgument for a default stream, which nobody
  // owns.
  static absl::StatusOr<Stream> adopt(CUstream stream);
  // To be destroyed with cuStreamDestroy.
  CUstream release() && { return handle_.release(); }
  StreamRef ref() const { return handle_ ? StreamRef(handle_.get(), context_) : StreamRef(StreamRef::Empty{}); }

 private:
  Stream(CUstream stream, CUcontext context) : handle_(stream), context_(context) {}
  UniqueHandle<CUstream, internal::destroy_stream> handle_;
  CUcontext context_ = nullptr;  // null when adopted
};

inline StreamRef::StreamRef(const Stream& stream) : StreamRef(stream.ref()) {}

}  // namespace cgrt
