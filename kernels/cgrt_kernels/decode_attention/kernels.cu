#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/cluster_arrival.cuh"
#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/exp2.cuh"
#include "cgrt_kernels/common/matrix_load.cuh"
#include "cgrt_kernels/common/mma.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/decode_attention/kernels.h"
#include "cgrt_kernels/decode_attention/reference.h"

namespace cgrt::kernels {
namespace {

constexpr float kLn2 = 0.6931471805599453f;
constexpr std::uint32_t kRows = 16;  // of queries in a product; those behind the group are 0

__host__ __device__ std::uint32_t first_of(const DecodeAttentionParams& p, std::uint32_t length) {
  return p.window != 0 && length > p.window ? length - p.window : 0;
}

// Of four neighbouring elements of a head: their sum, weighted by 2^(score - max), and the sum of the weights.
struct Part {
  float max, sum;
  float4 values;
};
__device__ __forceinline__ Part no_part() { return {-INFINITY, 0, {0, 0, 0, 0}}; }
template <int kCount>
__device__ __forceinline__ void merge_into(Part& all, const Part (&parts)[kCount]) {
  float max = all.max;
#pragma unroll
  for (int i = 0; i < kCount; ++i) max = fmaxf(max, parts[i].max);
  const float base = finite_or_zero(max), correction = exp2_of(all.max - base);
  all.max = max;
  all.sum *= correction;
  all.values.x *= correction, all.values.y *= correction, all.values.z *= correction, all.values.w *= correction;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float weight = exp2_of(parts[i].max - base);
    all.sum += weight * parts[i].sum;
    all.values.x += weight * parts[i].values.x, all.values.y += weight * parts[i].values.y;
    all.values.z += weight * parts[i].values.z, all.values.w += weight * parts[i].values.w;
  }
}
// Of parts first, first + step, ... below `count`, in this order; eight loads are in flight.
template <class Load>
__device__ __forceinline__ Part merged(std::uint32_t first, std::uint32_t step, std::uint32_t count, Load load) {
  constexpr std::uint32_t kBatch = 8;
  Part all = no_part();
  for (std::uint32_t begin = first; begin < count; begin += kBatch * step) {
    Part parts[kBatch];
#pragma unroll
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      parts[i] = begin + i * step < count ? load(begin + i * step) : no_part();
    }
    merge_into(all, parts);
  }
  return all;
}

template <class T>
__device__ __forceinline__ std::uint32_t word_of(float a, float b) {
  std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162> pair;
  from_float2(pair, {a, b});
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// Rows of a head, in shared memory. The pieces of 16 bytes of a row change places by its number, so that those in one
// place of eight rows are in different banks.
template <int kHeadSize>
struct Tile {
  static constexpr std::uint32_t kRowBytes = kHeadSize * 2, kPieces = kRowBytes / 16, kBytes = kDecodeTile * kRowBytes;
  static __device__ __forceinline__ std::uint32_t place(std::uint32_t row, std::uint32_t piece) {
    return row * kRowBytes + (piece ^ row % 8) * 16;
  }
};

// What one warp has computed of its positions, as mma.m16n8k16 leaves it: a lane has rows lane / 4 and that plus 8.
template <int kHeadSize>
struct Sums {
  float max[2], sum[2];  // `sum`: of the columns that the lane has
  float values[kHeadSize / 8][4];
};

// The same in shared memory, rows apart by more than their elements, so that rows are in different banks.
template <int kHeadSize>
struct WarpPart {
  float values[kRows][kHeadSize + 8];
  float max[kRows], sum[kRows];

  __device__ __forceinline__ void store(const Sums<kHeadSize>& sums, std::uint32_t lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t row = lane / 4 + half * 8;
      const float sum = reduce_lanes<4>(sums.sum[half]);
      if (lane % 4 == 0) this->max[row] = sums.max[half], this->sum[row] = sum;
#pragma unroll
      for (int i = 0; i < kHeadSize / 8; ++i) {
        *reinterpret_cast<float2*>(&values[row][i * 8 + lane % 4 * 2]) = {sums.values[i][2 * half],
                                                                          sums.values[i][2 * half + 1]};
      }
    }
  }
  __device__ __forceinline__ Part part(std::uint32_t row, std::uint32_t column) const {
    return {max[row], sum[row], *reinterpret_cast<const float4*>(&values[row][column])};
  }
};

