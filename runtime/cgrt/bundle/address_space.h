// The memory of a bundle, at the addresses that it had or at others. Internal to bundle/.
//
//   CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<AddressSpace> space,
//                         AddressSpace::reserve(manifest.blocks, context, Placement::kAsSaved));
//   CGRT_RETURN_IF_ERROR(space->map(fixed_blocks));
//
// Not thread-safe. Destroying it gives all back; nothing may use the memory by then.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::internal {

inline constexpr char kAddressesTaken[] = "type.cgrt.dev/addresses-taken";  // the payload of such a failure

enum class Placement { kAsSaved, kAnywhere };

class AddressSpace {
 public:
  // Takes addresses for all memory of devices, in whole regions of 32 MB. Nothing is accessible yet. Anywhere: blocks
  // that touch still do. kFailedPrecondition: a range is taken; kUnimplemented: managed memory.
  static absl::StatusOr<std::unique_ptr<AddressSpace>> reserve(const std::vector<saved::Block>& blocks,
                                                               CUcontext context, Placement placement);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Puts memory there, whose contents are undefined. Memory of the host that is not among the blocks `fixed` gets
  // another address; of such blocks those that touch still do. kFailedPrecondition: that of a fixed one is taken.
  absl::Status map(const std::set<std::uint32_t>& fixed);

  // Where each block is now; 0 for variables, and for all before map().
  const std::vector<CUdeviceptr>& addresses() const { return addresses_; }

 private:
  struct Extent {
    CUdeviceptr begin = 0, end = 0;
    std::size_t bytes() const { return end - begin; }
  };

  // Addresses that were taken for those of an extent.
  struct Region {
    Extent saved;
    CUdeviceptr begin = 0;
    CUdeviceptr now(CUdeviceptr address) const { return begin + (address - saved.begin); }
  };

  AddressSpace(const std::vector<saved::Block>& blocks, CUcontext context)
      : blocks_(blocks), context_(context), addresses_(blocks.size()) {}
  template <class Wanted>
  std::vector<Extent> extents(std::uint64_t unit, Wanted wanted) const;
  std::vector<Extent> device_extents(std::uint64_t unit) const;
  absl::Status check_blocks() const;
  absl::Status reserve_device(const Extent& extent, Placement placement);
  absl::Status map_device();
  absl::Status map_device(const Extent& extent, const CUmemAllocationProp& memory);
  absl::Status map_host(const std::set<std::uint32_t>& fixed);
  absl::Status map_host(const Extent& extent);
  const Region& region_of(CUdeviceptr saved_address) const;  // of memory of devices
  bool is_reserved(const Extent& extent) const;

  const std::vector<saved::Block>& blocks_;
  CUcontext context_;
  std::vector<CUdeviceptr> addresses_;
  std::vector<Region> reserved_;  // ascending by what was saved
  std::vector<Extent> mapped_, host_, registered_;
  std::vector<PinnedBuffer> elsewhere_;
};

}  // namespace cgrt::internal
