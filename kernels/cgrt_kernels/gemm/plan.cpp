#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/common/tensor_map.h"
#include "cgrt_kernels/gemm/gemm.h"
#include "cgrt_kernels/gemm/kernels.h"

namespace cgrt::kernels {
namespace {

constexpr const char* kName = "gemm";
constexpr std::uint32_t kGroup = 16;  // row tiles of blocks, taken before the next columns

#ifdef CGRT_HOPPER
constexpr bool kHasCode = true;
Kernel<GemmParams> kernel_of(const MatmulDesc& desc, GemmShape shape) {
  return gemm_kernel(desc.type, desc.b_layout, shape);
}
#else
constexpr bool kHasCode = false;
Kernel<GemmParams> kernel_of(const MatmulDesc&, GemmShape) { return {}; }
#endif

absl::Status check_size(const char* size, std::uint64_t value) {
  if (value >= 1 && value <= kMaxCount) return absl::OkStatus();
  return refuse(kName, absl::StrCat(size, " is ", value, "; it can be 1 to ", kMaxCount, "."));
}

// What to do where gemm has no code for a product.
const char* other_way(const MatmulDesc& desc) {
  return desc.epilogue == MatmulEpilogue::kSiluGate
             ? "Take two products with MatmulKernel::kLibrary (cublaslt/matmul.h) and a gate (bias_activation)."
             : "Take MatmulKernel::kLibrary (cublaslt/matmul.h).";
}

absl::Status check_row(const MatmulDesc& desc, const char* size, std::uint64_t value, const char* matrices) {
  if (value % 8 == 0) return absl::OkStatus();
  return refuse(kName, absl::StrCat(size, " is ", value, ", not a multiple of 8: rows of ", matrices,
                                    " must be multiples of 16 bytes. ", other_way(desc)));
}

absl::Status check(const MatmulDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum(kName, "b_layout", desc.b_layout, MatmulLayout::kTransposed));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "epilogue", desc.epilogue, MatmulEpilogue::kSiluGate));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "products", desc.products, Float32Products::kTf32));
  if (desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return refuse_type(kName, desc.type, "float16 and bfloat16");
  }
  CGRT_RETURN_IF_ERROR(check_size("m", desc.m));
  CGRT_RETURN_IF_ERROR(check_size("n", desc.n));
  CGRT_RETURN_IF_ERROR(check_size("k", desc.k));
  CGRT_RETURN_IF_ERROR(check_row(desc, "n", desc.n, "d"));
  CGRT_RETURN_IF_ERROR(check_row(desc, "k", desc.k, "a"));
  if (desc.epilogue == MatmulEpilogue::kSiluGate && desc.n > kMaxCount / 2) {
    return refuse(kName, absl::StrCat("n is ", desc.n, "; it can be at most ", kMaxCount / 2, " with a gate."));
  }
  const std::uint64_t max_elements = std::uint64_t{1} << 40;
  if (desc.m > max_elements / desc.n) {
    return refuse(kName, absl::StrCat(desc.m, " x ", desc.n, " elements of d are more than ", max_elements, "."));
  }
  return absl::OkStatus();
}

// Tiles of 256 columns or twice as many of 128, which take a little more than half as long: whichever are done first.
// Two blocks of a cluster save time where most multiprocessors have a tile, unless it takes another wave that rows of
// tiles become an even number.
GemmShape shape_of(const Machine& machine, const MatmulDesc& desc) {
  const std::uint64_t rows = ceil_divide<std::uint64_t>(desc.m, kGemmRows);
  const auto tiles_of = [&](GemmShape shape) {
    return ceil_divide<std::uint64_t>(rows, shape.cluster) * shape.cluster *
           ceil_divide<std::uint64_t>(columns_of_b(desc), shape.columns);
  };
  const auto waves_of = [&](GemmShape shape) { return ceil_divide<std::uint64_t>(tiles_of(shape), machine.sms); };
  const auto with = [&](std::uint32_t columns) {
    const GemmShape single{columns, 1}, pair{columns, 2};
    const bool are_most_busy = tiles_of(single) * 4 >= std::uint64_t{machine.sms} * 3;
    return machine.has_clusters && rows > 1 && are_most_busy && waves_of(pair) <= waves_of(single) ? pair : single;
  };
  return 100 * waves_of(with(256)) <= 52 * waves_of(with(128)) ? with(256) : with(128);
}

std::uint32_t tile_columns_of(const MatmulDesc& desc, std::uint32_t columns) {
  return desc.epilogue == MatmulEpilogue::kSiluGate ? columns / 2 : columns;
}

absl::StatusOr<CUtensorMap> map_of_b(const GemmPlan& plan, const void* b) {
  const MatmulDesc& desc = plan.desc;
  const std::uint64_t columns = columns_of_b(desc);
  if (desc.b_layout == MatmulLayout::kPlain) {
    return make_tensor_map(b, desc.type, {{columns, 1, kGemmBox}, {desc.k, columns, kGemmDepth}});
  }
  return make_tensor_map(b, desc.type, {{desc.k, 1, kGemmDepth}, {columns, desc.k, plan.columns / 2}});
}

