// LaunchTarget: where a launch, a copy or a memset goes. Every launcher takes one, so that one call
// site runs eagerly, is captured, or becomes a node of a graph being built.
//
//   absl::Status step(LaunchTarget target) { return launch(target, config, kernel, out, in, n); }
//
//   CGRT_RETURN_IF_ERROR(step(stream));                                // eager, or captured while stream is
//   CGRT_RETURN_IF_ERROR(step(graph.cursor()));                        // explicit node
//   CGRT_RETURN_IF_ERROR(step(LaunchTarget(stream).programmatic()));   // may start before its predecessor ends
//
// A small value. It names the stream or the sink and owns neither.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/optimization.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/kernel_identity.h"
#include "cgrt/stream/stream.h"
#include "cgrt/target/launch_attributes.h"

namespace cgrt {

// kProgrammatic: the work may start when its predecessor, a kernel, triggers
// (cudaTriggerProgrammaticLaunchCompletion, or its end), and must itself wait on the device
// (cudaGridDependencySynchronize) before it touches the predecessor's results.
// kLaunchCompletion: it may start when all blocks of its predecessor, a kernel, have begun; in a
// stream, CUDA says this with a launch completion event.
enum class EdgeKind : std::uint8_t { kFull, kProgrammatic, kLaunchCompletion };

// A launch as the driver takes it. `arguments` are pointers to the values, in order; `attributes` is
// null when all are at their defaults.
struct KernelLaunch {
  const driver::KernelIdentity* kernel;
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
  void** arguments;
  const LaunchAttributes* attributes = nullptr;
};

// `depth` slices of `height` rows of `bytes` each, from `source` to `destination`; either may be
// memory of any device or of the host. Pitches are bytes from row to row (0 when there is one row),
// `_rows` rows from slice to slice (0: `height`).
struct CopyParams {
  void* destination;
  const void* source;
  std::size_t bytes;
  std::size_t height = 1, depth = 1;
  std::size_t destination_pitch = 0, source_pitch = 0;
  std::size_t destination_rows = 0, source_rows = 0;
};

// `height` rows of `count` elements of `element_bytes` (1, 2 or 4), each set to the low bytes of
// `value`. The pitch is bytes from row to row, 0 when there is one row.
struct FillParams {
  void* destination;
  std::uint32_t value;
  std::uint32_t element_bytes;
  std::size_t count;
  std::size_t height = 1, pitch = 0;
};

// A function of the host, called on a thread of the driver's. It must not call CUDA.
struct HostParams {
  CUhostFn function;
  void* data;
};

// A write of `value` to device-visible memory, or a wait until what is there meets it, in the order of the target's
// work.
struct MemoryOp {
  enum class Kind : std::uint8_t {
    kWrite,
    kWaitGreaterOrEqual,  // cyclic: the difference is not negative
    kWaitEqual,
    kWaitAnd,  // the two have a bit in common
    kWaitNor,  // there is a bit that neither has
  };
  Kind kind;
  void* address;  // of 4 or 8 bytes, at a multiple of that
  std::uint64_t value;
  std::uint32_t bytes = 4;  // 4 or 8
};

enum class SemaphoreAction : std::uint8_t { kSignal, kWait };

// What a semaphore of another API is set to, or what it is waited to be at least. A binary one has no value.
struct SemaphoreValue {
  CUexternalSemaphore semaphore;
  std::uint64_t value = 0;
};

class LaunchTarget;

// What tells one call of a library from all others: which function, sizes, modes, and all addresses. Empty: unknown.
using CallKey = absl::Span<const std::uint64_t>;

// One of several pieces of work that do not wait for each other: see fork_join (target/fork_join.h).
using Branch = absl::FunctionRef<absl::Status(LaunchTarget)>;

// What a target that is not a stream does with the work: graph/ and exec/ make these. Called on the thread that
// launches. References, spans, and `arguments` and `attributes` of a KernelLaunch are valid only during the call: a
// sink copies what it keeps.
class LaunchSink {
 public:
  virtual absl::Status add_kernel(const KernelLaunch& launch, EdgeKind edge) = 0;
  virtual absl::Status add_copy(const CopyParams& copy) = 0;
  virtual absl::Status add_fill(const FillParams& fill) = 0;
  virtual absl::Status add_host(const HostParams& host) = 0;
  virtual absl::Status add_event_record(EventRef event) = 0;
  virtual absl::Status add_event_wait(EventRef event) = 0;
  virtual absl::StatusOr<void*> add_alloc(std::size_t bytes) = 0;
  virtual absl::Status add_free(void* address) = 0;
  virtual absl::Status add_memory_ops(absl::Span<const MemoryOp> ops) = 0;
  virtual absl::Status add_semaphores(SemaphoreAction action, absl::Span<const SemaphoreValue> values) = 0;
  // What `call` puts into the stream that it is given: for libraries that take nothing but a stream. The context is
  // current during the call. Of two calls with the same `key`, which is not empty, the second may be left out: it would
  // put in the same work.
  virtual absl::Status add_captured(absl::FunctionRef<absl::Status(CUstream)> call, CallKey key) = 0;
  // See fork_join. One branch after the other, unless the sink knows better.
  virtual absl::Status fork_join(absl::Span<const Branch> branches);
  // Keeps what the nodes use alive as long as they may run.
  virtual absl::Status keep(std::shared_ptr<const void> resource) = 0;
  virtual absl::StatusOr<CUcontext> context() const = 0;

