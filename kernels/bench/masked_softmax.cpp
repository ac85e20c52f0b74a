#include "cgrt_kernels/masked_softmax/masked_softmax.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

// matrices, rows, columns; masks: that many matrices of an additive mask (0: none), causal=1
absl::StatusOr<Work> make_masked_softmax(const Case& test) {
  if (test.kernel != "masked_softmax") return absl::NotFoundError("");
  kernels::MaskedSoftmaxDesc desc{.type = test.type, .scale = 0.125f};
  CGRT_ASSIGN_OR_RETURN(desc.matrices, test.size("matrices"));
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  const std::uint64_t masks = test.size_or("masks", 0);
  if (masks != 0) desc.mask_matrices = masks;
  desc.mask_rows = desc.rows;
  if (test.size_or("causal", 0) != 0) desc.causal = kernels::CausalMask::kLowerRight;
  CGRT_ASSIGN_OR_RETURN(const kernels::MaskedSoftmaxPlan plan, plan_masked_softmax(kDevice, desc));
  struct Set {
    DeviceBuffer out, in, mask;
  };
  const std::uint64_t matrix = desc.rows * desc.columns, count = desc.matrices * matrix;
  const std::size_t size = size_of(desc.type);
  return Work{2 * count * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, count * size));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer mask,
                                      make_numbers(stream, desc.type, desc.mask_matrices * matrix, seed + 1));
                const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(mask)});
                const bool in_place = test.is_chain;
                return [=](LaunchTarget target) {
                  return launch_masked_softmax(target, plan,
                                               {.out = in_place ? set->in.data() : set->out.data(),
                                                .in = set->in.data(),
                                                .mask = masks != 0 ? set->mask.data() : nullptr});
                };
              }};
}

}  // namespace cgrt::bench
