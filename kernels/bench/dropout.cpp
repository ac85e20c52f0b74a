#include "cgrt_kernels/dropout/dropout.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::DropoutDesc;
using kernels::DropoutOp;
using kernels::DropoutPlan;
using kernels::RandomState;

struct Set {
  Array out, in;
  DeviceBuffer mask, state;
};

}  // namespace

// count; of probability 0.1
absl::StatusOr<Work> make_dropout(const Case& test) {
  DropoutDesc desc{.type = test.type, .probability = 0.1f};
  bool is_known = false;
  for (const DropoutOp op : {DropoutOp::kForward, DropoutOp::kBackward}) {
    if (test.kernel == to_string(op)) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.count, test.size("count"));
  CGRT_ASSIGN_OR_RETURN(const DropoutPlan plan, plan_dropout(kDevice, desc));
  const std::size_t mask_bytes = (desc.count + 7) / 8;
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(Array out, make_output(test, desc.type, desc.count));
    CGRT_ASSIGN_OR_RETURN(Array in, make_array(test, stream, desc.type, desc.count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer mask, DeviceBuffer::create(kDevice, mask_bytes));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer state, DeviceBuffer::create(kDevice, sizeof(RandomState)));
    CGRT_RETURN_IF_ERROR(fill8(stream, mask.data(), 0xB7, mask_bytes));
    const RandomState seeded{.seed = seed};
    CGRT_RETURN_IF_ERROR(copy(stream, state.data(), &seeded, sizeof(seeded)));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(mask), std::move(state)});
    return [=](LaunchTarget target) {
      return launch_dropout(target, plan,
                            {.out = set->out.data(),
                             .in = set->in.data(),
                             .mask = set->mask.as<std::uint8_t>(),
                             .state = set->state.as<RandomState>()});
    };
  };
  return Work{2 * desc.count * size_of(desc.type) + mask_bytes, make};
}

}  // namespace cgrt::bench
