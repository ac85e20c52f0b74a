// ExternalSemaphore: a semaphore that another API made, as Vulkan's, in the order of a stream's or a graph's work.
//
//   const SemaphoreKind kind = SemaphoreKind::kTimeline;   // fd: of vkGetSemaphoreFdKHR
//   CGRT_ASSIGN_OR_RETURN(ExternalSemaphore frames, ExternalSemaphore::import_fd(DeviceRef(0), kind, fd));
//   CGRT_RETURN_IF_ERROR(wait_semaphore(target, frames, 1));     // until its value is 1 or more
//   CGRT_RETURN_IF_ERROR(launch(target, config, kernel, y, x, 2.0f, n));
//   CGRT_RETURN_IF_ERROR(signal_semaphore(target, frames, 2));   // when the kernel has ended
//
// A timeline semaphore has a value of 64 bits, which each signal makes larger. A binary one is signaled or not: a wait
// takes the signal away, so that there is one wait for each, and its value is ignored.
// In a capture and in a graph being built the calls make one node each; several semaphores together are one node, and
// one call. A wait that nobody signals holds up the work behind it for good. A rebound step (GraphExec::rebind) gives
// its nodes other semaphores and values, as many as they had. Not in the body of a conditional node.
//
// Asynchronous; thread-safe in streams, a cursor is used by one thread at a time. kFailedPrecondition for an empty
// semaphore.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/device/context.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

enum class SemaphoreKind : std::uint8_t { kBinary, kTimeline };

class ExternalSemaphore;

// Does not own. Must not outlive the semaphore; a literal null cannot be passed.
class ExternalSemaphoreRef {
 public:
  ExternalSemaphoreRef(CUexternalSemaphore semaphore) : handle_(semaphore) {}  // implicit: also cudaExternalSemaphore_t
  ExternalSemaphoreRef(const ExternalSemaphore& semaphore);
  ExternalSemaphoreRef(ExternalSemaphore&&) = delete;
  ExternalSemaphoreRef(std::nullptr_t) = delete;
  ExternalSemaphoreRef(int) = delete;
  CUexternalSemaphore get() const { return handle_; }

 private:
  CUexternalSemaphore handle_;
};

namespace internal {
void destroy_external_semaphore(CUexternalSemaphore semaphore);
}

// Owns what was imported, which shares the other API's semaphore: the two are destroyed in any order. Destroy it when
// its signals and waits have ended, since CUDA does not wait for them. A graph that has it must not be launched
// afterwards; to let the graph own it until its last launch has ended, see Graph::keep. Importing and destroying
// disturb no capture. Empty by default and when moved from.
class ExternalSemaphore {
 public:
  ExternalSemaphore() = default;
  // Of a file descriptor that the other API exported as opaque (VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT), on
  // the device of `context`. The driver owns the descriptor from then on; on failure it stays the caller's.
  // Thread-safe.
  static absl::StatusOr<ExternalSemaphore> import_fd(ContextRef context, SemaphoreKind kind, int fd);
  // Takes over a semaphore that was imported with cuImportExternalSemaphore, of whatever type that counts or is binary.
  static ExternalSemaphore adopt(CUexternalSemaphore semaphore) { return ExternalSemaphore(semaphore); }
  // To be destroyed with cuDestroyExternalSemaphore.
  CUexternalSemaphore release() && { return handle_.release(); }
  ExternalSemaphoreRef ref() const { return {handle_.get()}; }
  CUexternalSemaphore get() const { return handle_.get(); }

 private:
  explicit ExternalSemaphore(CUexternalSemaphore semaphore) : handle_(semaphore) {}
  UniqueHandle<CUexternalSemaphore, internal::destroy_external_semaphore> handle_;
};

inline ExternalSemaphoreRef::ExternalSemaphoreRef(const ExternalSemaphore& semaphore) : handle_(semaphore.get()) {}

// All of them, when the work before has ended. kInvalidArgument: there are none.
absl::Status signal_semaphores(LaunchTarget target, absl::Span<const SemaphoreValue> values);
// Until each has its value.
absl::Status wait_semaphores(LaunchTarget target, absl::Span<const SemaphoreValue> values);

// One of them.
absl::Status signal_semaphore(LaunchTarget target, ExternalSemaphoreRef semaphore, std::uint64_t value = 0);
absl::Status wait_semaphore(LaunchTarget target, ExternalSemaphoreRef semaphore, std::uint64_t value = 0);

namespace internal {

// For graph/ and exec/ too. As the driver takes them: of the parameters one list, by the action.
struct SemaphoreArrays {
  unsigned count() const { return static_cast<unsigned>(handles.size()); }
  std::vector<CUexternalSemaphore> handles;
  std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> signals;
  std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> waits;
};
absl::Status check(absl::Span<const SemaphoreValue> values);
SemaphoreArrays to_driver(SemaphoreAction action, absl::Span<const SemaphoreValue> values);
absl::Status explain(const absl::Status& failure, SemaphoreAction action, absl::Span<const SemaphoreValue> values);

}  // namespace internal
}  // namespace cgrt
