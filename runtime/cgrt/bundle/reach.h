// What Saver::begin does: finds and reads the memory that a graph uses at the entry of a launch. Internal to bundle/.
#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/bundle/prepared.h"

namespace cgrt::internal {

// Fills in what Prepared has "at the entry of the launch", and gives the allocations of its graph the places that they
// are in. `keep` stores a piece.
absl::Status read_entry(Saver::Prepared& graph, const LoadedModules& modules, const std::vector<MemoryRange>& dead,
                        absl::FunctionRef<absl::StatusOr<saved::Hash>(std::span<const std::byte>)> keep);

}  // namespace cgrt::internal
