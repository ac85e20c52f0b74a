#include "cgrt_kernels/rows/rows.h"

#include <memory>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {

using kernels::RowOp;

// rows, columns
absl::StatusOr<Work> make_rows(const Case& test) {
  kernels::RowsDesc desc{.type = test.type};
  bool is_known = false;
  for (const RowOp op : {RowOp::kSoftmax, RowOp::kLogSoftmax, RowOp::kLayerNorm, RowOp::kRmsNorm}) {
    if (test.kernel == to_string(op)) desc.op = op, is_known = true;
  }
  if (!is_known) return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.columns, test.size("columns"));
  CGRT_ASSIGN_OR_RETURN(const kernels::RowsPlan plan, plan_rows(kDevice, desc));
  struct Set {
    DeviceBuffer out, in, weight, bias;
  };
  const std::uint64_t count = desc.rows * desc.columns;
  return Work{
      2 * count * size_of(desc.type), [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, count * size_of(desc.type)));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, desc.type, count, seed));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer weight, make_numbers(stream, desc.type, desc.columns, seed + 1));
        CGRT_ASSIGN_OR_RETURN(DeviceBuffer bias, make_numbers(stream, desc.type, desc.columns, seed + 2));
        const auto set = std::make_shared<Set>(Set{std::move(out), std::move(in), std::move(weight), std::move(bias)});
        const bool in_place = test.is_chain;
        return [=](LaunchTarget target) {
          return launch_rows(target, plan,
                             {.out = in_place ? set->in.data() : set->out.data(),
                              .in = set->in.data(),
                              .weight = set->weight.data(),
                              .bias = set->bias.data()});
        };
      }};
}

}  // namespace cgrt::bench
