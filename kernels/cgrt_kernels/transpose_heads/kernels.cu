#include "cgrt_kernels/transpose_heads/kernels.h"

#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/map.cuh"
#include "cgrt_kernels/transpose_heads/reference.h"

namespace cgrt::kernels {
namespace {

// The rows of tokens that a sequence has.
struct Rows {
  std::uint64_t begin;
  std::uint32_t count;
};
__device__ __forceinline__ Rows rows_of(const TransposeHeadsParams& p, std::uint32_t sequence) {
  if (p.args.offsets == nullptr) return {std::uint64_t{sequence} * p.positions, p.positions};
  const std::int32_t begin = p.args.offsets[sequence],
                     end = min(p.args.offsets[sequence + 1], static_cast<std::int32_t>(p.tokens));
  if (begin < 0 || end <= begin) return {0, 0};
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)};
}

// Threads side by side have packs side by side in a row of tokens: runs of a row on one side, of heads on the other.
template <class Pack, TransposeHeadsOp kOp, std::uint32_t kPositions>
__global__ void __launch_bounds__(transpose_block(kPositions))
    transpose_heads(const __grid_constant__ TransposeHeadsParams p) {
  const auto [tile, item] = p.row_packs.divide(std::uint64_t{blockIdx.x} * transpose_block(kPositions) + threadIdx.x);
  const std::uint32_t head = p.head_packs.quotient(item);
  const std::uint32_t sequence = p.tiles.quotient(static_cast<std::uint32_t>(tile));
  const std::uint32_t first = (static_cast<std::uint32_t>(tile) - sequence * p.tiles.value()) * kPositions;
  const std::uint64_t head_packs = p.head_packs.value(), row_packs = p.row_packs.value();
  const std::uint64_t in_heads =
      ((std::uint64_t{sequence} * p.heads.value() + head) * p.positions + first) * head_packs +
      (item - head * head_packs);
  wait_for_predecessors();
  let_dependents_start();
  if (sequence >= p.sequences) return;

  const Rows rows = rows_of(p, sequence);
  const std::uint64_t in_rows = (rows.begin + first) * row_packs + item;
  constexpr bool kIsMerge = kOp == TransposeHeadsOp::kMerge;
  const Pack* const from = static_cast<const Pack*>(p.args.in) + (kIsMerge ? in_heads : in_rows);
  Pack* const to = static_cast<Pack*>(p.args.out) + (kIsMerge ? in_rows : in_heads);
  const std::uint64_t from_step = kIsMerge ? head_packs : row_packs, to_step = kIsMerge ? row_packs : head_packs;
  Pack packs[kPositions];
#pragma unroll
  for (std::uint32_t i = 0; i < kPositions; ++i) {
    packs[i] = first + i < min(rows.count, p.positions) ? from[i * from_step] : Pack{};
  }
  const std::uint32_t written = kIsMerge ? min(rows.count, p.positions) : p.positions;
#pragma unroll
  for (std::uint32_t i = 0; i < kPositions; ++i) {
    if (first + i < written) to[i * to_step] = packs[i];
  }
}

// Of padded rows of tokens that are whole blocks, of which the grid has one for each position and sequence. Nothing is
// divided but for the head: small arrays take 7 % less than with transpose_heads on an H100.
template <TransposeHeadsOp kOp>
__global__ void __launch_bounds__(transpose_block(1))
    transpose_heads_whole(const __grid_constant__ TransposeHeadsParams p) {
  const std::uint32_t position = blockIdx.y, sequence = blockIdx.z;
  const std::uint32_t item = blockIdx.x * transpose_block(1) + threadIdx.x, head = p.head_packs.quotient(item);
  const std::uint64_t in_heads =
      ((std::uint64_t{sequence} * p.heads.value() + head) * p.positions + position) * p.head_packs.value() +
      (item - head * p.head_packs.value());
  const std::uint64_t in_rows =
      (std::uint64_t{sequence} * p.positions + position) * (gridDim.x * transpose_block(1)) + item;
  constexpr bool kIsMerge = kOp == TransposeHeadsOp::kMerge;
  const uint4* const from = static_cast<const uint4*>(p.args.in) + (kIsMerge ? in_heads : in_rows);
  uint4* const to = static_cast<uint4*>(p.args.out) + (kIsMerge ? in_rows : in_heads);
  wait_for_predecessors();
  let_dependents_start();
  *to = *from;
}

// A head of a position.
template <class Unit>
struct Head {
  const Unit* in;
  bool is_there;
};
// That which is `index`-th in the output.
template <class Unit, TransposeHeadsOp kOp>
__device__ __forceinline__ Head<Unit> head_at(const TransposeHeadsParams& p, std::uint32_t index) {
  const Unit* const in = static_cast<const Unit*>(p.args.in);
  const std::uint64_t head_units = p.head_packs.value();
  if constexpr (kOp == TransposeHeadsOp::kMerge) {
    const std::uint32_t token = p.heads.quotient(index), head = index - token * p.heads.value();
    const std::uint32_t sequence = p.tiles.quotient(token), position = token - sequence * p.positions;
    return {in + ((std::uint64_t{sequence} * p.heads.value() + head) * p.positions + position) * head_units, true};
  } else {
    const std::uint32_t sequence_head = p.tiles.quotient(index), position = index - sequence_head * p.positions;
    const std::uint32_t sequence = p.heads.quotient(sequence_head), head = sequence_head - sequence * p.heads.value();
    const Rows rows = rows_of(p, sequence);
    return {in + ((rows.begin + position) * p.heads.value() + head) * head_units, position < rows.count};
  }
}

