#include "cgrt_kernels/transpose_heads/kernels.h"

#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
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
      ((std::uint64_t{sequence} * p.heads + head) * p.positions + first) * head_packs + (item - head * head_packs);
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

template <class Pack, TransposeHeadsOp kOp>
void transpose_heads_on_host(HostGrid, TransposeHeadsParams p) {
  const auto* const in = static_cast<const Pack*>(p.args.in);
  auto* const out = static_cast<Pack*>(p.args.out);
  const std::uint64_t size = p.head_packs.value();
  for (std::uint64_t sequence = 0; sequence < p.sequences; ++sequence) {
    for (std::uint64_t position = 0; position < p.positions; ++position) {
      const std::int64_t row = token_row_reference(p.args.offsets, p.positions, p.tokens, sequence, position);
      for (std::uint64_t head = 0; head < p.heads; ++head) {
        const std::uint64_t in_heads = ((sequence * p.heads + head) * p.positions + position) * size;
        const std::uint64_t in_rows = row < 0 ? 0 : (static_cast<std::uint64_t>(row) * p.heads + head) * size;
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

template <TransposeHeadsOp kOp>
Kernel<TransposeHeadsParams> of_shape(TransposeShape shape) {
  switch (shape.bytes) {
    case 8: return of_positions<uint2, kOp, 4>();
    case 4: return of_positions<std::uint32_t, kOp, 4>();
    case 2: return of_positions<std::uint16_t, kOp, 4>();
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