// Copies a warp's tiles. Lanes 0 to 15 know where the rows of the next tile are.
template <class T, int kHeadSize>
class Reader {
 public:
  __device__ __forceinline__ Reader(const DecodeAttentionParams& p, std::uint32_t sequence, std::uint32_t kv_head,
                                    std::uint32_t end)
      : p_(p), sequence_(sequence), end_(end), lane_(threadIdx.x % 32) {
    k_ = static_cast<const T*>(p.args.k) + kv_head * p.cache.head_stride;
    v_ = static_cast<const T*>(p.args.v) + kv_head * p.cache.head_stride;
  }

  // The block that has this lane's row of the tile at a position.
  __device__ __forceinline__ std::int32_t block_at(std::uint32_t position) const {
    position += lane_ % kDecodeTile;
    return position < end_ ? block_of(p_.cache, p_.args.block_table, sequence_, position) : -1;
  }

  __device__ __forceinline__ void copy(unsigned char* stage, std::uint32_t position, std::int32_t block) const {
    using Rows = Tile<kHeadSize>;
    constexpr std::uint32_t kRowsAtOnce = 32 / Rows::kPieces, kSteps = kDecodeTile / kRowsAtOnce;
    const std::uint32_t row = lane_ / Rows::kPieces, piece = lane_ % Rows::kPieces;
    const auto copy_pieces = [&](std::uint32_t step, std::uint64_t from, bool is_there) {
      // As Rows::place(row + step * kRowsAtOnce, piece), of which the last factor is a power of two.
      unsigned char* const to = stage + row * Rows::kRowBytes + (piece ^ row ^ step * kRowsAtOnce % 8) * 16 +
                                step * kRowsAtOnce * Rows::kRowBytes;
      copy_or_zero_asynchronously(to, k_ + from, is_there);
      copy_or_zero_asynchronously(to + Rows::kBytes, v_ + from, is_there);
    };
    if (p_.cache.layout == KvLayout::kDense) {
      std::uint64_t from =
          sequence_ * p_.cache.block_stride + (position + row) * p_.cache.position_stride + piece * (16 / sizeof(T));
#pragma unroll
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        copy_pieces(step, from, position + row + step * kRowsAtOnce < end_);
        from += kRowsAtOnce * p_.cache.position_stride;
      }
      return;
    }
    const std::uint64_t row_offset = offset_in(p_.cache, block, position + lane_ % kDecodeTile);
#pragma unroll
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const std::uint64_t offset = __shfl_sync(~0u, row_offset, static_cast<int>(row + step * kRowsAtOnce));
      const bool is_there = offset != kNowhere;
      copy_pieces(step, (is_there ? offset : 0) + piece * (16 / sizeof(T)), is_there);
    }
  }

 private:
  const DecodeAttentionParams& p_;
  const T *k_, *v_;
  std::uint32_t sequence_, end_, lane_;
};

// One tile, whose first `count` rows count.
template <class T, int kHeadSize>
__device__ __forceinline__ void add_tile(Sums<kHeadSize>& sums, const std::uint32_t (&q)[kHeadSize / 16][4],
                                         const unsigned char* stage, std::uint32_t count, float scale) {
  using Rows = Tile<kHeadSize>;
  const std::uint32_t lane = threadIdx.x % 32;
  float scores[2][4] = {};
#pragma unroll
  for (std::uint32_t i = 0; i < kHeadSize / 16; ++i) {
    std::uint32_t k[4];
    load_matrices(k, stage + Rows::place(lane % 8 + lane / 16 * 8, 2 * i + lane / 8 % 2));
    multiply_add<T>(scores[0], q[i][0], q[i][1], q[i][2], q[i][3], k[0], k[1]);
    multiply_add<T>(scores[1], q[i][0], q[i][1], q[i][2], q[i][3], k[2], k[3]);
  }
#pragma unroll
  for (std::uint32_t i = 0; i < 8; ++i) scores[i / 4][i % 4] *= scale;
  if (count < kDecodeTile) {
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= count) scores[i / 4][i % 4] = -INFINITY;
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max =
        fmaxf(fmaxf(scores[0][2 * half], scores[0][2 * half + 1]), fmaxf(scores[1][2 * half], scores[1][2 * half + 1]));
    max = fmaxf(max, shuffle(max, 1));
    max = fmaxf(fmaxf(max, shuffle(max, 2)), sums.max[half]);
    const float base = finite_or_zero(max), correction = exp2_of(sums.max[half] - base);
    sums.max[half] = max;
    sums.sum[half] *= correction;
#pragma unroll
    for (int i = 0; i < kHeadSize / 8; ++i)
      sums.values[i][2 * half] *= correction, sums.values[i][2 * half + 1] *= correction;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 2 * half; j < 2 * half + 2; ++j) {
        scores[i][j] = exp2_of(scores[i][j] - base);
        sums.sum[half] += scores[i][j];
      }
    }
  }
  const std::uint32_t weights[4] = {word_of<T>(scores[0][0], scores[0][1]), word_of<T>(scores[0][2], scores[0][3]),
                                    word_of<T>(scores[1][0], scores[1][1]), word_of<T>(scores[1][2], scores[1][3])};
