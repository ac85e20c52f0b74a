// Up to 1,024 indices, without atomics: each block sees all of them, and the warp of the first index that names a row
// adds up all that is for it, in a fixed order. All warps of its block do where many name one row.
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/kernels.h"
#include "cgrt_kernels/index/reference.h"
#include "cgrt_kernels/index/row_at.cuh"
#include "cgrt_kernels/index/row_packs.cuh"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kWarps = kGroupedBlock / 32;
constexpr std::uint32_t kMaxOfWarp = 16;  // indices that a warp adds up alone

template <std::uint32_t kCount>
struct Groups {
  uint4 rows[kMaxGrouped / 4];        // that the indices name
  std::uint16_t places[kMaxGrouped];  // numbers of indices, those of one row side by side
  std::uint32_t used;                 // places
  std::uint32_t many;                 // rows that all warps add up
  struct {
    std::uint32_t begin, end, warp;  // places, and who has the row
  } row[kWarps];
  float sums[kWarps][kCount][32];  // of each warp
};

// A warp has an index and a slice of its row: 2^lane_bits lanes side by side have a pack each. Its other lanes have the
// same columns of other indices that name the row.
template <class T, class Pack>
__global__ void __launch_bounds__(kGroupedBlock, 2) add_grouped(GroupedParams p) {
  constexpr bool kIsSpread = kIsSpreadPack<T, Pack>;
  constexpr std::uint32_t kCount = sizeof(Pack) / sizeof(T);
  constexpr std::uint32_t kAhead = sizeof(Pack) == 16 || kIsSpread ? 4 : 8;  // rows of a lane in flight
  __shared__ Groups<kCount> shared;
  const std::uint32_t in_warp = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t lanes = 1u << p.lane_bits, lane = in_warp & (lanes - 1), group = in_warp >> p.lane_bits;
  const std::uint32_t number = p.slices.quotient(blockIdx.x), slice = blockIdx.x - number * p.slices.value();
  const std::uint32_t own = number * kWarps + warp;
  const std::uint32_t column = slice * lanes * kCount + (kIsSpread ? lane : lane * kCount);
  const bool has_column = column < p.columns;
  const auto load = [&](Pack& pack, const T* array, std::uint32_t row) {
    if (has_column) load_pack(pack, array + std::uint64_t{row} * p.columns + column, column, lanes, p.columns);
  };
  const T* const in = static_cast<const T*>(p.in);
  T* const out = static_cast<T*>(p.out);
  if (threadIdx.x == 0) shared.used = 0, shared.many = 0;
  let_dependents_start();
  wait_for_predecessors();

  const std::uint32_t row = own < p.count ? row_at(p, own) : kNoRow;
  Pack first = {}, held = {};
  if (own < p.count && group == 0) load(first, in, own);
  // 128 indices at a time, four to a lane.
  const std::uint32_t rounds = (p.count + 127) / 128;
  for (std::uint32_t i = threadIdx.x; i < rounds * 128; i += kGroupedBlock) {
    reinterpret_cast<std::uint32_t*>(shared.rows)[i] = i < p.count ? row_at(p, i) : kNoRow;
  }
  if (row != kNoRow && group == 0) load(held, out, row);
  __syncthreads();
  std::uint32_t equal = 0;  // bit 4 round + i: whether the lane's index i of that round names the row
#pragma unroll 4
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const uint4 four = shared.rows[round * 32 + in_warp];
    const std::uint32_t bits =
        (four.x == row ? 1 : 0) | (four.y == row ? 2 : 0) | (four.z == row ? 4 : 0) | (four.w == row ? 8 : 0);
    equal |= bits << 4 * round;
  }
  const std::uint32_t own_in_round = own % 128, bit_of_round = own / 128 * 4;
  const std::uint32_t before = own_in_round > in_warp * 4 ? min(own_in_round - in_warp * 4, 4u) : 0;  // of the lane's
  const std::uint32_t earlier = ((1u << bit_of_round) - 1) | ((1u << before) - 1) << bit_of_round;
  const bool adds = row != kNoRow && !__any_sync(~0u, (equal & earlier) != 0);
  if (own_in_round / 4 == in_warp) equal &= ~(1u << (bit_of_round + own % 4));
  const std::uint32_t of_lane = __popc(equal), others = __reduce_add_sync(~0u, of_lane);
  const std::uint64_t to = std::uint64_t{row} * p.columns + column;
  float sums[kCount];
  unpack(first, sums);
  // All that stands at these places, to the sums of each group.
  const auto add_places = [&](float(&all)[kCount], std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t groups = 32 >> p.lane_bits;
    for (std::uint32_t at = begin + group; at < end; at += kAhead * groups) {
      Pack pack[kAhead];
#pragma unroll
      for (std::uint32_t i = 0; i < kAhead; ++i) {
        if (at + i * groups < end) load(pack[i], in, shared.places[at + i * groups]);
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kAhead; ++i) {
        if (at + i * groups >= end) break;
        float values[kCount];
        unpack(pack[i], values);
#pragma unroll
        for (std::uint32_t k = 0; k < kCount; ++k) all[k] += values[k];
      }
    }
    for (std::uint32_t step = lanes; step < 32; step *= 2) {
#pragma unroll
      for (float& sum : all) sum += __shfl_xor_sync(~0u, sum, step);
    }
  };
  if (adds && others > 0) {
    std::uint32_t place = of_lane;
#pragma unroll
    for (std::uint32_t step = 1; step < 32; step *= 2) {
      const std::uint32_t other = __shfl_up_sync(~0u, place, step);
      if (in_warp >= step) place += other;
    }
    std::uint32_t begin = 0;
    if (in_warp == 0) begin = atomicAdd(&shared.used, others);
    begin = __shfl_sync(~0u, begin, 0), place += begin - of_lane;
    for (std::uint32_t left = equal; left != 0; left &= left - 1) {
      const auto bit = static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1);
      shared.places[place++] = static_cast<std::uint16_t>(bit / 4 * 128 + in_warp * 4 + bit % 4);
    }
    __syncwarp();
    if (others <= kMaxOfWarp) {
      add_places(sums, begin, begin + others);
    } else if (in_warp == 0) {
      shared.row[atomicAdd(&shared.many, 1)] = {begin, begin + others, warp};
    }
  }
  __syncthreads();
  for (std::uint32_t i = 0; i < shared.many; ++i) {
    const auto of = shared.row[i];
    const std::uint32_t share = (of.end - of.begin + kWarps - 1) / kWarps, begin = of.begin + warp * share;
    float part[kCount] = {};
    add_places(part, begin, min(begin + share, of.end));
#pragma unroll
    for (std::uint32_t k = 0; k < kCount; ++k) shared.sums[warp][k][in_warp] = part[k];
    __syncthreads();
    if (warp == of.warp) {
#pragma unroll
      for (std::uint32_t k = 0; k < kCount; ++k) {
        for (const auto& of_warp : shared.sums) sums[k] += of_warp[k][in_warp];
      }
    }
    __syncthreads();
  }
  if (!adds || !has_column || group != 0) return;
  float values[kCount];
  unpack(held, values);
