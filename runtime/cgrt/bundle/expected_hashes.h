// Hashes of memory as saved::ExpectedMemory has them. Internal to bundle/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/bundle/prepared.h"

namespace cgrt::internal {

// How many hashes so many bytes have.
std::uint64_t hash_count(std::uint64_t bytes);
// Of bytes of the host's.
std::vector<std::uint64_t> hash_bytes(std::span<const std::byte> bytes);

// Of each place one for each saved::kExpectedBytes and one for the rest. Blocks.
absl::StatusOr<std::vector<std::uint64_t>> hash_places(CUcontext context, const std::vector<Place>& places);

// Where memory is not what `hashes` say, ascending. Left out are places that were freed, and operands of copies in
// pageable memory. Blocks.
absl::StatusOr<std::vector<MemoryRange>> find_changes(CUcontext context, const std::vector<Place>& places,
                                                      const std::vector<std::uint64_t>& hashes);

}  // namespace cgrt::internal
