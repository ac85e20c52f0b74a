#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt_kernels/common/plan.h"
#include "cgrt_kernels/transpose_heads/kernels.h"
#include "cgrt_kernels/transpose_heads/transpose_heads.h"

namespace cgrt::kernels {
namespace {

absl::Status check(const TransposeHeadsDesc& desc) {
  CGRT_RETURN_IF_ERROR(check_enum("transpose_heads", "op", desc.op, TransposeHeadsOp::kSplit));
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_enum(name, "rows", desc.rows, TokenRows::kPacked));
  CGRT_RETURN_IF_ERROR(check_float(name, desc.type));
  const std::pair<const char*, std::uint64_t> sizes[] = {{"sequences", desc.sequences},
                                                         {"positions", desc.positions},
                                                         {"heads", desc.heads},
                                                         {"head_size", desc.head_size},
                                                         {"tokens", desc.rows == TokenRows::kPacked ? desc.tokens : 1}};
  for (const auto& [field, size] : sizes) {
    if (size >= 1 && size <= kMaxCount) continue;
    return refuse(name, absl::StrCat(field, " is ", size, "; it can be 1 to ", kMaxCount, "."));
  }
  if (desc.heads <= kMaxCount / desc.head_size) return absl::OkStatus();
  return refuse(name, absl::StrCat("a token has ", desc.heads, " heads of ", desc.head_size, " elements, more than ",
                                   kMaxCount, " in all."));
}

// Narrow packs need more in flight. Wide ones gain by it where that makes one wave of several, and where rows without
// padding are written, as fewer blocks are then without any.
std::uint32_t positions_of(const TransposeHeadsDesc& desc, std::uint32_t pack_bytes, std::uint64_t sms) {
  if (pack_bytes != 16) return 4;
  if (desc.op == TransposeHeadsOp::kMerge && desc.rows == TokenRows::kPacked) return 2;
  const std::uint64_t row_packs = desc.heads * desc.head_size * size_of(desc.type) / pack_bytes;
  const std::uint64_t rows = desc.sequences * desc.positions;
  const auto is_wave = [&](std::uint64_t positions, std::uint64_t blocks) {  // blocks: of a multiprocessor
    const auto block = static_cast<std::uint64_t>(transpose_block(static_cast<std::uint32_t>(positions)));
    return rows <= sms * blocks * block * positions / row_packs;
  };
  return !is_wave(1, 8) && is_wave(kTransposeDeep, kTransposeDeepBlocks) ? kTransposeDeep : 1;
}

// How many bytes of narrow packs a thread joins; 0: none, as where rows without padding are written a position has no
// fixed place. Heads of whole 16 bytes seldom end among those of a thread.
std::uint32_t joined_bytes_of(const TransposeHeadsDesc& desc, std::uint32_t pack_bytes) {
  if (pack_bytes == 16 || (desc.op == TransposeHeadsOp::kMerge && desc.rows == TokenRows::kPacked)) return 0;
  const std::uint64_t head_bytes = desc.head_size * size_of(desc.type);
  const std::uint32_t bytes = pack_bytes == 2 && head_bytes % 16 != 0 ? 8 : 16;
  const std::uint64_t max_rows = kMaxCount * pack_bytes / (desc.heads * head_bytes);
  return head_bytes >= bytes && desc.sequences <= max_rows / desc.positions ? bytes : 0;
}

// Whether a position of padded rows has whole blocks of packs, and the grid a place for each position and sequence.
bool is_whole(const TransposeHeadsDesc& desc, const TransposeShape& shape) {
  constexpr std::uint64_t kMaxPlaces = 65535;  // of a grid's second and third dimension
  if (shape.bytes != 16 || shape.positions != 1 || desc.rows == TokenRows::kPacked) return false;
  const std::uint64_t row_bytes = desc.heads * desc.head_size * size_of(desc.type);
  return row_bytes % (transpose_block(1) * 16) == 0 && desc.positions <= kMaxPlaces && desc.sequences <= kMaxPlaces;
}

absl::StatusOr<TransposeHeadsPlan::Launch> launch_of(ContextRef context, const TransposeHeadsDesc& desc,
                                                     std::uint32_t alignment) {
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const auto size = static_cast<std::uint32_t>(size_of(desc.type));
  TransposeShape shape{std::max(alignment, size), 0, 1};
  while (desc.head_size * size % shape.bytes != 0) shape.bytes /= 2;
  shape.joined_bytes = joined_bytes_of(desc, shape.bytes);
  if (shape.joined_bytes == 0) shape.positions = positions_of(desc, shape.bytes, static_cast<std::uint64_t>(sms));
  const auto block = static_cast<std::uint64_t>(transpose_block(shape.positions));
  shape.is_whole = is_whole(desc, shape);
  TransposeHeadsPlan::Launch launch{transpose_heads_kernel(desc.op, shape), {}, 0, 0};
  launch.head_packs = static_cast<std::uint32_t>(desc.head_size) / (shape.bytes / size);
  const std::uint64_t row_packs = desc.heads * launch.head_packs;
  launch.tiles = ceil_divide(desc.positions, shape.positions);
  // A block more than there are tiles for, as a Divisor takes them.
  const std::uint64_t max_tiles = std::min(kMaxCount - block, kMaxCount * block / row_packs);
  if (launch.tiles > max_tiles / desc.sequences) {
    return refuse(to_string(desc.op), absl::StrCat(desc.sequences, " sequences of ", desc.positions, " positions are ",
                                                   launch.tiles, " tiles each; all together can be ", max_tiles, "."));
  }
  std::uint64_t threads = desc.sequences * launch.tiles * row_packs;
  if (shape.joined_bytes != 0) {
    // The first and the last may have some only.
    threads = threads / (shape.joined_bytes / shape.bytes) + 2;
  }
  launch.config = {.grid = ceil_divide(threads, block), .block = static_cast<std::uint32_t>(block)};
  if (shape.is_whole) {
    launch.config.grid = {static_cast<std::uint32_t>(row_packs / block), launch.tiles,
                          static_cast<std::uint32_t>(desc.sequences)};
  }
  CGRT_RETURN_IF_ERROR(preload(launch.kernel, context));
  return launch;
}

}  // namespace

