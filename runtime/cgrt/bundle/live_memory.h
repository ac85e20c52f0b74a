// LiveMemory: which memory of this process is behind an address, as far as the driver knows.
//
//   internal::LiveMemory live;
//   CGRT_ASSIGN_OR_RETURN(const internal::LiveRange* range, live.find(word));
//
// The driver is asked once for each range, and once for each address that is in none. Of memory that is mapped into
// reserved addresses (cuMemMap) a range is what is mapped one behind the other: a reservation can be larger than the
// device. Answers count until memory is allocated or freed. Not thread-safe. Internal to bundle/.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

struct LiveRange {
  CUdeviceptr start = 0;
  std::uint64_t bytes = 0;
  ir::MemoryKind kind = ir::MemoryKind::kDevice;  // kDevice, kManaged or kPinnedHost
  int device = -1;                                // ordinal; of memory of the host's: -1

  CUdeviceptr end() const { return start + bytes; }
};

class LiveMemory {
 public:
  // Null: the driver does not know it. Valid until this is gone.
  absl::StatusOr<const LiveRange*> find(CUdeviceptr address);

  // Whether a word of 8 bytes may be an address at all.
  static bool may_be_address(std::uint64_t word) { return word >= kLowest && word < kEnd; }

 private:
  // Nothing of a device is mapped below 4 GB, and CPUs give addresses of 48 bits unless they are asked for more.
  static constexpr std::uint64_t kLowest = std::uint64_t{1} << 32, kEnd = std::uint64_t{1} << 48;

  struct Answer {
    LiveRange range;
    std::optional<LiveRange> mapping;  // that the address is in, of a larger range
  };
  absl::StatusOr<std::optional<Answer>> ask(CUdeviceptr address) const;
  const LiveRange* known(CUdeviceptr address) const;

  std::map<CUdeviceptr, LiveRange> ranges_;  // by start
  absl::flat_hash_set<CUdeviceptr> unknown_;
};

}  // namespace cgrt::internal