#pragma unroll
  for (std::uint32_t k = 0; k < kCount; ++k) values[k] += p.alpha * sums[k];
  pack_into(held, values);
  store_pack(out + to, held, column, lanes, p.columns);
}

// Elements to which nothing is added keep their bits.
template <class T>
void add_grouped_on_host(HostGrid, GroupedParams p) {
  std::vector<double> sums(std::uint64_t{p.rows} * p.columns);
  std::vector<bool> is_named(sums.size());
  visit_indexed(
      IndexOp::kAdd, p.rows, p.columns, p.count,
      [&](std::uint64_t i) { return static_cast<std::int32_t>(row_at(p, i)); },
      [&](std::uint64_t at, std::uint64_t from) {
        sums[at] += static_cast<double>(to_float(static_cast<const T*>(p.in)[from]));
        is_named[at] = true;
      });
  auto* const out = static_cast<T*>(p.out);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double sum = static_cast<double>(to_float(out[i])) + static_cast<double>(p.alpha) * sums[i];
    if (is_named[i]) out[i] = from_float<T>(static_cast<float>(sum));
  }
}

}  // namespace

GroupedKernel add_grouped_kernel(DType type, SumPack pack) {
  return of_row_pack(type, pack, [=]<class T, class Pack>() {
    return make_kernel<add_grouped<T, Pack>, add_grouped_on_host<T>,
                       KernelResources{.registers = 64,
                                       .static_shared_bytes = sizeof(Groups<sizeof(Pack) / sizeof(T)>),
                                       .max_threads = kGroupedBlock}>();
  });
}

}  // namespace cgrt::kernels
