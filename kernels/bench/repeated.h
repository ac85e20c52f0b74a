// Large buffers of numbers, made on the device.
#pragma once

#include "kernels/bench/bench.h"

namespace cgrt::bench {

// As make_numbers, but a million of them again and again: made in a moment, however many there are.
absl::StatusOr<DeviceBuffer> make_repeated_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                                   std::uint32_t seed);

}  // namespace cgrt::bench