// Of arrays with units of less than 16 bytes: a thread stores some side by side, of one head, or of one and the next.
template <class Unit, TransposeHeadsOp kOp, int kBytes>
__global__ void __launch_bounds__(transpose_block(1))
    transpose_heads_joined(const __grid_constant__ TransposeHeadsParams p) {
  constexpr std::uint32_t kSize = kBytes / sizeof(Unit);
  Unit* const out = static_cast<Unit*>(p.args.out);
  const std::uint32_t beyond = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out) / sizeof(Unit)) % kSize;
  // Before the first, where it wraps, and at the end some are not in the array.
  const std::uint32_t begin = (blockIdx.x * transpose_block(1) + threadIdx.x) * kSize - beyond;
  const std::uint32_t head_units = p.head_packs.value();
  wait_for_predecessors();
  let_dependents_start();
  if (begin < p.packs && begin + kSize <= p.packs) {
    const std::uint32_t index = p.head_packs.quotient(begin), left = (index + 1) * head_units - begin;
    Head<Unit> head = head_at<Unit, kOp>(p, index), next = head;
    head.in += head_units - left;
    if (left < kSize) next = head_at<Unit, kOp>(p, index + 1), next.in -= left;
    Pack<Unit, kSize> units;
#pragma unroll
    for (std::uint32_t i = 0; i < kSize; ++i) {
      const bool is_first = i < left;
      units.of[i] = (is_first ? head.is_there : next.is_there) ? (is_first ? head.in : next.in)[i] : Unit{};
    }
    internal::store_whole_pack(out + begin, units);
    return;
  }
  for (std::uint32_t i = 0; i < kSize; ++i) {
    const std::uint32_t at = begin + i;
    if (at >= p.packs) continue;
    const std::uint32_t index = p.head_packs.quotient(at);
    const Head<Unit> head = head_at<Unit, kOp>(p, index);
    out[at] = head.is_there ? head.in[at - index * head_units] : Unit{};
  }
}

template <class Pack, TransposeHeadsOp kOp>
void transpose_heads_on_host(HostGrid, TransposeHeadsParams p) {
  const auto* const in = static_cast<const Pack*>(p.args.in);
  auto* const out = static_cast<Pack*>(p.args.out);
  const std::uint64_t size = p.head_packs.value();
  for (std::uint64_t sequence = 0; sequence < p.sequences; ++sequence) {
    for (std::uint64_t position = 0; position < p.positions; ++position) {
      const std::int64_t row = token_row_reference(p.args.offsets, p.positions, p.tokens, sequence, position);
      for (std::uint64_t head = 0; head < p.heads.value(); ++head) {
        const std::uint64_t in_heads = ((sequence * p.heads.value() + head) * p.positions + position) * size;
        const std::uint64_t in_rows = row < 0 ? 0 : (static_cast<std::uint64_t>(row) * p.heads.value() + head) * size;
        for (std::uint64_t i = 0; i < size; ++i) {
          if constexpr (kOp == TransposeHeadsOp::kSplit) {
            out[in_heads + i] = row < 0 ? Pack{} : in[in_rows + i];
          } else if (row >= 0) {
            out[in_rows + i] = in[in_heads + i];
          }
        }
      }
    }
  }
}

template <class Pack, TransposeHeadsOp kOp, std::uint32_t kPositions>
Kernel<TransposeHeadsParams> of_positions() {
  return make_kernel<transpose_heads<Pack, kOp, kPositions>, transpose_heads_on_host<Pack, kOp>,
                     KernelResources{.registers = 56, .max_threads = transpose_block(kPositions)}>();
}

template <class Unit, TransposeHeadsOp kOp, int kBytes>
Kernel<TransposeHeadsParams> joined() {
  return make_kernel<transpose_heads_joined<Unit, kOp, kBytes>, transpose_heads_on_host<Unit, kOp>,
                     KernelResources{.registers = 56, .max_threads = transpose_block(1)}>();
}

template <TransposeHeadsOp kOp>
Kernel<TransposeHeadsParams> of_shape(TransposeShape shape) {
  if (shape.joined_bytes != 0) {
    switch (shape.bytes) {
      case 8: return joined<uint2, kOp, 16>();
      case 4: return joined<std::uint32_t, kOp, 16>();
      default: return shape.joined_bytes == 16 ? joined<std::uint16_t, kOp, 16>() : joined<std::uint16_t, kOp, 8>();
    }
  }
  switch (shape.bytes) {
    case 8: return of_positions<uint2, kOp, 4>();
    case 4: return of_positions<std::uint32_t, kOp, 4>();
    case 2: return of_positions<std::uint16_t, kOp, 4>();
  }
  if (shape.is_whole) {
    return make_kernel<transpose_heads_whole<kOp>, transpose_heads_on_host<uint4, kOp>,
                       KernelResources{.registers = 56, .max_threads = transpose_block(1)}>();
  }
  if (shape.positions == kTransposeDeep) return of_positions<uint4, kOp, kTransposeDeep>();
  if constexpr (kOp == TransposeHeadsOp::kMerge) {
    if (shape.positions == 2) return of_positions<uint4, kOp, 2>();
  }
  return of_positions<uint4, kOp, 1>();
}

}  // namespace

Kernel<TransposeHeadsParams> transpose_heads_kernel(TransposeHeadsOp op, TransposeShape shape) {
  return op == TransposeHeadsOp::kMerge ? of_shape<TransposeHeadsOp::kMerge>(shape)
                                        : of_shape<TransposeHeadsOp::kSplit>(shape);
}

}  // namespace cgrt::kernels