#pragma unroll
  for (std::uint32_t i = 0; i < kHeadSize / 16; ++i) {
    std::uint32_t v[4];
    load_transposed_matrices(v, stage + Rows::kBytes + Rows::place(lane % 16, 2 * i + lane / 16));
    multiply_add<T>(sums.values[2 * i], weights[0], weights[1], weights[2], weights[3], v[0], v[1]);
    multiply_add<T>(sums.values[2 * i + 1], weights[0], weights[1], weights[2], weights[3], v[2], v[3]);
  }
}

template <class T, int kHeadSize>
__device__ __forceinline__ void finish(const DecodeAttentionParams& p, std::uint64_t head, std::uint32_t column,
                                       const Part& part) {
  const float inverse = 1 / part.sum;
  const uint2 words = {word_of<T>(part.values.x * inverse, part.values.y * inverse),
                       word_of<T>(part.values.z * inverse, part.values.w * inverse)};
  *reinterpret_cast<uint2*>(static_cast<T*>(p.args.out) + head * kHeadSize + column) = words;
  if (column == 0 && p.args.lse != nullptr) p.args.lse[head] = part.max * kLn2 + logf(part.sum);
}

// Parts of splits in the workspace: their values, then their maxima and sums.
template <int kHeadSize>
struct SplitParts {
  float4* values;
  float2* sums;
  std::uint32_t group;

  __device__ __forceinline__ SplitParts(const DecodeAttentionParams& p, std::uint64_t first)
      : values(p.part_values + first * p.group * (kHeadSize / 4)),
        sums(p.part_sums + first * p.group),
        group(p.group) {}
  // `slot`: four elements of the heads of a group.
  __device__ __forceinline__ void store(std::uint32_t split, std::uint32_t slot, const Part& part) const {
    values[split * (group * (kHeadSize / 4)) + slot] = part.values;
    if (slot % (kHeadSize / 4) == 0) sums[split * group + slot / (kHeadSize / 4)] = {part.max, part.sum};
  }
  __device__ __forceinline__ Part load(std::uint32_t split, std::uint32_t slot) const {
    const float2 sum = __ldcg(sums + split * group + slot / (kHeadSize / 4));
    return {sum.x, sum.y, __ldcg(values + split * (group * (kHeadSize / 4)) + slot)};
  }
};

