#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
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

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

Shape any_shape(std::uint32_t rows, std::uint32_t columns) {
  return {RowRegime::kAny, {.grid = rows, .block = std::min(kMostThreads, ceil_divide(columns, kWarp) * kWarp)}};
}

// A block per row, or as many as it takes; false when it takes more than a cluster can have.
bool share_among_blocks(std::uint32_t rows, std::uint32_t columns, std::uint32_t per_thread, Shape& shape) {
  const std::uint32_t threads = ceil_divide(columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, kMostThreads));
  if (blocks > kMostBlocks || std::uint64_t{rows} * blocks > kMost) return false;
  shape.regime = per_thread == 8 ? RowRegime::kBlock8 : RowRegime::kBlock32;
  shape.config = {.grid = rows * blocks, .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

Shape packed_shape(std::uint32_t rows, std::uint32_t columns, std::uint32_t sms, bool has_clusters) {
  constexpr std::uint32_t kWarps = 4;  // rows of a block
  Shape shape;
  if (columns <= 32 * kWarp) {
    shape.regime = columns <= 8 * kWarp    ? RowRegime::kWarp8
                   : columns <= 16 * kWarp ? RowRegime::kWarp16
                                           : RowRegime::kWarp32;
    shape.config = {.grid = ceil_divide(rows, kWarps), .block = kWarps * kWarp};
    return shape;
  }
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  const bool is_spread = rows <= sms && share_among_blocks(rows, columns, 8, shape);
  if (!is_spread && !share_among_blocks(rows, columns, 32, shape)) return any_shape(rows, columns);
  const bool is_cluster = shape.config.attributes.cluster.x > 1;
  if (is_cluster && !has_clusters && !share_among_blocks(rows, columns, 32, shape)) return any_shape(rows, columns);
  if (shape.config.attributes.cluster.x > 1 && !has_clusters) return any_shape(rows, columns);
  return shape;
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
  const auto rows = static_cast<std::uint32_t>(desc.rows), columns = static_cast<std::uint32_t>(desc.columns);
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  const Shape any = any_shape(rows, columns);
  const bool is_packed = desc.columns * size_of(desc.type) % 16 == 0;
  const Shape shape = is_packed ? packed_shape(rows, columns, static_cast<std::uint32_t>(sms), has_clusters != 0) : any;
  return RowsPlan{desc, rows_kernel(desc.op, desc.type, shape.regime), shape.config,
                  rows_kernel(desc.op, desc.type, RowRegime::kAny), any.config};
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
