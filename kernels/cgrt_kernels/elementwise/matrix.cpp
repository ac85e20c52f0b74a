#include "cgrt_kernels/elementwise/matrix.h"

#include <algorithm>
#include <cstdint>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMaxInY = 65535;  // blocks of a grid

// Threads side by side along a row, no more than it has packs, and as many rows as fill the block.
LaunchConfig shape(const MatrixDesc& desc, MatrixAccess access) {
  const std::uint64_t pack = access == MatrixAccess::kPack ? 16 / size_of(desc.type) : 1, packs = desc.columns / pack;
  const std::uint32_t across = ceil_divide(packs, ceil_divide(packs, kMatrixBlock));
  const auto down = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMatrixBlock / across, desc.rows));
  const auto in_flight = static_cast<std::uint32_t>(matrix_rows_in_flight(desc.op, desc.type, access));
  const std::uint32_t tiles = ceil_divide(desc.rows, std::uint64_t{down} * in_flight);
  return {.grid = Dim3(ceil_divide(packs, across), static_cast<std::uint32_t>(std::min<std::uint64_t>(tiles, kMaxInY))),
          .block = Dim3(across, down)};
}

}  // namespace

absl::StatusOr<MatrixPlan> plan_matrix(ContextRef context, const MatrixDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_matrix(to_string(desc.op), desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(to_string(desc.op), desc.type));
  const bool is_packed = desc.columns * size_of(desc.type) % 16 == 0;
  const MatrixAccess access = is_packed ? MatrixAccess::kPack : MatrixAccess::kElement;
  const MatrixKernel kernel = matrix_kernel(desc.op, desc.type, access);
  const MatrixKernel any_kernel = matrix_kernel(desc.op, desc.type, MatrixAccess::kElement);
  for (const MatrixKernel& one : {kernel, any_kernel}) CGRT_RETURN_IF_ERROR(preload(one, context));
  return MatrixPlan{desc, kernel, shape(desc, access), any_kernel, shape(desc, MatrixAccess::kElement)};
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
  const bool is_aligned = address_bits(args.out, args.a, reads_packs_of_b ? args.b : nullptr) % 16 == 0;
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel,
                args.out, args.a, args.b, static_cast<std::uint32_t>(desc.rows),
                static_cast<std::uint32_t>(desc.columns));
}

}  // namespace cgrt::kernels