struct Choice {
  Kernel<GemmParams> kernel;
  LaunchConfig config;
  std::uint32_t columns;
};
absl::StatusOr<Choice> choose(const Machine& machine, const MatmulDesc& desc) {
  const GemmShape shape = shape_of(machine, desc);
  Choice choice{kernel_of(desc, shape), {}, shape.columns};
  const std::uint64_t tiles = ceil_divide<std::uint64_t>(desc.m, shape.cluster * kGemmRows) *
                              ceil_divide<std::uint64_t>(desc.n, tile_columns_of(desc, shape.columns));
  const std::uint64_t blocks = std::min<std::uint64_t>(tiles, machine.sms / shape.cluster);
  choice.config = {.grid = static_cast<std::uint32_t>(blocks * shape.cluster),
                   .block = kGemmThreads,
                   .shared_bytes = gemm_shared_bytes(shape.columns)};
  choice.config.attributes.cluster = shape.cluster;
  CGRT_RETURN_IF_ERROR(allow_shared_bytes(choice.kernel, machine, choice.config.shared_bytes));
  if (shape.cluster == 1) return choice;
  // A device may have room for fewer: the rest would wait for blocks that stay until the end.
  CGRT_ASSIGN_OR_RETURN(const int clusters,
                        max_active_clusters(choice.kernel, machine.context, choice.config.attributes.cluster,
                                            choice.config.block, choice.config.shared_bytes));
  const auto at_once = static_cast<std::uint32_t>(std::max(clusters, 1)) * shape.cluster;
  choice.config.grid = std::min(choice.config.grid.x, at_once);
  return choice;
}

}  // namespace

absl::StatusOr<GemmPlan> plan_gemm(ContextRef context, const MatmulDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int major, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  if (!kHasCode || major != 9) {
    return absl::UnimplementedError(absl::StrCat(kName, ": ", kHasCode ? "the device" : "this build",
                                                 " has no code of compute capability 9.0. ", other_way(desc)));
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context, kernel_of(desc, {256, 1})));
  CGRT_ASSIGN_OR_RETURN(const Choice choice,
                        choose_with_room(machine, [&](const Machine& with) { return choose(with, desc); }));
  CGRT_RETURN_IF_ERROR(preload(choice.kernel, context));
  return GemmPlan{desc, choice.kernel, choice.config, choice.columns};
}

absl::Status launch_gemm(LaunchTarget target, const GemmPlan& plan, const MatmulArgs& args) {
  const MatmulDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "d", args.d, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "a", args.a, 16));
  CGRT_RETURN_IF_ERROR(check_pointer(kName, "b", args.b, 16));
  if (has_bias(desc.epilogue)) CGRT_RETURN_IF_ERROR(check_pointer(kName, "bias", args.bias, 16));
  if (has_residual(desc.epilogue)) CGRT_RETURN_IF_ERROR(check_pointer(kName, "residual", args.residual, 16));
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(const CUtensorMap a,
                        make_tensor_map(args.a, desc.type, {{desc.k, 1, kGemmDepth}, {desc.m, desc.k, kGemmRows}}));
  CGRT_ASSIGN_OR_RETURN(const CUtensorMap b, map_of_b(plan, args.b));
  const auto map_of_boxes = [&](const void* array) {
    return make_tensor_map(array, desc.type, {{desc.n, 1, kGemmBox}, {desc.m, desc.n, kGemmBox}});
  };
  CGRT_ASSIGN_OR_RETURN(const CUtensorMap d, map_of_boxes(args.d));
  const std::uint32_t cluster = plan.config.attributes.cluster.x;
  const std::uint32_t tile_columns = tile_columns_of(desc, plan.columns);
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  GemmParams params{};
  params.maps[0] = a, params.maps[1] = b, params.maps[2] = d;
  params.args = args;
  if (!has_bias(desc.epilogue)) params.args.bias = nullptr;
  if (has_residual(desc.epilogue)) {
    CGRT_ASSIGN_OR_RETURN(params.maps[3], map_of_boxes(args.residual));
  } else {
    params.args.residual = nullptr;
  }
  params.m = narrow(desc.m), params.n = narrow(desc.n), params.k = narrow(desc.k);
  params.row_tiles = ceil_divide(desc.m, cluster * kGemmRows);
  params.column_tiles = ceil_divide(desc.n, tile_columns);
  params.tile_columns = tile_columns;
  if (desc.epilogue == MatmulEpilogue::kSiluGate) params.second_half = params.n - tile_columns;
  params.stages = ceil_divide(desc.k, kGemmDepth);
  params.group = kGroup / cluster;
  params.b_layout = desc.b_layout;
  params.epilogue = desc.epilogue;
  return launch(target, plan.config, plan.kernel, params);
}

}  // namespace cgrt::kernels
