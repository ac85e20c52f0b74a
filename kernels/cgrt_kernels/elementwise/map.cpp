#include "cgrt_kernels/elementwise/map.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::kernels::internal {

absl::StatusOr<LaunchConfig> map_config(ContextRef context, KernelRef kernel, int pack, std::uint64_t count) {
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": the count is 0."));
  constexpr std::uint64_t kMostBlocks = (std::uint64_t{1} << 31) - 1;
  const std::uint64_t blocks = (count - 1) / static_cast<unsigned>(kMapBlock * pack) + 1;
  if (blocks > kMostBlocks) {
    return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": ", count, " elements are more than ", kMostBlocks,
                                                   " blocks of ", kMapBlock * pack, "."));
  }
  CGRT_RETURN_IF_ERROR(preload(kernel, context));
  return LaunchConfig{.grid = static_cast<std::uint32_t>(blocks), .block = kMapBlock};
}

absl::Status check_map_pointer(KernelRef kernel, int input, const void* pointer, std::size_t element) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address != 0 && address % element == 0) return absl::OkStatus();
  const std::string name = input == 0 ? "the output" : absl::StrCat("input ", input);
  if (address == 0) return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": ", name, " is null."));
  return absl::InvalidArgumentError(
      absl::StrCat(kernel.name(), ": ", name, " (0x", absl::Hex(address), ") is not aligned to ", element, " bytes."));
}

}  // namespace cgrt::kernels::internal