 protected:
  ~LaunchSink() = default;
};

class LaunchTarget {
 public:
  LaunchTarget(StreamRef stream) : stream_(stream) {}
  [[gnu::always_inline]] LaunchTarget(CUstream stream) : stream_(stream) {}
  LaunchTarget(const Stream& stream) : stream_(stream) {}
  LaunchTarget(Stream&&) = delete;
  LaunchTarget(std::nullptr_t) = delete;
  LaunchTarget(int) = delete;
  // The sink must outlive the target.
  static LaunchTarget into(LaunchSink& sink) {
    LaunchTarget target(StreamRef::legacy_default());
    target.sink_ = &sink;
    return target;
  }

  // The same place, where the next kernel's dependency on a kernel before it is programmatic; a full one where its
  // code was compiled for less than 9.0, and so cannot wait. For kernels alone: copies and memsets refuse it
  // (kInvalidArgument), other calls take it for a plain target.
  LaunchTarget programmatic() const {
    LaunchTarget target = *this;
    target.edge_ = EdgeKind::kProgrammatic;
    return target;
  }

  // The same place, where the next kernel records `event` in its stream: when all of its blocks have triggered or ended
  // (kProgrammatic), or have begun (kLaunchCompletion). A kernel of another stream that waits for the event with
  // StreamRef::wait may start then; in a capture the wait becomes an edge of that kind. The event has no timing.
  // For kernels alone: calls that put other work there refuse it (kInvalidArgument). For streams alone: in a graph
  // being built the edge itself says it, programmatic(node) and launched(node).
  LaunchTarget recording(EventRef event, EdgeKind when) const {
    LaunchTarget target = *this;
    target.event_ = event.get();
    target.when_ = when;
    return target;
  }

  LaunchSink* sink() const { return sink_; }  // null: a stream
  StreamRef stream() const { return stream_; }
  EdgeKind edge() const { return edge_; }
  CUevent event() const { return event_; }  // null: none is recorded
  EdgeKind when() const { return when_; }   // it is

  // The context in which the work will run.
  absl::StatusOr<CUcontext> context() const { return sink_ != nullptr ? sink_->context() : stream_.context(); }

 private:
  StreamRef stream_;
  LaunchSink* sink_ = nullptr;
  CUevent event_ = nullptr;
  EdgeKind edge_ = EdgeKind::kFull, when_ = EdgeKind::kFull;
};

// Records `event`, so that others can wait for it or ask it: in a stream as StreamRef::record does;
// in a capture and in a graph as a node that records it at every launch (StreamRef::record inside a
// capture only forks). The event must outlive the graph's last launch. Asynchronous.
absl::Status record_event(LaunchTarget target, EventRef event);

// Later work of the target waits for the event: in a stream as StreamRef::wait does; in a capture and
// in a graph as a node that waits at every launch, for work outside the graph. Asynchronous.
absl::Status wait_event(LaunchTarget target, EventRef event);

namespace internal {

// kInvalidArgument for a target that is to record an event, by a call that launches no kernel: "a copy". It would be
// left unrecorded, and what waits for it would not wait.
absl::Status refuse_event(const char* call);
inline absl::Status check_no_event(LaunchTarget target, const char* call) {
  return ABSL_PREDICT_TRUE(target.event() == nullptr) ? absl::OkStatus() : refuse_event(call);
}

}  // namespace internal
}  // namespace cgrt