#if __CUDA_ARCH__ >= 900
// The same in shared memory of the blocks of a cluster, which has the splits. Each block merges the slots of which it
// gets all parts.
template <int kHeadSize>
class SentParts {
 public:
  // `memory`: of decode_sent_bytes. By all threads of all blocks.
  __device__ __forceinline__ static void begin() {
    if (threadIdx.x == 0) {
      barrier().initialize();
      make_barriers_visible_to_cluster();
    }
    __syncwarp();
    arrive_in_cluster();
  }
  __device__ __forceinline__ SentParts(unsigned char* memory, std::uint32_t slots, std::uint32_t splits)
      : slots_(slots),
        splits_(splits),
        max_slots_((slots + splits - 1) / splits),
        inverse_((65536 + splits - 1) / splits) {
    values_ = reinterpret_cast<float4*>(memory);
    sums_ = reinterpret_cast<float2*>(values_ + splits * max_slots_);
  }
  // By all threads, before the first is sent.
  __device__ __forceinline__ void expect(std::uint32_t split) const {
    if (threadIdx.x == 0) barrier().expect(slots_of(split) * splits_ * (sizeof(float4) + sizeof(float2)));
    wait_for_cluster();  // all blocks have begun
  }
  __device__ __forceinline__ void send(std::uint32_t split, std::uint32_t slot, const Part& part) const {
    const std::uint32_t index = slot * inverse_ >> 16, block = slot - index * splits_, at = split * max_slots_ + index;
    barrier().send(block, values_ + at, part.values);
    barrier().send(block, sums_ + at, make_float2(part.max, part.sum));
  }
  // Of the block with that split: `index` stands for slot index * splits + split.
  __device__ __forceinline__ std::uint32_t slots_of(std::uint32_t split) const {
    return split < slots_ ? (slots_ - split - 1) / splits_ + 1 : 0;
  }
  __device__ __forceinline__ void wait() const { barrier().wait_for_cluster(0); }
  __device__ __forceinline__ Part load(std::uint32_t split, std::uint32_t index) const {
    const std::uint32_t at = split * max_slots_ + index;
    return {sums_[at].x, sums_[at].y, values_[at]};
  }

 private:
  static __device__ __forceinline__ BulkBarrier& barrier() {
    __shared__ BulkBarrier barrier;
    return barrier;
  }
  float4* values_;
  float2* sums_;
  std::uint32_t slots_, splits_, max_slots_;
  std::uint32_t inverse_;  // times 2^16, rounded up: quotients of numbers below 2^13 by at most 8 are exact
};
#endif

