// Addresses as (allocation, offset), with allocations numbered as they come, so that two runs of one
// program say the same. Internal to graph/.
//
//   Addresses addresses(ir.allocations);
//   CGRT_ASSIGN_OR_RETURN(std::optional<ir::Pointer> found, addresses.find(word));
//
// The driver is asked once for each allocation, and once for each word that is no address: a structure
// full of numbers costs a call per number, and the next node with the same ones nothing.
// Not thread-safe.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

class Addresses {
 public:
  // Appends to `allocations`.
  explicit Addresses(std::vector<ir::Allocation>& allocations) : allocations_(allocations) {}

  // nullopt when the driver does not know the address. A number that happens to be the address of live memory
  // is taken for it: nothing tells the two apart.
  absl::StatusOr<std::optional<ir::Pointer>> find(CUdeviceptr address);

  // For an operand that is an address for certain: unknown ones are pageable host memory.
  absl::StatusOr<ir::Pointer> operand(CUdeviceptr address);

  // The same for memory of a device: unknown ones are that.
  absl::StatusOr<ir::Pointer> device_operand(CUdeviceptr address);

  // Memory of an allocation node, which may not be there while the graph does not run.
  ir::Pointer graph_memory(CUdeviceptr start, std::size_t bytes, std::int32_t device);

  // Puts an argument into the buffer of `kernel`, which has room for it: an address, or bytes with the addresses among
  // them apart. Looked at are the words of 8 bytes that are aligned in the buffer.
  absl::Status add_argument(const void* value, const ir::Parameter& parameter, ir::KernelParams& kernel);

  // One for each allocation.
  const std::vector<AllocationId>& ids() const { return ids_; }

 private:
  struct Range {
    std::size_t bytes;
    std::uint32_t allocation;
  };

  std::optional<ir::Pointer> known(CUdeviceptr address) const;
  ir::Pointer add(CUdeviceptr address, AllocationId id, std::size_t bytes, const ir::Allocation& allocation);

  std::vector<ir::Allocation>& allocations_;
  std::vector<AllocationId> ids_;
  std::map<CUdeviceptr, Range> ranges_;  // by start
  absl::flat_hash_set<CUdeviceptr> unknown_;
};

}  // namespace cgrt::internal
