// What the benchmarks of reductions share.
#pragma once

#include "kernels/bench/bench.h"

namespace cgrt::bench {

// make_numbers, where making each of them would take longer than all measurements: the same numbers
// again after 2^22 of them.
absl::StatusOr<DeviceBuffer> make_many_numbers(StreamRef stream, kernels::DType type, std::uint64_t count,
                                               std::uint32_t seed);

}  // namespace cgrt::bench
