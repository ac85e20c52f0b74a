#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/skinny_gemm/kernels.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "skinny_gemm";

constexpr std::uint32_t kMinStages = 2;  // of a block that shares tiles

absl::Status check_size(const char* size, std::uint64_t value, std::uint64_t max) {
  if (value >= 1 && value <= max) return absl::OkStatus();
  return refuse(kName, absl::StrCat(size, " is ", value, "; it can be 1 to ", max, "."));
}

absl::Status check_stride(const char* stride, std::uint64_t value, const char* size, std::uint64_t min) {
  if (value >= min && value <= kMaxCount) return absl::OkStatus();
  return refuse(kName,
                absl::StrCat(stride, " is ", value, "; it can be ", min, ", which is ", size, ", to ", kMaxCount, "."));
}

std::uint64_t weight_rows_of(const SkinnyGemmDesc& desc) {
  return desc.activation == SkinnyActivation::kSiluGate ? 2 * desc.n : desc.n;
}

absl::Status check(const SkinnyGemmDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum(kName, "weights", desc.weights, SkinnyWeights::kInt4));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "activation", desc.activation, SkinnyActivation::kSiluGate));
  if (desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return refuse_type(kName, desc.type, "float16 and bfloat16");
  }
  if (desc.rows > kSkinnyMaxRows) {
    return refuse(kName, absl::StrCat("rows is ", desc.rows, "; it can be 1 to ", kSkinnyMaxRows,
                                      ". For more rows use cublaslt/matmul.h."));
  }
  CGRT_RETURN_IF_ERROR(check_size("rows", desc.rows, kSkinnyMaxRows));
  CGRT_RETURN_IF_ERROR(
      check_size("n", desc.n, desc.activation == SkinnyActivation::kSiluGate ? kMaxCount / 2 : kMaxCount));
  CGRT_RETURN_IF_ERROR(check_size("k", desc.k, kMaxCount));
  if (desc.k % 8 != 0) {
    return refuse(kName, absl::StrCat("k is ", desc.k, ", not a multiple of 8. Pad the rows of x and W with zeros."));
  }
  CGRT_RETURN_IF_ERROR(check_stride("x_stride", desc.x_stride, "k", desc.k));
  CGRT_RETURN_IF_ERROR(check_stride("y_stride", desc.y_stride, "n", desc.n));
  if (desc.x_stride % 8 != 0) {
    return refuse(kName, absl::StrCat("x_stride is ", desc.x_stride, ", not a multiple of 8: rows of x must begin at ",
                                      "multiples of 16 bytes."));
  }
  if (desc.weights == SkinnyWeights::kFloat) return absl::OkStatus();
  if (desc.group == 0 || desc.group % 32 != 0 || desc.k % desc.group != 0) {
    return refuse(kName, absl::StrCat("group is ", desc.group, " and k is ", desc.k,
                                      "; group can be a multiple of 32 that divides k."));
  }
  return absl::OkStatus();
}

SkinnyScales scales_of(const SkinnyGemmDesc& desc) {
  if (desc.weights == SkinnyWeights::kFloat) return SkinnyScales::kNone;
  const std::uint32_t packs_of_lanes = 4 * 128 / bits_of(desc.weights);
  return desc.group % packs_of_lanes == 0 ? SkinnyScales::kToSums : SkinnyScales::kToWeights;
}

// Whether at most a sixteenth of each of so many waves idles.
bool fill_waves(std::uint64_t wave, std::uint64_t tiles, std::uint64_t waves) {
  return tiles % waves == 0 && tiles <= waves * wave && tiles * 16 >= waves * wave * 15;
}

// Whole tiles where these fill waves, else equal parts of all stages.
std::uint32_t grid_of(std::uint64_t wave, std::uint64_t tiles, std::uint64_t stages) {
  const std::uint64_t waves = ceil_divide<std::uint64_t>(tiles, wave);
  if (fill_waves(wave, tiles, waves)) return static_cast<std::uint32_t>(tiles / waves);
  return static_cast<std::uint32_t>(std::min(std::max(tiles * stages / kMinStages, tiles), wave));
}

