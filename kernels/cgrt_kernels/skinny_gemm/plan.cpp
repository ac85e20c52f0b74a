#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/tensor_map.h"
#include "cgrt_kernels/skinny_gemm/kernels.h"
#include "cgrt_kernels/skinny_gemm/skinny_gemm.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "skinny_gemm";

#ifdef CGRT_HOPPER
constexpr bool kHasWide = true;
Kernel<SkinnyGemmParams> wide_kernel(DType type, std::uint32_t bits, SkinnyScales scales) {
  return skinny_gemm_wide_kernel(type, bits, scales);
}
#else
constexpr bool kHasWide = false;
Kernel<SkinnyGemmParams> wide_kernel(DType, std::uint32_t, SkinnyScales) { return {}; }
#endif

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
    const bool is_plain = desc.weights == SkinnyWeights::kFloat && desc.activation != SkinnyActivation::kGelu;
    return refuse(kName, absl::StrCat("rows is ", desc.rows, "; it can be 1 to ", kSkinnyMaxRows,
                                      is_plain ? ". For more rows use cublaslt/matmul.h."
                                               : ". Take several launches for more rows."));
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

// Whether at most a sixteenth of so many waves idles.
bool fill_waves(std::uint64_t wave, std::uint64_t tiles, std::uint64_t waves) {
  return tiles <= waves * wave && tiles * 16 >= waves * wave * 15;
}

struct Division {
  std::uint32_t blocks;
  bool shares_tiles;
};
bool has_shared_tiles(std::uint64_t blocks, std::uint64_t tiles, std::uint64_t stages) {
  const std::uint64_t share = tiles * stages / blocks, longer = tiles * stages % blocks;
  for (std::uint64_t block = 1; block < blocks; ++block) {
    if ((share * block + std::min(block, longer)) % stages != 0) return true;
  }
  return false;
}

// Whole tiles where these fill waves, else equal parts of all stages. Whole tiles of few rows of x may let blocks idle
// for as long as it takes to join parts. Kernels of more columns have tiles of several sizes: these are shared but
// where their numbers are equal.
Division division_of(const SkinnyGemmPlan& plan, SkinnyShape shape, std::uint64_t wave, std::uint64_t tiles,
                     std::uint64_t stages) {
  constexpr std::uint64_t kJoined = 4500;  // as many int4 of 16 rows of W take as long as to join parts (H200)
  constexpr std::uint64_t kMinStages = 2;  // of a block that shares tiles
  const std::uint64_t waves = ceil_divide<std::uint64_t>(tiles, wave);
  const bool is_few = shape.columns == 1 && plan.desc.weights != SkinnyWeights::kFloat;
  const bool idles_shortly = is_few && (waves * wave - tiles) * plan.desc.k * shape.row_warps <= kJoined * wave;
  const bool may_be_whole = shape.columns == 1 || tiles % waves == 0;
  if (may_be_whole && (idles_shortly || fill_waves(wave, tiles, waves))) {
    // Equal numbers of tiles, but where that leaves out more than a third of the blocks: then some have one tile more
    // than others (int4, 5,120 x 5,120: 9.4 us, where equal numbers take 10.4; H200). In the kernel for more rows
    // always.
    const std::uint64_t equal = ceil_divide(tiles, waves);
    const bool takes_all = plan.is_wide || equal * 3 < wave * 2;
    return {static_cast<std::uint32_t>(takes_all ? std::min(tiles, wave) : equal), false};
  }
  const std::uint64_t blocks = std::min(std::max(tiles * stages / kMinStages, tiles), wave);
  return {static_cast<std::uint32_t>(blocks), has_shared_tiles(blocks, tiles, stages)};
}

