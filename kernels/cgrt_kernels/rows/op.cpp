#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/rows/rows.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostThreads = 512;  // of a block: see __launch_bounds__ in op.cu
constexpr std::uint32_t kMostBlocks = 8;     // of a cluster, everywhere
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;

struct Shape {
  RowRegime regime = RowRegime::kAny;
  LaunchConfig config;
};

struct Machine {
  ContextRef context;
  DeviceRef device;
  std::uint32_t sms;
  bool has_clusters;
};

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

bool is_norm(RowOp op) { return op == RowOp::kLayerNorm || op == RowOp::kRmsNorm; }

Shape any_shape(const RowsDesc& desc) {
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  return {RowRegime::kAny, {.grid = rows, .block = std::min(kMostThreads, ceil_divide(desc.columns, kWarp) * kWarp)}};
}

// Blocks of at most `most` threads that share a row of which each thread keeps `per_thread` elements;
// false when that takes more than a cluster can have.
bool share_among_blocks(const Machine& machine, const RowsDesc& desc, RowRegime regime, std::uint32_t per_thread,
                        std::uint32_t most, Shape& shape) {
  const std::uint32_t threads = ceil_divide(desc.columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, most));
  if (blocks > (machine.has_clusters ? kMostBlocks : 1) || desc.rows * blocks > kMost) return false;
  shape.regime = regime;
  shape.config = {.grid = static_cast<std::uint32_t>(desc.rows) * blocks,
                  .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

Shape warp_shape(const RowsDesc& desc) {
  constexpr std::uint32_t kWarps = 4;  // of a block
  Shape shape;
  shape.regime = desc.columns <= 8 * kWarp    ? RowRegime::kWarp8
                 : desc.columns <= 16 * kWarp ? RowRegime::kWarp16
                                              : RowRegime::kWarp32;
  shape.config.block = kWarps * kWarp;
  shape.config.grid = ceil_divide(desc.rows, kWarps);
  return shape;
}

// Blocks of a cluster that streams such rows, or one.
std::uint32_t stream_blocks(const RowsDesc& desc) {
  constexpr std::uint32_t kMostShare = kStreamWarps * kWarp * kStreamPacks * 16;  // bytes of a block
  return std::bit_ceil(ceil_divide(desc.columns * size_of(desc.type), kMostShare));
}

// Blocks that stay, each with its share of a row and of the rows after it in shared memory.
absl::StatusOr<Shape> stream_shape(const Machine& machine, const RowsDesc& desc) {
  constexpr std::uint32_t kLanding = 223 * 1024;  // bytes of a multiprocessor's shared memory for rows
  const std::uint32_t blocks = stream_blocks(desc);
  const std::uint32_t packs = ceil_divide(desc.columns * size_of(desc.type) / 16, blocks), share = packs * 16;
  Shape shape;
  shape.regime = RowRegime::kStream;
  LaunchConfig& config = shape.config;
  config.block = ceil_divide(ceil_divide(packs, kStreamPacks), kWarp) * kWarp;
  config.attributes.cluster = blocks;
  config.shared_bytes = std::min(kLanding / share, static_cast<std::uint32_t>(kMostStages)) * share;
  const RowsKernel kernel = rows_kernel(desc.op, desc.type, shape.regime);
  CGRT_RETURN_IF_ERROR(set_max_shared_bytes(kernel, machine.device, config.shared_bytes));
  std::uint32_t at_once = machine.sms;
  if (blocks > 1) {
    CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(kernel, machine.context, config.attributes.cluster,
                                                                  config.block, config.shared_bytes));
    at_once = static_cast<std::uint32_t>(clusters);
  }
  config.grid = std::min(std::max(at_once, 1u), static_cast<std::uint32_t>(desc.rows)) * blocks;
  return shape;
}

// Whether streaming is shorter than a block, or a cluster, for each row: when clusters would be large, and for
// norms, which then keep their weights.
bool gains_from_streams(const Machine& machine, const RowsDesc& desc) {
  const std::uint32_t blocks = stream_blocks(desc);
  if (!machine.has_clusters || blocks > kMostBlocks || desc.rows * blocks <= machine.sms) return false;
  const bool fills_a_block = desc.columns * size_of(desc.type) == 64 * 1024;
  return blocks == kMostBlocks || (blocks > 1 && is_norm(desc.op)) ||
         (fills_a_block && desc.op == RowOp::kLayerNorm && desc.type == DType::kFloat32);
}

