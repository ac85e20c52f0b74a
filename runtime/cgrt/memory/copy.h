// Copies and memsets of contiguous memory, into any launch target.
//
//   CGRT_RETURN_IF_ERROR(copy(stream.ref(), device.data(), host.data(), bytes));   // eager or captured
//   CGRT_RETURN_IF_ERROR(copy(cursor, device.data(), host.data(), bytes));         // explicit node
//
// The kind of each address is the driver's to find out. Asynchronous; a copy from or to pageable
// host memory blocks the caller until the driver has staged it. In a graph the host address is read
// or written again at every launch and must stay valid as long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cgrt/stream/launch_target.h"

namespace cgrt {

// Zero bytes do nothing in a stream; in a graph they are kInvalidArgument, since a node must be.
absl::Status copy(LaunchTarget target, void* destination, const void* source, std::size_t bytes);

// Sets `count` elements of 1, 2 or 4 bytes at the device address `destination` to `value`.
absl::Status fill8(LaunchTarget target, void* destination, std::uint8_t value, std::size_t count);
absl::Status fill16(LaunchTarget target, void* destination, std::uint16_t value, std::size_t count);
absl::Status fill32(LaunchTarget target, void* destination, std::uint32_t value, std::size_t count);

}  // namespace cgrt
