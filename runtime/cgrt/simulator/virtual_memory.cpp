// Addresses and the memory behind them, apart: reserved ranges, physical memory, mappings; pinned memory of the host's.
// What a device has as an address is one of this process, so that what is taken here is taken there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  // of an H200
constexpr std::size_t kRegion = std::size_t{32} << 20;

bool is_multiple(std::uint64_t value) { return value % kGranularity == 0; }

// Whether the range lies inside of one that was reserved.
bool is_reserved(CUdeviceptr address, std::size_t bytes) {
  const auto after = state->reservations.upper_bound(address);
  if (after == state->reservations.begin()) return false;
  const auto& [start, reserved] = *std::prev(after);
  return address - start <= reserved && bytes <= reserved - (address - start);
}

bool has_mappings(CUdeviceptr address, std::size_t bytes) {
  const auto after = state->mappings.lower_bound(address + bytes);
  if (after == state->mappings.begin()) return false;
  const auto& [start, mapping] = *std::prev(after);
  return start + mapping.bytes > address;
}

bool is_device(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 && location.id < state->options.device_count;
}

bool is_supported(const CUmemAllocationProp* prop) {
  return prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED && is_device(prop->location);
}

void* map_nothing(CUdeviceptr address, std::size_t bytes, int flags) {
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
              -1, 0);
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  if (fd < 0) return;
  close(fd);
  *used_bytes -= bytes;
}

CUresult MemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* prop,
                                     CUmemAllocationGranularity_flags) {
  const Lock lock(state->mutex);
  if (bytes == nullptr || !is_supported(prop)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

// Elsewhere when the address that is asked for is taken, and when it or the size is not of a whole region, as the
// driver (580).
CUresult MemAddressReserve(CUdeviceptr* out, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,
                           unsigned long long flags) {
  const Lock lock(state->mutex);
  if (out == nullptr || bytes == 0 || !is_multiple(bytes) || !is_multiple(alignment) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (wanted != 0 && wanted % kRegion == 0 && bytes >= kRegion) {
    void* const got = map_nothing(wanted, bytes, MAP_FIXED_NOREPLACE);
    if (got == reinterpret_cast<void*>(wanted)) {
      state->reservations.emplace(wanted, bytes);
      *out = wanted;
      return CUDA_SUCCESS;
    }
    if (got != MAP_FAILED) munmap(got, bytes);  // by a kernel that takes the address for a hint
  }
  const std::size_t step = alignment != 0 ? alignment : kGranularity;
  void* const got = map_nothing(0, bytes + step, 0);
  if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<CUdeviceptr>(got);
  const CUdeviceptr aligned = (start + step - 1) / step * step;
  if (aligned != start) munmap(got, aligned - start);
  munmap(reinterpret_cast<void*>(aligned + bytes), start + step - aligned);
  state->reservations.emplace(aligned, bytes);
  *out = aligned;
  return CUDA_SUCCESS;
}

CUresult MemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const Lock lock(state->mutex);
  const auto found = state->reservations.find(address);
  if (found == state->reservations.end() || found->second != bytes || has_mappings(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  munmap(reinterpret_cast<void*>(address), bytes);
  state->reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult MemCreate(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* prop,
                   unsigned long long flags) {
  const Lock lock(state->mutex);
  if (out == nullptr || bytes == 0 || !is_multiple(bytes) || !is_supported(prop) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::size_t& used = state->used_bytes[static_cast<std::size_t>(prop->location.id)];
  if (bytes > state->options.memory_bytes - used) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = std::make_shared<PhysicalMemory>();
  const int fd = memfd_create("simulated memory", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    if (fd >= 0) close(fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* const view = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (view == MAP_FAILED) {
    close(fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::memset(view, 0xA5, bytes);
  munmap(view, bytes);
  memory->fd = fd;
  memory->bytes = bytes;
  memory->device = prop->location.id;
  memory->used_bytes = &used;
  used += bytes;
  *out = ++state->last_physical;
  state->physical.emplace(*out, std::move(memory));
  return CUDA_SUCCESS;
}

CUresult MemRelease(CUmemGenericAllocationHandle handle) {
  const Lock lock(state->mutex);
  return state->physical.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult MemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                unsigned long long flags) {
  const Lock lock(state->mutex);
  const auto memory = state->physical.find(handle);
  if (memory == state->physical.end() || bytes == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_multiple(address) || !is_multiple(bytes) || offset != 0 || bytes != memory->second->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_reserved(address, bytes) || has_mappings(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  void* const view =
      mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->second->fd, 0);
  if (view == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  state->mappings.emplace(address, Mapping{bytes, memory->second});
  return CUDA_SUCCESS;
}

CUresult MemUnmap(CUdeviceptr address, std::size_t bytes) {
  const Lock lock(state->mutex);
  const auto found = state->mappings.find(address);
  if (found == state->mappings.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  run_all();  // what is in flight may use it
  map_nothing(address, bytes, MAP_FIXED);
  state->memory.erase(address);
  state->mappings.erase(found);
  return CUDA_SUCCESS;
}

CUresult MemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count) {
  const Lock lock(state->mutex);
  const auto found = state->mappings.find(address);
  if (found == state->mappings.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  const bool is_for_all = count == 1 && is_device(access->location) &&
                          access->location.id == found->second.memory->device &&
                          access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (!is_for_all) return unsupported("the simulator gives its own device access to mapped memory, and that whole");
  if (mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUcontext context = state->contexts[static_cast<std::size_t>(found->second.memory->device)].get();
  state->memory.insert_or_assign(address, Allocation{bytes, true, context, next_buffer_id(), nullptr, Origin::kMapped});
  return CUDA_SUCCESS;
}

CUresult MemHostRegister(void* pointer, std::size_t bytes, unsigned) {
  const Lock lock(state->mutex);
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (address == 0 || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const auto next = state->memory.upper_bound(address);
  if (find_allocation(address) != nullptr || (next != state->memory.end() && next->first < address + bytes)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  state->memory.emplace(address, Allocation{bytes, false, context, next_buffer_id(), nullptr, Origin::kRegistered});
  return CUDA_SUCCESS;
}

CUresult MemHostUnregister(void* pointer) {
  const Lock lock(state->mutex);
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  const auto found = state->memory.find(reinterpret_cast<CUdeviceptr>(pointer));
  if (found == state->memory.end() || found->second.origin != Origin::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  run_all();  // what is in flight may use it
  state->memory.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
