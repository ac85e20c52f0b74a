#include "cgrt/bundle/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/log.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {
namespace {

// A smaller reservation, or one that does not begin at a multiple of this, is put where the driver likes (driver 580).
constexpr std::uint64_t kRegion = std::uint64_t{32} << 20;
constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 57;  // of a process, with five levels of page tables

std::string range_text(CUdeviceptr begin, std::size_t bytes) {
  return absl::StrCat("0x", absl::Hex(begin), " to 0x", absl::Hex(begin + bytes - 1));
}

absl::Status is_taken(CUdeviceptr begin, std::size_t bytes) {
  absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("The addresses ", range_text(begin, bytes),
                   ", at which the bundle has memory, are taken in this process. Load the bundle before anything else "
                   "takes them, in a program that is started without address randomization (setarch -R) if need be; a "
                   "bundle that was saved with --movable can be loaded anywhere."));
  status.SetPayload(kAddressesTaken, absl::Cord());
  return status;
}

void map_nothing(CUdeviceptr begin, std::size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  static_cast<void>(mmap(reinterpret_cast<void*>(begin), bytes, PROT_NONE, kFlags, -1, 0));
}

// For destructors.
void log_failure(CUresult result, const char* call) {
  const bool is_gone = result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_NOT_INITIALIZED;
  if (result == CUDA_SUCCESS || is_gone || driver::is_sticky(result)) return;
  log_warning(std::string(driver::to_status(result, call).message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AddressSpace>> AddressSpace::reserve(const std::vector<saved::Block>& blocks,
                                                                    CUcontext context, Placement placement) {
  std::unique_ptr<AddressSpace> space(new AddressSpace(blocks, context));
  CGRT_RETURN_IF_ERROR(space->check_blocks());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  for (const Extent& extent : space->device_extents(kRegion)) {
    CGRT_RETURN_IF_ERROR(space->reserve_device(extent, placement));
  }
  return space;
}

AddressSpace::~AddressSpace() {
  const absl::StatusOr<ScopedContext> current = ScopedContext::enter(context_);
  const RelaxedCaptureMode relaxed;  // these would end captures
  const driver::Api& api = driver::api();
  for (const Extent& extent : registered_) {
    log_failure(api.MemHostUnregister(reinterpret_cast<void*>(extent.begin)), "cuMemHostUnregister");
  }
  for (const Extent& extent : host_) {
    if (is_reserved(extent)) {
      map_nothing(extent.begin, extent.bytes());  // what was reserved is the driver's to give back
    } else {
      munmap(reinterpret_cast<void*>(extent.begin), extent.bytes());
    }
  }
  for (const Extent& extent : mapped_) log_failure(api.MemUnmap(extent.begin, extent.bytes()), "cuMemUnmap");
  for (const Region& region : reserved_) {
    log_failure(api.MemAddressFree(region.begin, region.saved.bytes()), "cuMemAddressFree");
  }
}

absl::Status AddressSpace::check_blocks() const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const saved::Block& block = blocks_[i];
    if (block.kind == ir::MemoryKind::kManaged) {
      return absl::UnimplementedError(absl::StrCat(
          "Memory ", i, " of the bundle (", counted(block.bytes, "byte"),
          ") is managed memory, which cannot be loaded yet. Save a program that allocates device memory."));
    }
    if (block.address >= kEndOfAddresses || block.bytes > kEndOfAddresses - block.address) {
      return absl::InvalidArgumentError(absl::StrCat("Memory ", i, " of the bundle has ", counted(block.bytes, "byte"),
                                                     " at 0x", absl::Hex(block.address),
                                                     ", which is no address of a process."));
    }
  }
  return absl::OkStatus();
}

// What the blocks that are wanted(number) lie in, in whole units; those that touch are one.
template <class Wanted>
std::vector<AddressSpace::Extent> AddressSpace::extents(std::uint64_t unit, Wanted wanted) const {
  std::vector<Extent> out;
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    if (!wanted(i)) continue;
    const saved::Block& block = blocks_[i];
    const Extent extent{block.address / unit * unit, (block.address + block.bytes + unit - 1) / unit * unit};
    if (!out.empty() && extent.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, extent.end);
    } else {
      out.push_back(extent);
    }
  }
  return out;
}

std::vector<AddressSpace::Extent> AddressSpace::device_extents(std::uint64_t unit) const {
  return extents(
      unit, [&](std::uint32_t i) { return blocks_[i].kind == ir::MemoryKind::kDevice && blocks_[i].variable.empty(); });
}

absl::Status AddressSpace::reserve_device(const Extent& extent, Placement placement) {
  const bool is_fixed = placement == Placement::kAsSaved;
  CUdeviceptr got = 0;
  const CUresult result =
      driver::api().MemAddressReserve(&got, extent.bytes(), 0, is_fixed ? extent.begin : CUdeviceptr{0}, 0);
  if (result != CUDA_SUCCESS) {
    return driver::annotate(driver::to_status(result, "cuMemAddressReserve"),
                            absl::StrCat("Reserving the addresses ", range_text(extent.begin, extent.bytes())));
  }
  if (got == extent.begin || !is_fixed) {
    reserved_.push_back({extent, got});
    return absl::OkStatus();
  }
  log_failure(driver::api().MemAddressFree(got, extent.bytes()), "cuMemAddressFree");
  return is_taken(extent.begin, extent.bytes());
}