// Shared memory of a block that keeps few rows of x, of those that are planned for; 0 where none does.
std::uint64_t kept_bytes(const SkinnyGemmDesc& desc) {
  if (scales_of(desc) != SkinnyScales::kToSums) return 0;
  const std::uint32_t bits = bits_of(desc.weights);
  return skinny_kept_bytes(bits, std::min<std::uint64_t>(desc.rows, skinny_small_tile_rows(bits)), desc.k);
}
// Of more rows, no multiprocessor may lose a block for it.
bool has_room_for_x(const Machine& machine, const SkinnyGemmDesc& desc, std::uint32_t columns) {
  constexpr std::uint32_t kReserved = 1024;  // by CUDA, of each block
  const std::uint32_t blocks = columns == 1 ? 1 : skinny_blocks(bits_of(desc.weights), columns);
  return kept_bytes(desc) + kReserved <= machine.shared_per_sm / blocks;
}

// Whether tiles of 32 rows of W, one for each multiprocessor, are the faster ones: no block waits for another, but each
// reads all of x.
bool has_tiles_of_32(const Machine& machine, const SkinnyGemmDesc& desc) {
  constexpr std::uint64_t kMaxK = 8192;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(weight_rows_of(desc), 32);
  return desc.weights == SkinnyWeights::kFloat && desc.k <= kMaxK && fill_waves(machine.sms, tiles, 1);
}

SkinnyShape shape_of(const Machine& machine, const SkinnyGemmDesc& desc) {
  const std::uint64_t columns = ceil_divide(desc.rows, 8);
  if (columns > 2) return {columns > 4 ? 8u : 4u, 8};
  if (columns == 2) return {2, has_tiles_of_32(machine, desc) ? 2u : 4u};
  const bool is_small = desc.rows <= skinny_small_tile_rows(bits_of(desc.weights)) &&
                        scales_of(desc) != SkinnyScales::kToWeights && has_room_for_x(machine, desc, 1);
  return {1, is_small ? 1u : 4u};
}

Kernel<SkinnyGemmParams> kernel_of(const SkinnyGemmDesc& desc, SkinnyShape shape) {
  switch (desc.weights) {
    case SkinnyWeights::kInt8: return skinny_gemm_int8_kernel(desc.type, scales_of(desc), shape);
    case SkinnyWeights::kInt4: return skinny_gemm_int4_kernel(desc.type, scales_of(desc), shape);
    default: return skinny_gemm_float_kernel(desc.type, shape);
  }
}