template <class T, int kHeadSize, int kWarps>
__global__ void __launch_bounds__(kWarps * 32) decode_attention(const __grid_constant__ DecodeAttentionParams p) {
  using Rows = Tile<kHeadSize>;
  constexpr std::uint32_t kStages = decode_stages(kHeadSize), kStageBytes = 2 * Rows::kBytes;
  constexpr std::uint32_t kRingBytes = decode_ring_bytes(kHeadSize);
  constexpr std::uint32_t kThreads = kWarps * 32;
  constexpr std::uint32_t kQuads = kHeadSize / 4;
  static_assert(sizeof(WarpPart<kHeadSize>) <= kRingBytes);
  extern __shared__ __align__(128) unsigned char shared[];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t pair = p.splits.quotient(blockIdx.x), split = blockIdx.x - pair * p.splits.value();
  const std::uint32_t sequence = p.kv_heads.quotient(pair), kv_head = pair - sequence * p.kv_heads.value();
  const std::uint64_t head = std::uint64_t{pair} * p.group;
  const std::uint32_t slots = p.group * kQuads;  // of four elements
  unsigned char* const ring = shared + warp * kRingBytes;
#if __CUDA_ARCH__ >= 900
  if (p.is_cluster) SentParts<kHeadSize>::begin();
#endif
  wait_for_predecessors();

  // The queries pass through the last stage of the first ring.
  unsigned char* const q_rows = shared + (kStages - 1) * kStageBytes;
  const T* const q_heads =
      static_cast<const T*>(p.args.q) + sequence * p.q_stride + std::uint64_t{kv_head} * (p.group * kHeadSize);
  for (std::uint32_t i = threadIdx.x; i < kRows * Rows::kPieces; i += kThreads) {
    const std::uint32_t row = i / Rows::kPieces, piece = i % Rows::kPieces;
    const bool is_there = row < p.group;
    copy_or_zero_asynchronously(q_rows + Rows::place(row, piece),
                                q_heads + (is_there ? row : 0) * kHeadSize + piece * 8, is_there);
  }
  end_copy_group();
  const std::uint32_t length = count_at(p.args.lengths + sequence, p.cache.positions);
  const std::uint32_t first = first_of(p, length), count = length - first;
  const std::uint32_t tiles = (count + kDecodeTile - 1) / kDecodeTile;
  const std::uint32_t wanted = p.is_cluster              ? p.splits.value()
                               : count <= kDecodeUnsplit ? 1
                                                         : (count + kDecodeMinPart - 1) / kDecodeMinPart;
  const std::uint32_t splits = min(min(wanted, p.splits.value()), tiles);
  if (split >= splits) {
    wait_for_copies<0>();
#if __CUDA_ARCH__ >= 900
    if (p.is_cluster) wait_for_cluster();
#endif
    if (length != 0 || split != 0) return;
    for (std::uint32_t slot = threadIdx.x; slot < slots; slot += kThreads) {
      finish<T, kHeadSize>(p, head + slot / kQuads, slot % kQuads * 4, {-INFINITY, 1, {0, 0, 0, 0}});
    }
    return;
  }
  // Tiles go to the blocks in turn, of a block's to its warps in turn.
  const std::uint32_t own = first + (warp * splits + split) * kDecodeTile, step = kWarps * splits * kDecodeTile;
  const Reader<T, kHeadSize> reader(p, sequence, kv_head, length);
  {
    std::int32_t blocks[kStages - 1];
#pragma unroll
    for (std::uint32_t i = 0; i < kStages - 1; ++i) blocks[i] = reader.block_at(own + i * step);
#pragma unroll
    for (std::uint32_t i = 0; i < kStages - 1; ++i) {
      if (own + i * step < length) reader.copy(ring + i * kStageBytes, own + i * step, blocks[i]);
      end_copy_group();
    }
  }
  std::int32_t next_block = reader.block_at(own + (kStages - 1) * step);
  wait_for_copies<kStages - 1>();
  __syncthreads();
  std::uint32_t q[kHeadSize / 16][4];
#pragma unroll
  for (std::uint32_t i = 0; i < kHeadSize / 16; ++i) {
    load_matrices(q[i], q_rows + Rows::place(lane % 16, 2 * i + lane / 16));
  }
  __syncthreads();
#if __CUDA_ARCH__ >= 900
  const SentParts<kHeadSize> sent(shared + kWarps * kRingBytes, slots, splits);
  if (p.is_cluster) sent.expect(split);
#endif

  Sums<kHeadSize> sums{{-INFINITY, -INFINITY}, {0, 0}, {}};
  std::uint32_t stage = 0, next_stage = kStages - 1;
  for (std::uint32_t position = own; position < length; position += step) {
    wait_for_copies<kStages - 2>();
    __syncwarp();  // the copies of all lanes are here, and all have read the stage that is written next
    const std::uint32_t next = position + (kStages - 1) * step;
    if (next < length) reader.copy(ring + next_stage * kStageBytes, next, next_block);
    end_copy_group();
    next_block = reader.block_at(next + step);
    add_tile<T, kHeadSize>(sums, q, ring + stage * kStageBytes, length - position, p.scale);
    next_stage = stage;
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
  let_dependents_start();
  wait_for_copies<0>();
  __syncwarp();
  reinterpret_cast<WarpPart<kHeadSize>*>(ring)->store(sums, lane);
  __syncthreads();

  const SplitParts<kHeadSize> parts(p, std::uint64_t{pair} * p.splits.value());
  const std::uint32_t warps = min((tiles - split - 1) / splits + 1, static_cast<std::uint32_t>(kWarps));  // with tiles
  for (std::uint32_t slot = threadIdx.x; slot < slots; slot += kThreads) {
    const std::uint32_t row = slot / kQuads, column = slot % kQuads * 4;
    const Part part = merged(0, 1, warps, [&](std::uint32_t of_warp) {
      return reinterpret_cast<const WarpPart<kHeadSize>*>(shared + of_warp * kRingBytes)->part(row, column);
    });
    if (splits == 1) {
      finish<T, kHeadSize>(p, head + row, column, part);
      continue;
    }
#if __CUDA_ARCH__ >= 900
    if (p.is_cluster) {
      sent.send(split, slot, part);
      continue;
    }
#endif
    parts.store(split, slot, part);
  }
  if (splits == 1) return;
#if __CUDA_ARCH__ >= 900
  if (p.is_cluster) {
    sent.wait();
    for (std::uint32_t index = threadIdx.x; index < sent.slots_of(split); index += kThreads) {
      const std::uint32_t slot = index * splits + split;
      finish<T, kHeadSize>(p, head + slot / kQuads, slot % kQuads * 4,
                           merged(0, 1, splits, [&](std::uint32_t of_split) { return sent.load(of_split, index); }));
    }
    return;
  }
#endif
  if (!is_last_to_arrive(p.counters + pair, splits)) return;

  // Where there are more threads than slots, several have the splits of one in turn.
  const std::uint32_t teams = slots < kThreads ? kThreads / slots : 1;
  const auto of_splits = [&](std::uint32_t slot, std::uint32_t team) {
    return merged(team, teams, splits, [&](std::uint32_t of_split) { return parts.load(of_split, slot); });
  };
  if (teams == 1) {
    for (std::uint32_t slot = threadIdx.x; slot < slots; slot += kThreads) {
      finish<T, kHeadSize>(p, head + slot / kQuads, slot % kQuads * 4, of_splits(slot, 0));
    }
    return;
  }
  auto* const of_teams = reinterpret_cast<Part*>(shared);
  const std::uint32_t team = threadIdx.x / slots, slot = threadIdx.x - team * slots;
  if (team < teams) of_teams[threadIdx.x] = of_splits(slot, team);
  __syncthreads();
  if (team != 0) return;
  finish<T, kHeadSize>(p, head + slot / kQuads, slot % kQuads * 4,
                       merged(0, 1, teams, [&](std::uint32_t of_team) { return of_teams[of_team * slots + slot]; }));
}

template <class T>
void append_row(std::vector<double>& rows, const void* array, std::uint64_t offset, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    rows.push_back(offset == kNowhere ? 0 : static_cast<double>(to_float(static_cast<const T*>(array)[offset + i])));
  }
}

