#include "cgrt_kernels/elementwise/matrix.h"

#include <algorithm>
#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/elementwise/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kMaxInY = 65535;  // blocks of a grid

// Threads side by side along a row, no more than it has packs, and as many rows as fill the block.
MatrixPlan::Launch launch_of(const MatrixDesc& desc, Alignment alignment) {
  const std::uint64_t pack = alignment == Alignment::kAligned ? 16 / size_of(desc.type) : 1,
                      packs = desc.columns / pack;
  const std::uint32_t across = ceil_divide(packs, ceil_divide(packs, kMaxMatrixThreads));
  const auto down = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxMatrixThreads / across, desc.rows));
  const std::uint64_t tile = std::uint64_t{down} * matrix_rows_in_flight(desc.op, size_of(desc.type), alignment);
  const std::uint32_t tiles = std::min(ceil_divide(desc.rows, tile), kMaxInY);
  return {matrix_kernel(desc.op, desc.type, alignment),
          {.grid = Dim3(ceil_divide(packs, across), tiles), .block = Dim3(across, down)}};
}

}  // namespace

absl::StatusOr<MatrixPlan> plan_matrix(ContextRef context, const MatrixDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("elementwise on a matrix", "op", desc.op, MatrixOp::kGeluTanhAndMul));
  CGRT_RETURN_IF_ERROR(check_matrix(to_string(desc.op), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  const bool has_packs = desc.columns * size_of(desc.type) % 16 == 0;
  const MatrixPlan plan{desc, launch_of(desc, has_packs ? Alignment::kAligned : Alignment::kUnaligned),
                        launch_of(desc, Alignment::kUnaligned)};
  for (const auto* one : {&plan.aligned, &plan.unaligned}) CGRT_RETURN_IF_ERROR(preload(one->kernel, context));
  return plan;
}

absl::Status launch_matrix(LaunchTarget target, const MatrixPlan& plan, const MatrixArgs& args) {
  const MatrixDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "a", args.a, desc.type));
  if (!is_gated(desc.op)) CGRT_RETURN_IF_ERROR(check_array(name, "b", args.b, desc.type));
  if (is_gated(desc.op) && args.out == args.a) {
    return refuse(name, "out is a, whose rows are twice as long; it cannot work in place.");
  }
  const bool reads_packs_of_b = !is_gated(desc.op) && !is_per_row(desc.op);
  const Alignment alignment = alignment_of(args.out, args.a, reads_packs_of_b ? args.b : nullptr);
  const auto& [kernel, config] = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  return launch(target, config, kernel,
                MatrixParams{args.out, args.a, args.b, static_cast<std::uint32_t>(desc.rows),
                             static_cast<std::uint32_t>(desc.columns)});
}

}  // namespace cgrt::kernels