bool has_shared_tiles(const LaunchConfig& config, std::uint64_t tiles, std::uint64_t stages) {
  const std::uint64_t share = tiles * stages / config.grid.x, longer = tiles * stages % config.grid.x;
  for (std::uint64_t block = 1; block < config.grid.x; ++block) {
    if ((share * block + std::min(block, longer)) % stages != 0) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<SkinnyGemmPlan> plan_skinny_gemm(ContextRef context, const SkinnyGemmDesc& desc) {
  SkinnyGemmPlan plan{desc, {}, {}};
  if (desc.x_stride == 0) plan.desc.x_stride = desc.k;
  if (desc.y_stride == 0) plan.desc.y_stride = desc.n;
  CGRT_RETURN_IF_ERROR(check(plan.desc));
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const SkinnyShape shape = shape_of(machine, desc);
  const std::uint32_t bits = bits_of(desc.weights);
  plan.kernel = kernel_of(desc, shape);
  plan.config.block = kSkinnyThreads;
  plan.config.shared_bytes = skinny_shared_bytes(bits, shape);
  if ((shape.columns > 1 || skinny_keeps_x(bits, shape)) && has_room_for_x(machine, desc, shape.columns)) {
    plan.config.shared_bytes = std::max(plan.config.shared_bytes, static_cast<std::uint32_t>(kept_bytes(desc)));
  }
  if (plan.config.shared_bytes > machine.shared_per_block) {
    return refuse(kName, absl::StrCat(desc.rows, " rows of x need ", plan.config.shared_bytes,
                                      " bytes of shared memory, more than the ", machine.shared_per_block,
                                      " of a block. Plan fewer rows."));
  }
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(plan.kernel, machine, plan.config.shared_bytes));
  CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm,
                        occupancy(plan.kernel, context, plan.config.block, plan.config.shared_bytes));
  // A launch may have few of many rows: there are as many blocks as few rows want.
  const std::uint32_t row_warps = shape.columns > 1 ? 1 : shape.row_warps;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(weight_rows_of(desc), 16 * row_warps);
  const std::uint64_t stages = ceil_divide<std::uint64_t>(desc.k, skinny_stage_values(bits, row_warps));
  const std::uint64_t wave = machine.sms * static_cast<std::uint64_t>(std::max(of_sm.blocks_per_sm, 1));
  plan.config.grid = grid_of(std::min<std::uint64_t>(wave, WorkspaceHeader::kCounters), tiles, stages);
  if (shape.columns > 1 || has_shared_tiles(plan.config, tiles, stages)) {
    plan.workspace_bytes = workspace_with(2 * plan.config.grid.x * skinny_part_bytes(shape));
  }
  return plan;
}

absl::Status launch_skinny_gemm(LaunchTarget target, const SkinnyGemmPlan& plan, const SkinnyGemmArgs& args) {
  const SkinnyGemmDesc& desc = plan.desc;
  const bool has_scales = desc.weights != SkinnyWeights::kFloat;
  CGRT_RETURN_IF_ERROR(check_array(kName, "y", args.y, desc.type));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "x", args.x, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "weights", args.weights, 16));
  if (has_scales) CGRT_RETURN_IF_ERROR(check_array(kName, "scales", args.scales, desc.type));
  if (desc.has_bias) CGRT_RETURN_IF_ERROR(check_array(kName, "bias", args.bias, desc.type));
  if (desc.has_residual) CGRT_RETURN_IF_ERROR(check_array(kName, "residual", args.residual, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "row_count", args.row_count, DType::kInt32, Need::kOptional));
  CGRT_RETURN_IF_ERROR(check_workspace(kName, args.workspace, plan.workspace_bytes));

  SkinnyGemmParams params{};
  params.args = args;
  if (!desc.has_bias) params.args.bias = nullptr;
  if (!desc.has_residual) params.args.residual = nullptr;
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  const std::uint32_t bits = bits_of(desc.weights);
  const bool has_gate = desc.activation == SkinnyActivation::kSiluGate;
  params.x_stride = desc.x_stride, params.y_stride = desc.y_stride;
  params.weight_row_bytes = desc.k * bits / 8;
  params.rows = narrow(desc.rows), params.n = narrow(desc.n), params.k = narrow(desc.k);
  params.weight_rows = narrow(weight_rows_of(desc));
  params.warp_columns = has_gate ? 8 : 16;
  params.distance = has_gate ? params.n : 8;
  params.weight_distance_bytes = params.distance * params.weight_row_bytes;
  if (has_scales) {
    params.group = Divisor(narrow(desc.group)), params.groups = narrow(desc.k / desc.group);
    params.scale_row_bytes = params.groups * size_of(desc.type);
    params.scale_distance_bytes = params.distance * params.scale_row_bytes;
  }
  if (plan.workspace_bytes > 0) {
    params.counters = header_of(args.workspace)->counters;
    params.parts = scratch_of(args.workspace);
  }
  params.activation = desc.activation;
  params.weights_are_constant = desc.weights_are_constant;
  params.has_room_for_x = kept_bytes(desc) <= plan.config.shared_bytes;
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
