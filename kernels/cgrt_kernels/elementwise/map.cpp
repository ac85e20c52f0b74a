#include "cgrt_kernels/elementwise/map.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels::internal {

absl::StatusOr<LaunchConfig> map_config(ContextRef context, KernelRef kernel, MapShape shape, std::uint64_t count) {
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat(kernel.name(), ": the count is 0."));
  CGRT_RETURN_IF_ERROR(preload(kernel, context));
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const auto blocks = [&](int per_thread) { return (count - 1) / static_cast<unsigned>(kMapBlock * per_thread) + 1; };
  const std::uint64_t large = blocks(shape.held);
  const bool is_straight = large < kMapFewestBlocks * std::uint64_t{machine.sms};
  const std::uint64_t grid = is_straight ? blocks(shape.pack) : std::min(large, kMostCount);
  return LaunchConfig{.grid = static_cast<std::uint32_t>(grid), .block = kMapBlock};
}

absl::Status check_map_pointer(KernelRef kernel, int input, const void* pointer, std::size_t element) {
  if (is_aligned(pointer, element, Need::kRequired)) return absl::OkStatus();
  const std::string name = input == 0 ? "the output" : absl::StrCat("input ", input);
  return refuse_pointer(kernel.name(), name.c_str(), pointer, element, "");
}

}  // namespace cgrt::kernels::internal
