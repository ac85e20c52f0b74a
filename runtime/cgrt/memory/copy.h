// Copies and memsets of one, two or three dimensions, into any launch target.
//
//   CGRT_RETURN_IF_ERROR(copy(stream.ref(), device.data(), host.data(), bytes));   // eager or captured
//   CGRT_RETURN_IF_ERROR(copy(cursor, device.data(), host.data(), bytes));         // explicit node
//   CGRT_RETURN_IF_ERROR(copy(cursor, CopyParams{.destination = tile, .source = image, .bytes = 256, .height = 64,
//                                                .destination_pitch = 256, .source_pitch = 4096}));
//
// Between two devices a copy is the same call: where they cannot reach each other, CUDA goes through
// the host.
// The kind of each address is the driver's to find out. Asynchronous; a copy from or to pageable
// host memory blocks the caller until the driver has staged it. In a graph the host address is read
// or written again at every launch and must stay valid as long. Thread-safe in streams; a cursor is
// used by one thread at a time.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// Zero bytes do nothing in a stream, and make no node where it is captured; in a graph being built they are
// kInvalidArgument, since a node must be. The same call of a step that is rebound meets no node.
absl::Status copy(LaunchTarget target, void* destination, const void* source, std::size_t bytes);

// Rows and slices: see CopyParams. A pitch shorter than a row is kInvalidArgument.
absl::Status copy(LaunchTarget target, const CopyParams& params);

// See FillParams. kInvalidArgument for elements that are not 1, 2 or 4 bytes.
absl::Status fill(LaunchTarget target, const FillParams& params);

// Sets `count` elements of 1, 2 or 4 bytes at the device address `destination` to `value`.
absl::Status fill8(LaunchTarget target, void* destination, std::uint8_t value, std::size_t count);
absl::Status fill16(LaunchTarget target, void* destination, std::uint16_t value, std::size_t count);
absl::Status fill32(LaunchTarget target, void* destination, std::uint32_t value, std::size_t count);

namespace internal {

// The driver's form, and a failed status with the operation's values; for graph/ and exec/ too.
CUDA_MEMCPY3D to_driver(const CopyParams& params);
absl::Status explain(const absl::Status& status, const CopyParams& params);
absl::Status explain(const absl::Status& status, const FillParams& params);

}  // namespace internal
}  // namespace cgrt
