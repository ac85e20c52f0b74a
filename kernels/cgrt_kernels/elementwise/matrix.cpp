#include "cgrt_kernels/elementwise/matrix.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t kMostInY = 65535;  // blocks of a grid

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

// Threads side by side along a row, no more than it has packs, and as many rows as fill the block.
LaunchConfig shape(const MatrixDesc& desc, MatrixAccess access) {
  const std::uint64_t pack = access == MatrixAccess::kPack ? 16 / size_of(desc.type) : 1, packs = desc.columns / pack;
  const std::uint32_t across = ceil_divide(packs, ceil_divide(packs, kMatrixBlock));
  const auto down = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMatrixBlock / across, desc.rows));
  const auto in_flight = static_cast<std::uint32_t>(matrix_rows_in_flight(desc.op, desc.type, access));
  const std::uint32_t tiles = ceil_divide(desc.rows, std::uint64_t{down} * in_flight);
  return {
      .grid = Dim3(ceil_divide(packs, across), static_cast<std::uint32_t>(std::min<std::uint64_t>(tiles, kMostInY))),
      .block = Dim3(across, down)};
}

absl::Status check_pointer(const MatrixDesc& desc, const char* name, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address != 0 && address % size_of(desc.type) == 0) return absl::OkStatus();
  if (address == 0) return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", name, " is null."));
  return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", name, " (0x", absl::Hex(address),
                                                 ") is not aligned to ", size_of(desc.type), " bytes, the size of ",
                                                 to_string(desc.type), "."));
}

}  // namespace

absl::StatusOr<MatrixPlan> plan_matrix(ContextRef context, const MatrixDesc& desc) {
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMost || desc.columns > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", desc.rows, " rows of ", desc.columns,
                                                   " columns; each must be from 1 to ", kMost, "."));
  }
  if (desc.type != DType::kFloat32 && desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": there is no kernel for ",
                                                   to_string(desc.type), ", only for float32, float16 and bfloat16."));
  }
  const bool is_packed = desc.columns * size_of(desc.type) % 16 == 0;
  const MatrixAccess access = is_packed ? MatrixAccess::kPack : MatrixAccess::kElement;
  const MatrixKernel kernel = matrix_kernel(desc.op, desc.type, access);
  const MatrixKernel any_kernel = matrix_kernel(desc.op, desc.type, MatrixAccess::kElement);
  for (const MatrixKernel& one : {kernel, any_kernel}) CGRT_RETURN_IF_ERROR(preload(one, context));
  return MatrixPlan{desc, kernel, shape(desc, access), any_kernel, shape(desc, MatrixAccess::kElement)};
}

absl::Status launch_matrix(LaunchTarget target, const MatrixPlan& plan, const MatrixArgs& args) {
  const MatrixDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "out", args.out));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "a", args.a));
  if (!is_gated(desc.op)) CGRT_RETURN_IF_ERROR(check_pointer(desc, "b", args.b));
  if (is_gated(desc.op) && args.out == args.a) {
    return absl::InvalidArgumentError(
        absl::StrCat(to_string(desc.op), ": out is a, whose rows are twice as long; it cannot work in place."));
  }
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const bool reads_packs_of_b = !is_gated(desc.op) && !is_per_row(desc.op);
  const bool is_aligned = (bits(args.out) | bits(args.a) | (reads_packs_of_b ? bits(args.b) : 0)) % 16 == 0;
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel,
                args.out, args.a, args.b, static_cast<std::uint32_t>(desc.rows),
                static_cast<std::uint32_t>(desc.columns));
}

}  // namespace cgrt::kernels