// Shared memory of a block that keeps so many rows of x; 0 beside floats, where none does.
std::uint64_t kept_bytes(const SkinnyGemmPlan& plan, std::uint64_t rows) {
  if (plan.desc.weights == SkinnyWeights::kFloat) return 0;
  return skinny_kept_bytes(bits_of(plan.desc.weights), plan.is_wide ? kSkinnyWideGroups : 1, rows, plan.desc.k);
}
// How many rows, of those that are planned for, go in small tiles where a block has that much shared memory.
std::uint32_t few_rows(const SkinnyGemmPlan& plan, std::uint64_t shared_bytes) {
  if (scales_of(plan.desc) == SkinnyScales::kToWeights) return 0;
  auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.desc.rows, kSkinnyFewRows));
  while (rows > 0 && kept_bytes(plan, rows) > shared_bytes) --rows;
  return rows;
}
// Shared memory of a block for that. The L1 cache has the rest of a multiprocessor's, and loads of W are slow where
// that is little: two blocks take at most 5/6, one 5/8. If x needs more, tiles of 64 rows of W are faster (int4, H200).
std::uint32_t room_for_x(const Machine& machine) { return machine.shared_per_sm / 8 * 5; }
bool fit_two(const Machine& machine, std::uint32_t shared_bytes) {
  return shared_bytes <= machine.shared_per_sm / 12 * 5;
}
// The same in kernels for more rows, where no multiprocessor may lose a block for it.
std::uint32_t room_beside(const Machine& machine, std::uint32_t blocks) {
  constexpr std::uint32_t kReserved = 1024;  // by CUDA, of each block
  constexpr std::uint32_t kStatic = 16;      // is_last_to_arrive's
  return std::min(machine.shared_per_sm / blocks - kReserved, machine.shared_per_block) - kStatic;
}

// Whether tiles of 32 rows of W, one for each multiprocessor, are the faster ones: no block waits for another, but each
// reads all of x.
bool has_tiles_of_32(const Machine& machine, const SkinnyGemmDesc& desc) {
  constexpr std::uint64_t kMaxK = 8192;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(weight_rows_of(desc), 32);
  return desc.weights == SkinnyWeights::kFloat && desc.k <= kMaxK && fill_waves(machine.sms, tiles, 1);
}

SkinnyShape shape_of(const Machine& machine, const SkinnyGemmPlan& plan) {
  const SkinnyGemmDesc& desc = plan.desc;
  const std::uint64_t columns = ceil_divide<std::uint64_t>(desc.rows, kSkinnyFewRows);
  if (columns > 2) return {columns > 4 ? 8u : 4u, 8};
  if (columns == 2) return {2, has_tiles_of_32(machine, desc) ? 2u : 4u};
  return {1, few_rows(plan, room_for_x(machine)) == desc.rows ? 1u : 4u};
}

Kernel<SkinnyGemmParams> kernel_of(const SkinnyGemmDesc& desc, SkinnyShape shape) {
  switch (desc.weights) {
    case SkinnyWeights::kInt8: return skinny_gemm_int8_kernel(desc.type, scales_of(desc), shape);
    case SkinnyWeights::kInt4: return skinny_gemm_int4_kernel(desc.type, scales_of(desc), shape);
    default: return skinny_gemm_float_kernel(desc.type, shape);
  }
}

