#include "cgrt_kernels/upsample/upsample.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

using kernels::UpsampleOp;

// batch, channels, height, width, out_height, out_width; nhwc=1: channels last
absl::StatusOr<Work> make_upsample(const Case& test) {
  kernels::UpsampleDesc desc{.type = test.type};
  bool is_known = false;
  for (const UpsampleOp op : {UpsampleOp::kForward, UpsampleOp::kBackward}) {
    if (test.kernel == to_string(op)) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  if (test.size_or("nhwc", 0) != 0) desc.layout = kernels::ImageLayout::kNhwc;
  CGRT_ASSIGN_OR_RETURN(desc.batch, test.size("batch"));
  CGRT_ASSIGN_OR_RETURN(desc.channels, test.size("channels"));
  CGRT_ASSIGN_OR_RETURN(desc.height, test.size("height"));
  CGRT_ASSIGN_OR_RETURN(desc.width, test.size("width"));
  CGRT_ASSIGN_OR_RETURN(desc.out_height, test.size("out_height"));
  CGRT_ASSIGN_OR_RETURN(desc.out_width, test.size("out_width"));
  CGRT_ASSIGN_OR_RETURN(const kernels::UpsamplePlan plan, plan_upsample(kDevice, desc));
  const std::uint64_t images = desc.batch * desc.channels;
  std::uint64_t in_count = images * desc.height * desc.width, out_count = images * desc.out_height * desc.out_width;
  if (desc.op == UpsampleOp::kBackward) std::swap(in_count, out_count);
  const std::size_t size = size_of(desc.type);
  return Work{(in_count + out_count) * size, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, in_count, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, out_count * size));
                const auto set = std::make_shared<std::pair<DeviceBuffer, DeviceBuffer>>(std::move(in), std::move(out));
                return [=](LaunchTarget target) {
                  return launch_upsample(target, plan, {.out = set->second.data(), .in = set->first.data()});
                };
              }};
}

}  // namespace cgrt::bench
