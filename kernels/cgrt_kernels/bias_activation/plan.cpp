#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/bias_activation/bias_activation.h"
#include "cgrt_kernels/bias_activation/kernels.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {
namespace {

constexpr char kName[] = "bias_activation";

// Rows of 16-bit types that are whole 4 bytes, but no whole 8: shorter ones go in these, longer ones as unaligned
// arrays do, by packs that lie across two.
constexpr std::uint64_t kMinShiftedColumns = 1024;

// The widest pack, in bytes, that rows of aligned arrays are whole numbers of; 0: they go as unaligned arrays do.
std::uint32_t widest_pack(const BiasActivationDesc& desc) {
  const std::uint64_t row_bytes = desc.columns * size_of(desc.type);
  if (row_bytes % 8 == 0) return row_bytes % 16 == 0 ? 16 : 8;
  return size_of(desc.type) == 2 && row_bytes % 4 == 0 && desc.columns < kMinShiftedColumns ? 4 : 0;
}

absl::StatusOr<BiasActivationPlan::Launch> launch_of(ContextRef context, const BiasActivationDesc& desc,
                                                     Alignment alignment) {
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const bool is_aligned = alignment == Alignment::kAligned;
  const std::uint64_t size = size_of(desc.type), count = desc.rows * desc.columns;
  const std::uint64_t widest = is_aligned ? widest_pack(desc) : 16,
                      fewest = is_aligned ? std::min<std::uint64_t>(widest, 8) : size;
  // Of the output that a thread has. A small launch is over sooner the more threads and multiprocessors share it, until
  // a multiprocessor has some hundreds; single elements of unaligned arrays, until it is full.
  const std::uint64_t few = static_cast<std::uint64_t>(sms) * (is_aligned ? 768 : 1536);
  const std::uint64_t bytes = count * size <= few * fewest ? fewest : widest;
  // A multiprocessor begins a block in 0.16 us (H100): of many small ones that is what takes the time.
  const bool has_many = bytes == 16 || count * size > static_cast<std::uint64_t>(sms) * 768 * bytes;
  const std::uint64_t pack = bytes / size, block = has_many ? kBiasActivationBlock : kBiasActivationBlock / 2;
  BiasActivationPlan::Launch launch{
      bias_activation_kernel(desc.activation, desc.gate, desc.type, alignment, static_cast<std::uint32_t>(bytes)),
      {},
      0};
  launch.row_items = static_cast<std::uint32_t>(is_aligned ? desc.columns / pack : desc.columns);
  if (desc.rows > kMaxCount * block / desc.columns * pack) {
    return refuse(kName, absl::StrCat(desc.rows, " rows of ", desc.columns, " columns are more than ", kMaxCount,
                                      " blocks have threads for."));
  }
  launch.config = {.grid = ceil_divide(count, block * pack), .block = static_cast<std::uint32_t>(block)};
  CGRT_RETURN_IF_ERROR(preload(launch.kernel, context));
  return launch;
}

}  // namespace

absl::StatusOr<BiasActivationPlan> plan_bias_activation(ContextRef context, const BiasActivationDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum(kName, "activation", desc.activation, BiasActivation::kGeluTanh));
  CGRT_RETURN_IF_ERROR(check_enum(kName, "gate", desc.gate, BiasGate::kGated));
  CGRT_RETURN_IF_ERROR(check_matrix(kName, desc.rows, desc.columns));
  CGRT_RETURN_IF_ERROR(check_float(kName, desc.type));
  BiasActivationPlan plan{desc, {}, {}};
  CGRT_ASSIGN_OR_RETURN(plan.unaligned, launch_of(context, desc, Alignment::kUnaligned));
  plan.aligned = plan.unaligned;
  if (widest_pack(desc) != 0) {
    CGRT_ASSIGN_OR_RETURN(plan.aligned, launch_of(context, desc, Alignment::kAligned));
  }
  return plan;
}

absl::Status launch_bias_activation(LaunchTarget target, const BiasActivationPlan& plan,
                                    const BiasActivationArgs& args) {
  const BiasActivationDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_array(kName, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "a", args.a, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(kName, "bias", args.bias, desc.type));
  if (desc.gate == BiasGate::kGated && args.out == args.a) {
    return refuse(kName, "out is a, whose rows are twice as long; it cannot work in place.");
  }
  const Alignment alignment = alignment_of(args.out, args.a, args.bias);
  const BiasActivationPlan::Launch& chosen = alignment == Alignment::kAligned ? plan.aligned : plan.unaligned;
  return launch(target, chosen.config, chosen.kernel,
                BiasActivationParams{args, static_cast<std::uint32_t>(desc.rows),
                                     static_cast<std::uint32_t>(desc.columns), WideDivisor(chosen.row_items)});
}

}  // namespace cgrt::kernels