// Whether the device has the kernel for more rows.
absl::StatusOr<bool> has_wide(const Machine& machine, KernelRef kernel) {
  if (!kHasWide || machine.shared_per_block < skinny_wide_bytes(16)) return false;
  CGRT_ASSIGN_OR_RETURN(const int major, machine.device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CGRT_ASSIGN_OR_RETURN(const int minor, machine.device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  if (major != 9 || minor != 0) return false;
  CGRT_ASSIGN_OR_RETURN(const Machine of_code, machine_of(machine.context, kernel));
  return of_code.has_programmatic_edges;  // so it is not translated
}

// How many clusters of `cluster` blocks the device runs at once.
absl::StatusOr<std::uint32_t> clusters_at_once(const Machine& machine, const SkinnyGemmPlan& plan,
                                               std::uint32_t cluster) {
  if (cluster == 1) return machine.sms;
  CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(plan.kernel, machine.context, cluster,
                                                                plan.config.block, plan.config.shared_bytes));
  return static_cast<std::uint32_t>(clusters);
}

// The blocks of a cluster share k where tiles of 128 rows are at most half as many as multiprocessors, and all clusters
// run at once. Each has two stages or more; four where it sends many sums, or weights are integers.
absl::StatusOr<std::uint32_t> cluster_of(const Machine& machine, const SkinnyGemmPlan& plan, std::uint64_t tiles,
                                         std::uint64_t stages) {
  const bool sends_few = plan.desc.weights == SkinnyWeights::kFloat && plan.desc.rows <= 32;
  const std::uint64_t min_stages = sends_few ? 2 : 4;
  for (std::uint32_t cluster = kSkinnyMaxCluster; machine.has_clusters && cluster > 1; --cluster) {
    if (tiles * cluster > machine.sms || cluster * min_stages > stages) continue;
    CGRT_ASSIGN_OR_RETURN(const std::uint32_t at_once, clusters_at_once(machine, plan, cluster));
    if (at_once >= tiles) return cluster;
  }
  return 1;
}

// How at most so many blocks have the tiles of W. A launch may have few of many rows: there are as many blocks as few
// rows want.
void divide(SkinnyGemmPlan& plan, SkinnyShape shape, std::uint64_t max_blocks) {
  const SkinnyGemmDesc& desc = plan.desc;
  const std::uint32_t row_warps = shape.columns > 1 ? 1 : shape.row_warps;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(weight_rows_of(desc), 16 * row_warps);
  const std::uint64_t stages =
      ceil_divide<std::uint64_t>(desc.k, skinny_stage_values(bits_of(desc.weights), row_warps));
  const Division division =
      division_of(plan, shape, std::min<std::uint64_t>(max_blocks, WorkspaceHeader::kCounters), tiles, stages);
  plan.blocks = division.blocks, plan.shares_tiles = shape.columns > 1 || division.shares_tiles;
  if (plan.shares_tiles) plan.workspace_bytes = workspace_with(2 * plan.blocks * skinny_part_bytes(shape));
}

absl::StatusOr<SkinnyGemmPlan> plan_wide(const Machine& machine, SkinnyGemmPlan plan) {
  const SkinnyGemmDesc& desc = plan.desc;
  const std::uint32_t bits = bits_of(desc.weights);
  const std::uint64_t stages = ceil_divide<std::uint64_t>(desc.k, skinny_wide_stage_values(bits));
  const std::uint64_t tiles =
      desc.activation == SkinnyActivation::kSiluGate ? ceil_divide(desc.n, 64) : ceil_divide(desc.n, 128);
  plan.config.block = skinny_wide_threads(scales_of(desc)), plan.config.shared_bytes = skinny_wide_bytes(bits);
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(plan.kernel, machine, plan.config.shared_bytes));
  CGRT_RETURN_IF_ERROR(preload(plan.kernel, machine.context));
  CGRT_ASSIGN_OR_RETURN(const std::uint32_t cluster, cluster_of(machine, plan, tiles, stages));
  CGRT_ASSIGN_OR_RETURN(const std::uint32_t at_once, clusters_at_once(machine, plan, cluster));
  // Clusters take tiles in turn, and copies of the next go on while one is stored. As few as need no more turns are the
  // faster ones, but with floats as many as run at once, if half of them have a last turn.
  const std::uint64_t turns = ceil_divide<std::uint64_t>(tiles, at_once), of_last = (tiles - 1) % at_once + 1;
  const bool takes_all = desc.weights == SkinnyWeights::kFloat && of_last >= at_once / 2 && turns > 1;
  plan.clusters = takes_all ? at_once : static_cast<std::uint32_t>(ceil_divide(tiles, turns));
  plan.config.attributes.cluster = cluster;
  plan.config.grid = plan.clusters * cluster;
  if (scales_of(desc) != SkinnyScales::kToSums) return plan;
  // A launch may have few rows, which small tiles want.
  const std::uint32_t max_blocks = at_once * cluster;
  divide(plan, {1, 1}, kSkinnyWideGroups * max_blocks);
  plan.config.grid = std::max(plan.clusters, ceil_divide(std::min(plan.blocks, max_blocks), cluster)) * cluster;
  return plan;
}

absl::StatusOr<SkinnyGemmPlan> plan_few(const Machine& machine, SkinnyGemmPlan plan) {
  const SkinnyGemmDesc& desc = plan.desc;
  const std::uint32_t bits = bits_of(desc.weights);
  const SkinnyShape shape = shape_of(machine, plan);
  plan.kernel = kernel_of(desc, shape);
  plan.config.block = kSkinnyThreads;
  plan.config.shared_bytes = skinny_shared_bytes(bits, shape);
  const auto with_rows = [&](std::uint64_t rows) {
    return std::max(plan.config.shared_bytes, static_cast<std::uint32_t>(kept_bytes(plan, rows)));
  };
  if (shape.columns > 1) {
    plan.config.shared_bytes = with_rows(few_rows(plan, room_beside(machine, skinny_blocks(bits, shape.columns))));
  } else if (skinny_keeps_x(bits, shape)) {
    plan.config.shared_bytes = with_rows(desc.rows);
    if (!fit_two(machine, plan.config.shared_bytes)) {
      plan.config.shared_bytes = std::max(plan.config.shared_bytes, machine.shared_per_sm / 2);
    }
  }
  if (plan.config.shared_bytes > machine.shared_per_block) {
    return refuse(kName, absl::StrCat(desc.rows, " rows of x need ", plan.config.shared_bytes,
                                      " bytes of shared memory, more than the ", machine.shared_per_block,
                                      " of a block. Plan fewer rows."));
  }
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(plan.kernel, machine, plan.config.shared_bytes));
  CGRT_RETURN_IF_ERROR(preload(plan.kernel, machine.context));
  CGRT_ASSIGN_OR_RETURN(const Occupancy of_sm,
                        occupancy(plan.kernel, machine.context, plan.config.block, plan.config.shared_bytes));
  divide(plan, shape, machine.sms * static_cast<std::uint64_t>(std::max(of_sm.blocks_per_sm, 1)));
  plan.config.grid = plan.blocks;
  return plan;
}

