#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt_kernels/masked_softmax/masked_softmax.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kMostThreads = 512;  // of a block: see __launch_bounds__ in op.cu
constexpr std::uint32_t kMostBlocks = 8;     // of a cluster, everywhere
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;

struct Shape {
  MaskedSoftmaxRegime regime = MaskedSoftmaxRegime::kAny;
  LaunchConfig config;
};

struct Machine {
  std::uint64_t sms;
  bool has_clusters;
};

std::uint32_t ceil_divide(std::uint64_t a, std::uint64_t b) { return static_cast<std::uint32_t>((a - 1) / b + 1); }

std::uint64_t all_rows(const MaskedSoftmaxDesc& desc) { return desc.matrices * desc.rows; }

// Blocks that share a row of which each thread keeps `per_thread` elements; false when that takes more than
// a cluster can have.
bool share_among_blocks(const Machine& machine, const MaskedSoftmaxDesc& desc, MaskedSoftmaxRegime regime,
                        std::uint32_t per_thread, Shape& shape) {
  const std::uint32_t threads = ceil_divide(desc.columns, per_thread);
  const std::uint32_t blocks = std::bit_ceil(ceil_divide(threads, kMostThreads));
  if (blocks > (machine.has_clusters ? kMostBlocks : 1) || all_rows(desc) * blocks > kMost) return false;
  shape.regime = regime;
  shape.config = {.grid = static_cast<std::uint32_t>(all_rows(desc)) * blocks,
                  .block = ceil_divide(ceil_divide(threads, blocks), kWarp) * kWarp};
  shape.config.attributes.cluster = blocks;
  return true;
}

Shape element_shape(const Machine& machine, const MaskedSoftmaxDesc& desc) {
  Shape shape;
  if (share_among_blocks(machine, desc, MaskedSoftmaxRegime::kElements8, 8, shape)) return shape;
  return {MaskedSoftmaxRegime::kAny, {.grid = static_cast<std::uint32_t>(all_rows(desc)), .block = kMostThreads}};
}

// What is expected to be shortest on an H200.
Shape packed_shape(const Machine& machine, const MaskedSoftmaxDesc& desc) {
  Shape shape;
  if (desc.columns <= 32 * kWarp) {
    constexpr std::uint32_t kWarps = 4;  // of a block
    shape.regime = desc.columns <= 8 * kWarp ? MaskedSoftmaxRegime::kWarp8 : MaskedSoftmaxRegime::kWarp32;
    shape.config.block = kWarps * kWarp;
    shape.config.grid = ceil_divide(all_rows(desc), kWarps);
    return shape;
  }
  const auto share = [&](MaskedSoftmaxRegime regime, std::uint32_t per_thread) {
    return share_among_blocks(machine, desc, regime, per_thread, shape);
  };
  // Few rows leave multiprocessors idle: more threads for each, with less to do.
  if (all_rows(desc) <= machine.sms && share(MaskedSoftmaxRegime::kBlock8, 8)) return shape;
  return share(MaskedSoftmaxRegime::kBlock16, 16) ? shape : element_shape(machine, desc);
}

absl::Status check_pointer(const char* argument, const void* pointer, std::size_t size, bool may_be_null) {
  if (pointer == nullptr && !may_be_null) {
    return absl::InvalidArgumentError(absl::StrCat("masked_softmax: ", argument, " is null."));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % size == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("masked_softmax: ", argument, " (0x", absl::Hex(address),
                                                 ") is not aligned to ", size, " bytes, the size of its elements."));
}

}  // namespace

absl::StatusOr<MaskedSoftmaxPlan> plan_masked_softmax(ContextRef context, const MaskedSoftmaxDesc& desc) {
  const auto is_fit = [](std::uint64_t count) { return count > 0 && count <= kMost; };
  if (!is_fit(desc.matrices) || !is_fit(desc.rows) || !is_fit(desc.columns) || !is_fit(all_rows(desc))) {
    return absl::InvalidArgumentError(absl::StrCat("masked_softmax: ", desc.matrices, " matrices of ", desc.rows,
                                                   " rows of ", desc.columns, " columns; columns, and rows of all ",
                                                   "matrices, must be from 1 to ", kMost, "."));
  }
  if (desc.mask_matrices == 0 || desc.matrices % desc.mask_matrices != 0) {
    return absl::InvalidArgumentError(absl::StrCat("masked_softmax: mask_matrices (", desc.mask_matrices,
                                                   ") does not divide the ", desc.matrices, " matrices."));
  }
  if (desc.mask_rows != 1 && desc.mask_rows != desc.rows) {
    return absl::InvalidArgumentError(absl::StrCat("masked_softmax: mask_rows (", desc.mask_rows,
                                                   ") is neither 1 nor the ", desc.rows, " rows of a matrix."));
  }
  if (desc.type != DType::kFloat32 && desc.type != DType::kFloat16 && desc.type != DType::kBFloat16) {
    return absl::InvalidArgumentError(absl::StrCat("masked_softmax: there is no kernel for ", to_string(desc.type),
                                                   ", only for float32, float16 and bfloat16."));
  }
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  const Machine machine{static_cast<std::uint64_t>(sms), has_clusters != 0};
  const Shape any = element_shape(machine, desc);
  const Shape shape = desc.columns * size_of(desc.type) % 16 == 0 ? packed_shape(machine, desc) : any;
  return MaskedSoftmaxPlan{desc, masked_softmax_kernel(desc.type, shape.regime), shape.config,
                           masked_softmax_kernel(desc.type, any.regime), any.config};
}

absl::Status launch_masked_softmax(LaunchTarget target, const MaskedSoftmaxPlan& plan, const MaskedSoftmaxArgs& args) {
  const MaskedSoftmaxDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer("out", args.out, size_of(desc.type), false));
  CGRT_RETURN_IF_ERROR(check_pointer("in", args.in, size_of(desc.type), false));
  CGRT_RETURN_IF_ERROR(check_pointer("mask", args.mask, size_of(desc.type), true));
  CGRT_RETURN_IF_ERROR(check_pointer("lengths", args.lengths, sizeof(std::int32_t), true));
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const bool is_aligned = (bits(args.out) | bits(args.in) | bits(args.mask)) % 16 == 0;
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
