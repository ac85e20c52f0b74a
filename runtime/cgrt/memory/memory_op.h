// Values in memory that work waits for and writes: how streams, graphs, the host and other devices signal each other
// without events.
//
//   CGRT_RETURN_IF_ERROR(wait_value(target, ready, 1u));   // until *ready >= 1
//   CGRT_RETURN_IF_ERROR(launch(target, config, kernel, y, x, 2.0f, n));
//   CGRT_RETURN_IF_ERROR(write_value(target, done, 1u));   // when the kernel has ended
//
// The memory is a device's, or page-locked memory of the host (PinnedBuffer). In a capture and in a graph being built
// the calls make one batch memory operation node each; several operations together are one node, and one call. A wait
// that nobody meets holds up the work behind it for good. A rebound step (GraphExec::rebind) gives its nodes other
// addresses, values and conditions, as many as they had. Not in the body of a conditional node.
//
// Asynchronous; thread-safe in streams, a cursor is used by one thread at a time. kInvalidArgument for an address that
// is null or not a multiple of the value's size, and for memory that the device does not see.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// Of a wait, between what is in memory and the value.
enum class WaitCondition : std::uint8_t { kGreaterOrEqual, kEqual, kAnd, kNor };  // see MemoryOp::Kind

inline MemoryOp write_op(std::uint32_t* address, std::uint32_t value) {
  return {MemoryOp::Kind::kWrite, address, value, 4};
}
inline MemoryOp write_op(std::uint64_t* address, std::uint64_t value) {
  return {MemoryOp::Kind::kWrite, address, value, 8};
}
inline MemoryOp wait_op(const std::uint32_t* address, std::uint32_t value,
                        WaitCondition condition = WaitCondition::kGreaterOrEqual) {
  return {static_cast<MemoryOp::Kind>(static_cast<int>(condition) + 1), const_cast<std::uint32_t*>(address), value, 4};
}
inline MemoryOp wait_op(const std::uint64_t* address, std::uint64_t value,
                        WaitCondition condition = WaitCondition::kGreaterOrEqual) {
  return {static_cast<MemoryOp::Kind>(static_cast<int>(condition) + 1), const_cast<std::uint64_t*>(address), value, 8};
}

// In their order. kInvalidArgument: there are none, or one is not as MemoryOp says.
absl::Status memory_ops(LaunchTarget target, absl::Span<const MemoryOp> ops);

// One of them. Word: std::uint32_t or std::uint64_t.
template <class Word>
absl::Status write_value(LaunchTarget target, Word* address, std::type_identity_t<Word> value) {
  const MemoryOp op = write_op(address, value);
  return memory_ops(target, {&op, 1});
}
template <class Word>
absl::Status wait_value(LaunchTarget target, Word* address, std::remove_const_t<Word> value,
                        WaitCondition condition = WaitCondition::kGreaterOrEqual) {
  const MemoryOp op = wait_op(address, value, condition);
  return memory_ops(target, {&op, 1});
}

namespace internal {

// For graph/ and exec/ too.
absl::Status check(absl::Span<const MemoryOp> ops);
// The same for a node: memory that the device does not see is refused by a stream, and by a graph's launch only.
absl::Status check_for_node(absl::Span<const MemoryOp> ops);
std::vector<CUstreamBatchMemOpParams> to_driver(absl::Span<const MemoryOp> ops);
absl::Status explain(const absl::Status& failure, absl::Span<const MemoryOp> ops);

}  // namespace internal
}  // namespace cgrt
