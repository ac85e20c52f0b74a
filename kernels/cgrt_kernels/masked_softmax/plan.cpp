#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/masked_softmax/masked_softmax.h"
#include "cgrt_kernels/rows/share.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "masked_softmax";

using Shape = RowShape<MaskedSoftmaxRegime>;

std::uint64_t all_rows(const MaskedSoftmaxDesc& desc) { return desc.matrices * desc.rows; }

Shape element_shape(const Machine& machine, const MaskedSoftmaxDesc& desc) {
  Shape shape;
  const auto regime = MaskedSoftmaxRegime::kElements8;
  if (share_among_blocks(machine, all_rows(desc), desc.columns, regime, 8, kMostThreads, shape)) return shape;
  return {MaskedSoftmaxRegime::kAny, {.grid = static_cast<std::uint32_t>(all_rows(desc)), .block = kMostThreads}};
}

// What is shortest on an H200, where it was measured.
Shape packed_shape(const Machine& machine, const MaskedSoftmaxDesc& desc) {
  Shape shape;
  if (desc.columns <= 32 * kWarp) {
    return share_among_warps(all_rows(desc),
                             desc.columns <= 8 * kWarp ? MaskedSoftmaxRegime::kWarp8 : MaskedSoftmaxRegime::kWarp32);
  }
  const auto share = [&](MaskedSoftmaxRegime regime, std::uint32_t per_thread) {
    return share_among_blocks(machine, all_rows(desc), desc.columns, regime, per_thread, kMostThreads, shape);
  };
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (all_rows(desc) <= machine.sms && share(MaskedSoftmaxRegime::kBlock8, 8)) return shape;
  return share(MaskedSoftmaxRegime::kBlock16, 16) ? shape : element_shape(machine, desc);
}

using Launch = RowLaunch<MaskedSoftmaxKernel>;
using ShapeOf = Shape (*)(const Machine& machine, const MaskedSoftmaxDesc& desc);

absl::StatusOr<Launch> plan_launch(const Machine& machine, const MaskedSoftmaxDesc& desc, ShapeOf shape_of) {
  return choose_with_room(machine, [&](const Machine& some) -> absl::StatusOr<Launch> {
    const Shape shape = shape_of(some, desc);
    return Launch{masked_softmax_kernel(desc.type, shape.regime), shape.config};
  });
}

}  // namespace

absl::StatusOr<MaskedSoftmaxPlan> plan_masked_softmax(ContextRef context, const MaskedSoftmaxDesc& desc) {
  const auto is_fit = [](std::uint64_t count) { return count > 0 && count <= kMostCount; };
  if (!is_fit(desc.matrices) || !is_fit(desc.rows) || !is_fit(desc.columns) || !is_fit(all_rows(desc))) {
    return refuse(kName,
                  absl::StrCat(desc.matrices, " matrices of ", desc.rows, " rows of ", desc.columns,
                               " columns; columns, and rows of all matrices, must be from 1 to ", kMostCount, "."));
  }
  if (desc.mask_matrices == 0 || desc.matrices % desc.mask_matrices != 0) {
    return refuse(kName, absl::StrCat("mask_matrices (", desc.mask_matrices, ") does not divide the ", desc.matrices,
                                      " matrices."));
  }
  if (desc.mask_rows != 1 && desc.mask_rows != desc.rows) {
    return refuse(
        kName, absl::StrCat("mask_rows (", desc.mask_rows, ") is neither 1 nor the ", desc.rows, " rows of a matrix."));
  }
  CGRT_RETURN_IF_ERROR(check_float(kName, desc.type));
  CGRT_ASSIGN_OR_RETURN(const Machine machine,
                        machine_of(context, masked_softmax_kernel(desc.type, MaskedSoftmaxRegime::kBlock16)));
  CGRT_ASSIGN_OR_RETURN(const Launch any, plan_launch(machine, desc, element_shape));
  Launch aligned = any;
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(aligned, plan_launch(machine, desc, packed_shape));
  }
  return MaskedSoftmaxPlan{desc, aligned.kernel, aligned.config, any.kernel, any.config};
}

absl::Status launch_masked_softmax(LaunchTarget target, const MaskedSoftmaxPlan& plan, const MaskedSoftmaxArgs& args) {
  const MaskedSoftmaxDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kName, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "in", args.in, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "mask", args.mask, desc.type, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_array(kName, "lengths", args.lengths, DType::kInt32, Need::kOptional));
  const bool is_aligned = address_bits(args.out, args.in, args.mask) % 16 == 0;
  const auto narrow = [](std::uint64_t count) { return static_cast<std::uint32_t>(count); };
  const MaskedSoftmaxTask task{args.out,
                               args.in,
                               args.mask,
                               args.lengths,
                               desc.scale,
                               narrow(all_rows(desc)),
                               narrow(desc.rows),
                               narrow(desc.columns),
                               narrow(desc.matrices / desc.mask_matrices),
                               narrow(desc.mask_rows),
                               desc.causal == CausalMask::kLowerRight ? 1u : 0u};
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel, task);
}

}  // namespace cgrt::kernels
