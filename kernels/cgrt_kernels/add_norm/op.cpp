#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt_kernels/add_norm/add_norm.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostThreads = 512;  // of a block: see __launch_bounds__ in op.cu
constexpr std::uint32_t kMostBlocks = 8;     // of a cluster, everywhere
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;

struct Shape {
  AddNormRegime regime = AddNormRegime::kAny;
  LaunchConfig config;
};

struct Machine {
  std::uint64_t sms;
  bool has_clusters;
};

std::string name(const AddNormDesc& desc) { return absl::StrCat("add_", to_string(desc.op)); }

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

// Blocks that share a row of which each thread keeps `per_thread` elements; false when that takes more than
// a cluster can have.
bool share_among_blocks(const Machine& machine, const AddNormDesc& desc, AddNormRegime regime, std::uint32_t per_thread,
                        Shape& shape) {
  const std::uint32_t threads = ceil_divide(desc.columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, kMostThreads));
  if (blocks > (machine.has_clusters ? kMostBlocks : 1) || desc.rows * blocks > kMost) return false;
  shape.regime = regime;
  shape.config = {.grid = static_cast<std::uint32_t>(desc.rows) * blocks,
                  .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

Shape element_shape(const Machine& machine, const AddNormDesc& desc) {
  Shape shape;
  if (share_among_blocks(machine, desc, AddNormRegime::kElements8, 8, shape)) return shape;
  return {AddNormRegime::kAny, {.grid = static_cast<std::uint32_t>(desc.rows), .block = kMostThreads}};
}

// What is expected to be shortest on an H200.
Shape packed_shape(const Machine& machine, const AddNormDesc& desc) {
  Shape shape;
  const auto share = [&](AddNormRegime regime, std::uint32_t per_thread) {
    return share_among_blocks(machine, desc, regime, per_thread, shape);
  };
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (desc.rows <= machine.sms && share(AddNormRegime::kBlock8, 8)) return shape;
  if (desc.columns <= 32 * kWarp) {
    constexpr std::uint32_t kWarps = 4;  // of a block
    shape.regime = AddNormRegime::kWarp32;
    shape.config.block = kWarps * kWarp;
    shape.config.grid = ceil_divide(desc.rows, kWarps);
    return shape;
  }
  const bool is_long = desc.columns > std::uint64_t{16} * kMostThreads;
  if (!is_long && share(AddNormRegime::kBlock16, 16)) return shape;
  if (size_of(desc.type) == 2 && share(AddNormRegime::kBlock32, 32)) return shape;
  return share(AddNormRegime::kBlock16, 16) ? shape : element_shape(machine, desc);
}

absl::Status check_pointer(const AddNormDesc& desc, const char* argument, const void* pointer, bool may_be_null) {
  if (pointer == nullptr && !may_be_null) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", argument, " is null."));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % size_of(desc.type) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", argument, " (0x", absl::Hex(address),
                                                 ") is not aligned to ", size_of(desc.type), " bytes, the size of ",
                                                 to_string(desc.type), "."));
}

}  // namespace

absl::StatusOr<AddNormPlan> plan_add_norm(ContextRef context, const AddNormDesc& desc) {
  if (desc.op != RowOp::kLayerNorm && desc.op != RowOp::kRmsNorm) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": only layer_norm and rms_norm add a residual."));
  }
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMost || desc.columns > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": ", desc.rows, " rows of ", desc.columns,
                                                   " columns; each must be from 1 to ", kMost, "."));
  }
  if (desc.type != DType::kFloat32 && desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": there is no kernel for ", to_string(desc.type),
                                                   ", only for float32, float16 and bfloat16."));
  }
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  const Machine machine{static_cast<std::uint64_t>(sms), has_clusters != 0};
  const Shape any = element_shape(machine, desc);
  const Shape shape = desc.columns * size_of(desc.type) % 16 == 0 ? packed_shape(machine, desc) : any;
  return AddNormPlan{desc, add_norm_kernel(desc.op, desc.type, shape.regime), shape.config,
                     add_norm_kernel(desc.op, desc.type, any.regime), any.config};
}

absl::Status launch_add_norm(LaunchTarget target, const AddNormPlan& plan, const AddNormArgs& args) {
  const AddNormDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "out", args.out, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "sum", args.sum, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "in", args.in, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "residual", args.residual, false));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "weight", args.weight, true));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "bias", args.bias, true));
  if (args.out == args.sum) {
    return absl::InvalidArgumentError(absl::StrCat(name(desc), ": out and sum are the same array."));
  }
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const bool is_aligned =
      (bits(args.out) | bits(args.sum) | bits(args.in) | bits(args.residual) | bits(args.weight) | bits(args.bias)) %
          16 ==
      0;
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel,
                args.out, args.sum, args.in, args.residual, args.weight, args.bias, desc.epsilon,
                static_cast<std::uint32_t>(desc.rows), static_cast<std::uint32_t>(desc.columns));
}

}  // namespace cgrt::kernels
