#include "cgrt/graph/addresses.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::internal {
namespace {

// Nothing is mapped below or above: the word is a number. CPUs and GPUs translate 57 bits at most.
bool may_be_address(CUdeviceptr word) { return word >= CUdeviceptr{1} << 16 && word < CUdeviceptr{1} << 57; }

CUdeviceptr word_at(const void* value) {
  CUdeviceptr word = 0;
  std::memcpy(&word, value, sizeof(word));
  return word;
}

}  // namespace

std::optional<ir::Pointer> Addresses::known(CUdeviceptr address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return std::nullopt;
  const auto& [start, range] = *std::prev(after);
  if (address - start >= range.bytes) return std::nullopt;
  return ir::Pointer{range.allocation, address - start};
}

ir::Pointer Addresses::add(CUdeviceptr address, AllocationId id, std::size_t bytes, const ir::Allocation& allocation) {
  const auto number = static_cast<std::uint32_t>(allocations_.size());
  allocations_.push_back(allocation);
  ids_.push_back(id);
  ranges_.insert_or_assign(id.start, Range{bytes, number});
  return {number, address - id.start};
}

absl::StatusOr<std::optional<ir::Pointer>> Addresses::find(CUdeviceptr address) {
  if (std::optional<ir::Pointer> found = known(address)) return found;
  if (unknown_.contains(address)) return std::optional<ir::Pointer>();
  unsigned memory_type = 0, managed = 0;
  int device = -1;
  AllocationId id;
  std::size_t bytes = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* values[] = {&memory_type, &managed, &device, &id.start, &bytes, &id.buffer_id};
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().PointerGetAttributes(std::size(asked), asked, values, address),
                                         "cuPointerGetAttributes"));
  if (memory_type == 0 || id.start == 0) {
    unknown_.insert(address);
    return std::optional<ir::Pointer>();
  }
  ir::Allocation allocation;
  allocation.bytes = bytes;
  if (managed != 0) {
    allocation.kind = ir::MemoryKind::kManaged;
  } else if (memory_type == CU_MEMORYTYPE_HOST) {
    allocation.kind = ir::MemoryKind::kPinnedHost;
  } else {
    allocation.kind = ir::MemoryKind::kDevice;
    allocation.device = std::max(device, -1);  // CU_DEVICE_INVALID is -2
  }
  return std::optional<ir::Pointer>(add(address, id, bytes, allocation));
}

absl::StatusOr<ir::Pointer> Addresses::operand(CUdeviceptr address) {
  CGRT_ASSIGN_OR_RETURN(const std::optional<ir::Pointer> found, find(address));
  if (found.has_value()) return *found;
  return add(address, {address, 0}, 1, {ir::MemoryKind::kPageableHost, -1, 0});
}

absl::StatusOr<ir::Pointer> Addresses::device_operand(CUdeviceptr address) {
  CGRT_ASSIGN_OR_RETURN(const std::optional<ir::Pointer> found, find(address));
  if (found.has_value()) return *found;
  return add(address, {address, 0}, 1, {ir::MemoryKind::kUnknown, -1, 0});
}

ir::Pointer Addresses::graph_memory(CUdeviceptr start, std::size_t bytes, std::int32_t device) {
  if (const std::optional<ir::Pointer> found = known(start); found.has_value()) return *found;
  return add(start, {start, 0}, bytes, {ir::MemoryKind::kDevice, device, bytes});
}

absl::Status Addresses::add_argument(const void* value, const ir::Parameter& parameter, ir::KernelParams& kernel) {
  if (value == nullptr) return absl::OkStatus();  // not told
  const auto& [offset, size] = parameter;
  std::uint8_t* bytes = kernel.arguments.data() + offset;
  std::memcpy(bytes, value, size);
  constexpr std::uint32_t kWord = sizeof(CUdeviceptr);
  const std::uint32_t first = size == kWord ? 0 : (kWord - offset % kWord) % kWord;
  for (std::uint32_t at = first; at + kWord <= size; at += kWord) {
    const CUdeviceptr word = word_at(bytes + at);
    if (!may_be_address(word)) continue;
    CGRT_ASSIGN_OR_RETURN(const std::optional<ir::Pointer> found, find(word));
    if (!found.has_value()) continue;
    kernel.pointers.push_back({offset + at, *found});
    std::fill_n(bytes + at, kWord, std::uint8_t{0});
  }
  return absl::OkStatus();
}

}  // namespace cgrt::internal