absl::Status AddressSpace::map_device(const Extent& extent, const CUmemAllocationProp& memory) {
  const driver::Api& api = driver::api();
  const auto failed = [&](CUresult result, const char* call) {
    return driver::annotate(
        driver::to_status(result, call),
        absl::StrCat("Putting ", counted(extent.bytes(), "byte"), " of device memory at 0x", absl::Hex(extent.begin)));
  };
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult result = api.MemCreate(&handle, extent.bytes(), &memory, 0); result != CUDA_SUCCESS) {
    return failed(result, "cuMemCreate");
  }
  const absl::Cleanup release = [&] { log_failure(api.MemRelease(handle), "cuMemRelease"); };  // a mapping keeps it
  if (const CUresult result = api.MemMap(extent.begin, extent.bytes(), 0, handle, 0); result != CUDA_SUCCESS) {
    return failed(result, "cuMemMap");
  }
  mapped_.push_back(extent);
  CUmemAccessDesc access{};
  access.location = memory.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult result = api.MemSetAccess(extent.begin, extent.bytes(), &access, 1); result != CUDA_SUCCESS) {
    return failed(result, "cuMemSetAccess");
  }
  return absl::OkStatus();
}

absl::Status AddressSpace::map_device() {
  CUdevice device = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetDevice(&device), "cuCtxGetDevice"));
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.location.id = device;
  std::size_t granularity = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().MemGetAllocationGranularity(&granularity, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
      "cuMemGetAllocationGranularity"));
  for (const Extent& extent : device_extents(granularity)) {
    const CUdeviceptr begin = region_of(extent.begin).now(extent.begin);
    CGRT_RETURN_IF_ERROR(map_device({begin, begin + extent.bytes()}, memory));
  }
  return absl::OkStatus();
}

const AddressSpace::Region& AddressSpace::region_of(CUdeviceptr saved_address) const {
  return *std::prev(
      std::upper_bound(reserved_.begin(), reserved_.end(), saved_address,
                       [](CUdeviceptr address, const Region& region) { return address < region.saved.begin; }));
}

bool AddressSpace::is_reserved(const Extent& extent) const {
  return std::any_of(reserved_.begin(), reserved_.end(), [&](const Region& region) {
    return region.begin <= extent.begin && extent.end <= region.begin + region.saved.bytes();
  });
}

// Pinned memory may lie between pages of a device's memory, in a region that is reserved for that: there it takes the
// place of what was reserved.
absl::Status AddressSpace::map_host(const Extent& extent) {
  void* const wanted = reinterpret_cast<void*>(extent.begin);
  const int fixed = is_reserved(extent) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
  void* const got = mmap(wanted, extent.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  if (got != wanted) {
    const int error = got == MAP_FAILED ? errno : EEXIST;
    if (got != MAP_FAILED) munmap(got, extent.bytes());  // a kernel before 4.17 takes the address as a hint
    if (error == EEXIST) return is_taken(extent.begin, extent.bytes());
    return absl::ResourceExhaustedError(absl::StrCat("Host memory of ", counted(extent.bytes(), "byte"), " at 0x",
                                                     absl::Hex(extent.begin), ": ", std::strerror(error), "."));
  }
  host_.push_back(extent);
  const CUresult result =
      driver::api().MemHostRegister(wanted, extent.bytes(), CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    return driver::annotate(
        driver::to_status(result, "cuMemHostRegister"),
        absl::StrCat("Pinning ", counted(extent.bytes(), "byte"), " of host memory at 0x", absl::Hex(extent.begin)));
  }
  registered_.push_back(extent);
  return absl::OkStatus();
}

absl::Status AddressSpace::map_host(const std::set<std::uint32_t>& fixed) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto is_fixed_host = [&](std::uint32_t i) {
    return blocks_[i].kind == ir::MemoryKind::kPinnedHost && fixed.contains(i);
  };
  for (const Extent& extent : extents(page, is_fixed_host)) CGRT_RETURN_IF_ERROR(map_host(extent));
  const auto is_other_host = [&](std::uint32_t i) {
    return blocks_[i].kind != ir::MemoryKind::kDevice && !is_fixed_host(i);
  };
  for (const Extent& extent : extents(1, is_other_host)) {
    CGRT_ASSIGN_OR_RETURN(PinnedBuffer buffer, PinnedBuffer::create(context_, extent.bytes()));
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      const bool is_here = blocks_[i].address >= extent.begin && blocks_[i].address < extent.end;
      if (!is_here || !is_other_host(i)) continue;
      addresses_[i] = reinterpret_cast<CUdeviceptr>(buffer.data()) + (blocks_[i].address - extent.begin);
    }
    elsewhere_.push_back(std::move(buffer));
  }
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    if (is_fixed_host(i)) addresses_[i] = blocks_[i].address;
  }
  return absl::OkStatus();
}

absl::Status AddressSpace::map(const std::set<std::uint32_t>& fixed) {
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context_));
  CGRT_RETURN_IF_ERROR(map_device());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_mapped = blocks_[i].kind == ir::MemoryKind::kDevice && blocks_[i].variable.empty();
    if (is_mapped) addresses_[i] = region_of(blocks_[i].address).now(blocks_[i].address);
  }
  return map_host(fixed);
}

}  // namespace cgrt::internal