template <class T, int kHeadSize>
void decode_attention_on_host(HostGrid, DecodeAttentionParams p) {
  const std::uint32_t heads = p.kv_heads.value() * p.group;
  for (std::uint32_t sequence = 0; sequence < p.cache.sequences; ++sequence) {
    const std::uint32_t length = count_at(p.args.lengths + sequence, p.cache.positions);
    for (std::uint32_t head = 0; head < heads; ++head) {
      std::vector<double> q, k, v;
      append_row<T>(q, p.args.q, sequence * p.q_stride + head * kHeadSize, kHeadSize);
      for (std::uint32_t position = first_of(p, length); position < length; ++position) {
        std::uint64_t offset = offset_in(p.cache, block_of(p.cache, p.args.block_table, sequence, position), position);
        if (offset != kNowhere) offset += head / p.group * p.cache.head_stride;
        append_row<T>(k, p.args.k, offset, kHeadSize);
        append_row<T>(v, p.args.v, offset, kHeadSize);
      }
      const auto [out, lse] =
          decode_attention_reference(q, k, v, static_cast<double>(p.scale) / std::log2(std::exp(1)));
      const std::uint64_t at = std::uint64_t{sequence} * heads + head;
      for (int i = 0; i < kHeadSize; ++i) {
        static_cast<T*>(p.args.out)[at * kHeadSize + i] = from_float<T>(static_cast<float>(out[i]));
      }
      if (p.args.lse != nullptr) p.args.lse[at] = static_cast<float>(lse);
    }
  }
}

template <class T, int kHeadSize>
Kernel<DecodeAttentionParams> of_block(DecodeBlock block) {
  constexpr std::uint32_t kWhole = decode_warps(kHeadSize, DecodeBlock::kWhole);
  constexpr std::uint32_t kHalf = decode_warps(kHeadSize, DecodeBlock::kHalf);
  constexpr int kRegisters = kHeadSize == 64 ? 104 : kHeadSize == 128 ? 168 : 255;
  if (block == DecodeBlock::kWhole) {
    return make_kernel<decode_attention<T, kHeadSize, kWhole>, decode_attention_on_host<T, kHeadSize>,
                       KernelResources{.registers = kRegisters, .max_threads = kWhole * 32}>();
  }
  return make_kernel<decode_attention<T, kHeadSize, kHalf>, decode_attention_on_host<T, kHeadSize>,
                     KernelResources{.registers = kRegisters, .max_threads = kHalf * 32}>();
}

template <class T>
Kernel<DecodeAttentionParams> of_head_size(std::uint64_t head_size, DecodeBlock block) {
  if (head_size == 64) return of_block<T, 64>(block);
  return head_size == 128 ? of_block<T, 128>(block) : of_block<T, 256>(block);
}

}  // namespace

Kernel<DecodeAttentionParams> decode_attention_kernel(DType type, std::uint64_t head_size, DecodeBlock block) {
  return type == DType::kFloat16 ? of_head_size<__half>(head_size, block)
                                 : of_head_size<__nv_bfloat16>(head_size, block);
}

}  // namespace cgrt::kernels
