#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt/memory/copy.h"
#include "cgrt_kernels/scan/scan.h"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kWarpsOfBlock = 4;  // where each has a row of its own
constexpr std::uint32_t kFewThreads = 128;  // of a block, where tiles are few
constexpr std::uint64_t kMost = (std::uint64_t{1} << 31) - 1;
constexpr std::uint32_t kOtherShared = 2048;  // bytes of static and reserved shared memory, at most
constexpr std::uintptr_t kAlignment = 256;    // of a workspace

std::uint64_t ceil_divide(std::uint64_t a, std::uint64_t b) { return (a - 1) / b + 1; }

struct Machine {
  DeviceRef device;
  std::uint32_t sms, shared_per_block;
};

absl::StatusOr<Machine> machine_of(ContextRef context) {
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int per_block, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return Machine{device, static_cast<std::uint32_t>(sms), static_cast<std::uint32_t>(per_block)};
}

// For rows of `columns` elements, what they lack at their first pack of 16 bytes included.
absl::StatusOr<ScanShape> shape_of(const Machine& machine, const ScanDesc& desc, std::uint64_t columns) {
  const std::uint64_t per_thread = kScanThreadBytes / size_of(desc.type);
  const auto rows = static_cast<std::uint32_t>(desc.rows);
  if (columns <= kWarp * per_thread) {
    return ScanShape{
        scan_kernel(desc.type, ScanRegime::kWarp),
        {.grid = static_cast<std::uint32_t>(ceil_divide(rows, kWarpsOfBlock)), .block = kWarpsOfBlock * kWarp},
        1};
  }
  if (columns <= kScanMostThreads * per_thread) {
    const auto warps = static_cast<std::uint32_t>(ceil_divide(columns, kWarp * per_thread));
    return ScanShape{scan_kernel(desc.type, ScanRegime::kBlock), {.grid = rows, .block = warps * kWarp}, 1};
  }

  const auto tiles_of = [&](std::uint32_t threads, std::uint32_t thread_bytes) {
    return ceil_divide(columns, threads * (thread_bytes / size_of(desc.type)));
  };
  constexpr std::uint32_t kStreamBytes = kScanStreamThreadBytes * kScanStreamStages;  // of shared memory, a thread
  const std::uint32_t stream_threads =
      std::min(kScanMostThreads, (machine.shared_per_block - kOtherShared) / kStreamBytes / kWarp * kWarp);
  ScanRegime regime = ScanRegime::kStream;
  LaunchConfig config{.grid = machine.sms, .block = stream_threads, .shared_bytes = stream_threads * kStreamBytes};
  std::uint64_t tiles = tiles_of(stream_threads, kScanStreamThreadBytes);
  // Blocks that stay take longer to begin with.
  const bool is_short = tiles <= machine.sms;
  if (is_short) {
    const bool are_few = desc.rows * tiles_of(kScanTileThreads, kScanThreadBytes) < machine.sms;
    regime = ScanRegime::kTiles;
    const std::uint32_t threads = are_few ? kFewThreads : kScanTileThreads;
    tiles = tiles_of(threads, kScanThreadBytes);
    config = {.grid = 0, .block = threads};
  }
  if (tiles > kMost || desc.rows * tiles > kMost) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.kind), ": ", desc.rows, " rows of ", desc.columns,
                                                   " ", to_string(desc.type), " are ", tiles,
                                                   " tiles a row; the limit is ", kMost, " in all."));
  }
  const ScanKernel kernel = scan_kernel(desc.type, regime);
  if (is_short) {
    config.grid = static_cast<std::uint32_t>(desc.rows * tiles);
  } else {
    CGRT_RETURN_IF_ERROR(set_max_shared_bytes(kernel, machine.device, config.shared_bytes));
  }
  return ScanShape{kernel, config, static_cast<std::uint32_t>(tiles)};
}

std::size_t workspace_of(const ScanDesc& desc, const ScanShape& shape) {
  if (shape.tiles == 1) return 0;
  const std::uint64_t groups = ceil_divide(shape.tiles, kScanRadix);
  const std::size_t bytes_of_sum = size_of(desc.type) == 8 ? 16 : 8;
  return kScanHeaderBytes + desc.rows * (shape.tiles + groups) * bytes_of_sum;
}

absl::Status check_pointer(const ScanDesc& desc, const char* name, const void* pointer, std::uintptr_t alignment) {
  if (pointer == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.kind), ": ", name, " is null."));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % alignment == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(to_string(desc.kind), ": ", name, " (0x", absl::Hex(address),
                                                 ") is not aligned to ", alignment, " bytes."));
}

}  // namespace

absl::StatusOr<ScanPlan> plan_scan(ContextRef context, const ScanDesc& desc) {
  // So many columns, and a pack more, have a size in bytes that fits 64 bits.
  constexpr std::uint64_t kMostColumns = std::uint64_t{1} << 48;
  if (desc.rows == 0 || desc.columns == 0 || desc.rows > kMost || desc.columns > kMostColumns) {
    return absl::InvalidArgumentError(absl::StrCat(to_string(desc.kind), ": ", desc.rows, " rows of ", desc.columns,
                                                   " columns; rows must be from 1 to ", kMost, ", columns from 1 to ",
                                                   kMostColumns, "."));
  }
  CGRT_ASSIGN_OR_RETURN(const Machine machine, machine_of(context));
  const std::uint64_t pack = 16 / size_of(desc.type);
  CGRT_ASSIGN_OR_RETURN(const ScanShape aligned, shape_of(machine, desc, desc.columns));
  CGRT_ASSIGN_OR_RETURN(const ScanShape any, shape_of(machine, desc, desc.columns + pack - 1));
  return ScanPlan{desc, aligned, any, std::max(workspace_of(desc, aligned), workspace_of(desc, any))};
}

absl::Status initialize_scan(LaunchTarget target, const ScanPlan& plan, void* workspace) {
  if (plan.workspace_bytes == 0) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(check_pointer(plan.desc, "workspace", workspace, kAlignment));
  return fill8(target, workspace, 0, plan.workspace_bytes);
}

absl::Status launch_scan(LaunchTarget target, const ScanPlan& plan, const ScanArgs& args) {
  const ScanDesc& desc = plan.desc;
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "out", args.out, size_of(desc.type)));
  CGRT_RETURN_IF_ERROR(check_pointer(desc, "in", args.in, size_of(desc.type)));
  if (plan.workspace_bytes != 0) CGRT_RETURN_IF_ERROR(check_pointer(desc, "workspace", args.workspace, kAlignment));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(args.in) % 16 == 0 &&
                          (desc.rows == 1 || desc.columns * size_of(desc.type) % 16 == 0);
  const ScanShape& shape = is_aligned ? plan.aligned : plan.any;
  return launch(target, shape.config, shape.kernel, args.out, args.in, desc.columns,
                static_cast<std::uint32_t>(desc.rows), shape.tiles, desc.kind == ScanKind::kExclusive, args.workspace);
}

}  // namespace cgrt::kernels
