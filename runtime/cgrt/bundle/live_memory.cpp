#include "cgrt/bundle/live_memory.h"

#include <cstddef>
#include <iterator>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::internal {
namespace {

constexpr std::size_t kMaxUnknown = std::size_t{1} << 22;  // remembered: data that looks like addresses is endless

}  // namespace

const LiveRange* LiveMemory::known(CUdeviceptr address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const LiveRange& range = std::prev(after)->second;
  return address < range.end() ? &range : nullptr;
}

absl::StatusOr<std::optional<LiveMemory::Answer>> LiveMemory::ask(CUdeviceptr address) const {
  unsigned type = 0, managed = 0;
  int device = -1;
  CUdeviceptr mapping_start = 0;
  std::size_t mapping_bytes = 0;
  LiveRange range;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                 CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  void* values[] = {&type, &managed, &device, &range.start, &range.bytes, &mapping_start, &mapping_bytes};
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().PointerGetAttributes(std::size(asked), asked, values, address),
                                         "cuPointerGetAttributes"));
  if (type == 0 || range.bytes == 0) return std::optional<Answer>();
  if (managed != 0) {
    range.kind = ir::MemoryKind::kManaged;
  } else if (type == CU_MEMORYTYPE_HOST) {
    range.kind = ir::MemoryKind::kPinnedHost;
  } else {
    range.device = device;
  }
  Answer answer{range, std::nullopt};
  const bool is_part = mapping_bytes != 0 && mapping_bytes < range.bytes && mapping_start >= range.start &&
                       mapping_start + mapping_bytes <= range.end();
  if (is_part && address >= mapping_start && address - mapping_start < mapping_bytes) {
    answer.mapping = range;
    answer.mapping->start = mapping_start;
    answer.mapping->bytes = mapping_bytes;
  }
  return std::optional<Answer>(answer);
}

absl::StatusOr<const LiveRange*> LiveMemory::find(CUdeviceptr address) {
  if (const LiveRange* const found = known(address)) return found;
  if (unknown_.contains(address)) return nullptr;
  CGRT_ASSIGN_OR_RETURN(const std::optional<Answer> answer, ask(address));
  if (!answer.has_value()) {
    if (unknown_.size() == kMaxUnknown) unknown_.clear();
    unknown_.insert(address);
    return nullptr;
  }
  LiveRange found = answer->mapping.value_or(answer->range);
  if (answer->mapping.has_value()) {
    const auto neighbour = [&](CUdeviceptr at) -> absl::StatusOr<std::optional<LiveRange>> {
      if (at < answer->range.start || at >= answer->range.end()) return std::optional<LiveRange>();
      CGRT_ASSIGN_OR_RETURN(const std::optional<Answer> there, ask(at));
      return there.has_value() ? there->mapping : std::nullopt;
    };
    for (;;) {
      CGRT_ASSIGN_OR_RETURN(const std::optional<LiveRange> next, neighbour(found.end()));
      if (!next.has_value()) break;
      found.bytes += next->bytes;
    }
    for (;;) {
      CGRT_ASSIGN_OR_RETURN(const std::optional<LiveRange> before, neighbour(found.start - 1));
      if (!before.has_value()) break;
      found.start = before->start;
      found.bytes += before->bytes;
    }
  }
  return &ranges_.insert_or_assign(found.start, found).first->second;
}

}  // namespace cgrt::internal