// What is shortest on an H200, where it was measured.
absl::StatusOr<Shape> packed_shape(const Machine& machine, const RowsDesc& desc) {
  if (desc.columns <= 32 * kWarp) return warp_shape(desc);
  const bool is_half = size_of(desc.type) == 2, is_long = desc.columns * size_of(desc.type) >= 64 * 1024;
  const auto share = [&](RowRegime regime, std::uint32_t per_thread, Shape& shape) {
    return share_among_blocks(machine, desc, regime, per_thread, kMostThreads, shape);
  };
  Shape shape;
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (desc.rows <= machine.sms && share(RowRegime::kBlock8, 8, shape)) return shape;
  if (gains_from_streams(machine, desc)) return stream_shape(machine, desc);
  if (!is_half && desc.op == RowOp::kLayerNorm && !is_long && share(RowRegime::kBlock16, 16, shape)) return shape;
  if (is_half && (is_long || !is_norm(desc.op)) && share(RowRegime::kBlock64, 64, shape)) return shape;
  return share(RowRegime::kBlock32, 32, shape) ? shape : any_shape(desc);
}

Shape element_shape(const Machine& machine, const RowsDesc& desc) {
  Shape shape;
  return share_among_blocks(machine, desc, RowRegime::kElements16, 16, kMostThreads, shape) ? shape : any_shape(desc);
}

absl::Status check_pointer(const RowsDesc& desc, const char* name, const void* pointer, bool may_be_null) {
  if (pointer == nullptr && !may_be_null) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", name, " is null."));
  }
  if (reinterpret_cast<std::uintptr_t>(pointer) % size_of(desc.type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(to_string(desc.op), ": ", name, " (0x", absl::Hex(reinterpret_cast<std::uintptr_t>(pointer)),
                     ") is not aligned to ", size_of(desc.type), " bytes, the size of ", to_string(desc.type), "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowsPlan> plan_rows(ContextRef context, const RowsDesc& desc) {
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMost || desc.columns > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": ", desc.rows, " rows of ", desc.columns,
                                                   " columns; each must be from 1 to ", kMost, "."));
  }
  if (desc.type != DType::kFloat32 && desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.op), ": there is no kernel for ",
                                                   to_string(desc.type), ", only for float32, float16 and bfloat16."));
  }
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  const Machine machine{context, device, static_cast<std::uint32_t>(sms), has_clusters != 0};
  const Shape any = element_shape(machine, desc);
  Shape shape = any;
  if (desc.columns * size_of(desc.type) % 16 == 0) {
    CGRT_ASSIGN_OR_RETURN(shape, packed_shape(machine, desc));
  }
  return RowsPlan{desc, rows_kernel(desc.op, desc.type, shape.regime), shape.config,
                  rows_kernel(desc.op, desc.type, any.regime), any.config};
}

absl::Status launch_rows(LaunchTarget target, const RowsPlan& plan, const RowsArgs& args) {
  CGRT_RETURN_IF_ERROR(check_pointer(plan.desc, "out", args.out, false));
  CGRT_RETURN_IF_ERROR(check_pointer(plan.desc, "in", args.in, false));
  CGRT_RETURN_IF_ERROR(check_pointer(plan.desc, "weight", args.weight, true));
  CGRT_RETURN_IF_ERROR(check_pointer(plan.desc, "bias", args.bias, true));
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const bool is_aligned = (bits(args.out) | bits(args.in) | bits(args.weight) | bits(args.bias)) % 16 == 0;
  return launch(target, is_aligned ? plan.config : plan.any_config, is_aligned ? plan.kernel : plan.any_kernel,
                args.out, args.in, args.weight, args.bias, plan.desc.epsilon,
                static_cast<std::uint32_t>(plan.desc.rows), static_cast<std::uint32_t>(plan.desc.columns));
}

}  // namespace cgrt::kernels
