#include "cgrt_kernels/elementwise/map.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels::internal {

absl::StatusOr<LaunchConfig> map_config(ContextRef context, KernelRef kernel, int pack, std::uint64_t count) {
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": the count is 0."));
  const std::uint64_t blocks = map_blocks(count, static_cast<unsigned>(pack));
  if (blocks > kMaxCount) {
    return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": ", count, " elements are more than ", kMaxCount,
                                                   " blocks of ", kMapBlock * pack, "."));
  }
  CGRT_RETURN_IF_ERROR(preload(kernel, context));
  return LaunchConfig{.grid = static_cast<std::uint32_t>(blocks), .block = kMapBlock};
}

absl::Status check_map_arrays(KernelRef kernel, absl::Span<const MapArray> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& [pointer, element] = arrays[i];
    if (is_aligned(pointer, element, Need::kRequired)) continue;
    const std::string name = i == 0 ? "the output" : absl::StrCat("input ", i);
    return refuse_pointer(kernel.name(), name.c_str(), pointer, element, "");
  }
  return absl::OkStatus();
}

}  // namespace cgrt::kernels::internal