// Whether the kernel for more rows is faster than this plan for few, up to 1.4 times: it reads many weights faster, and
// has one epilogue where blocks here have three or more. But a block here with a tile of its own is as fast. And where
// clusters of at most 8 blocks take less than a third of the multiprocessors, blocks here, which take all of them, are
// faster (8 rows, 512 x 13,312: 9.9 us, in clusters 12.1; H200).
bool is_faster_wide(const Machine& machine, const SkinnyGemmPlan& few) {
  constexpr std::uint64_t kMinBytes = 7 << 20, kManyTiles = 3;
  const SkinnyGemmDesc& desc = few.desc;
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(weight_rows_of(desc), 16 * shape_of(machine, few).row_warps);
  const bool has_many = weight_rows_of(desc) * desc.k * 2 >= kMinBytes || tiles >= kManyTiles * few.blocks;
  const std::uint64_t in_clusters = ceil_divide<std::uint64_t>(weight_rows_of(desc), 128) * kSkinnyMaxCluster;
  return desc.weights == SkinnyWeights::kFloat && has_many && tiles != few.blocks && 3 * in_clusters >= machine.sms;
}

}  // namespace

absl::StatusOr<SkinnyGemmPlan> plan_skinny_gemm(ContextRef context, const SkinnyGemmDesc& desc) {
  SkinnyGemmPlan plan{desc, {}, {}};
  if (desc.x_stride == 0) plan.desc.x_stride = desc.k;
  if (desc.y_stride == 0) plan.desc.y_stride = desc.n;
  CGRT_RETURN_IF_ERROR(check(plan.desc));
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const auto wide = wide_kernel(desc.type, bits_of(desc.weights), scales_of(desc));
  if (desc.rows <= kSkinnyFewRows) {
    CGRT_ASSIGN_OR_RETURN(const SkinnyGemmPlan few, plan_few(machine, plan));
    if (!is_faster_wide(machine, few)) return few;
  }
  CGRT_ASSIGN_OR_RETURN(plan.is_wide, has_wide(machine, wide));
  if (!plan.is_wide) return plan_few(machine, plan);
  plan.kernel = wide;
  CGRT_ASSIGN_OR_RETURN(const Machine of_code, machine_of(context, wide));
  return choose_with_room(of_code, [&](const Machine& with) { return plan_wide(with, plan); });
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
  params.blocks = plan.blocks, params.clusters = plan.clusters;
  params.cluster = Divisor(plan.config.attributes.cluster.x);
  params.activation = desc.activation;
  params.weights_are_constant = desc.weights_are_constant, params.shares_tiles = plan.shares_tiles;
  params.few_rows = static_cast<std::uint8_t>(few_rows(plan, plan.config.shared_bytes));
  if (!plan.is_wide) return launch(target, plan.config, plan.kernel, params);

  CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  // Boxes have 128 bytes of each row: of integers these are 64 pairs or fours.
  const std::uint64_t of_row = params.weight_row_bytes / 2;
  const std::uint32_t weight_box = has_gate ? 64 : 128,
                      boxes_of_x[2] = {skinny_wide_columns(params.rows), kSkinnyBoxRows};
  CGRT_ASSIGN_OR_RETURN(params.maps[0], make_tensor_map(args.weights, desc.type,
                                                        {{of_row, 1, 64}, {params.weight_rows, of_row, weight_box}},
                                                        CU_TENSOR_MAP_L2_PROMOTION_NONE));
  for (int i = 0; i < 2; ++i) {
    CGRT_ASSIGN_OR_RETURN(
        params.maps[1 + i],
        make_tensor_map(args.x, desc.type, {{desc.k, 1, 64}, {desc.rows, desc.x_stride, boxes_of_x[i]}}));
  }
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