absl::StatusOr<TransposeHeadsPlan> plan_transpose_heads(ContextRef context, const TransposeHeadsDesc& desc) {
  CGRT_RETURN_IF_ERROR(check(desc));
  TransposeHeadsPlan plan{desc, {}};
  std::uint32_t alignment = 16;
  for (TransposeHeadsPlan::Launch& launch : plan.by_alignment) {
    CGRT_ASSIGN_OR_RETURN(launch, launch_of(context, desc, alignment));
    alignment /= 2;
  }
  return plan;
}

absl::Status launch_transpose_heads(LaunchTarget target, const TransposeHeadsPlan& plan,
                                    const TransposeHeadsArgs& args) {
  const TransposeHeadsDesc& desc = plan.desc;
  const char* const name = to_string(desc.op);
  CGRT_RETURN_IF_ERROR(check_array(name, "out", args.out, desc.type));
  CGRT_RETURN_IF_ERROR(check_array(name, "in", args.in, desc.type));
  if (args.out == args.in) return refuse(name, "out is in; it cannot work in place.");
  TransposeHeadsParams params{};
  params.args = args;
  if (desc.rows == TokenRows::kPacked) {
    CGRT_RETURN_IF_ERROR(check_array(name, "offsets", args.offsets, DType::kInt32));
  } else {
    params.args.offsets = nullptr;
  }
  const std::uintptr_t bits = address_bits(args.out, args.in);
  const TransposeHeadsPlan::Launch& chosen = plan.by_alignment[bits % 16 == 0  ? 0
                                                               : bits % 8 == 0 ? 1
                                                               : bits % 4 == 0 ? 2
                                                                               : 3];
  const auto narrow = [](std::uint64_t size) { return static_cast<std::uint32_t>(size); };
  params.sequences = narrow(desc.sequences), params.positions = narrow(desc.positions);
  params.tokens = narrow(desc.tokens);
  params.packs = narrow(desc.sequences * desc.positions * desc.heads * chosen.head_packs);
  params.heads = Divisor(narrow(desc.heads));
  params.tiles = Divisor(chosen.tiles);
  params.head_packs = Divisor(chosen.head_packs);
  params.row_packs = WideDivisor(params.heads.value() * chosen.head_packs);
  return launch(target, chosen.config, chosen.kernel, params);
}

}  // namespace cgrt::kernels
