// Products of more than a few rows, on sm_90a. A block of a cluster multiplies 128 rows of W with all rows of x over
// its part of k; where tiles are at most half as many as multiprocessors, the blocks of a cluster then send each other
// their sums. Tensor copies bring W, and x where threads do not.
//
// Dependents start when blocks end, but for few rows of integers. Earlier, blocks of the next product would take the
// multiprocessors that this one leaves idle, and the rest follow as others end: 80 tiles behind 80 took 55 us in place
// of 43 (H200).
#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/block_copy.cuh"
#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/cluster_arrival.cuh"
#include "cgrt_kernels/common/mbarrier.cuh"
#include "cgrt_kernels/common/named_barrier.cuh"
#include "cgrt_kernels/common/tensor_copy.cuh"
#include "cgrt_kernels/common/wgmma_narrow.cuh"
#include "cgrt_kernels/skinny_gemm/product.cuh"

namespace cgrt::kernels {
namespace {

constexpr std::uint32_t kConsumers = 2;  // warpgroups that multiply 64 rows of W each
constexpr std::uint32_t kConsumerThreads = 128 * kConsumers;
static_assert(skinny_wide_threads(SkinnyScales::kNone) == kConsumerThreads + 128);

#if __CUDA_ARCH__ >= 900

constexpr std::uint32_t kMaxStages = 12;
// Stages whose W is copied before x may be read. Copies complete in order: behind more of them, x of the first stage
// would come late, and no stage becomes free before.
constexpr std::uint32_t kEarlyStages = 2;
static_assert(kConsumerThreads / 32 >= kSkinnyMaxCluster);
// In shared memory: sums of a row of x with 128 rows of W. With the four, lanes write them without bank conflicts.
constexpr std::uint32_t kSumsOfRow = 128 + 4;
struct WideBarriers {
  BulkBarrier full[kMaxStages];
  Mbarrier empty[kMaxStages];
  BulkBarrier sums;  // of all blocks of the cluster
};

// A stage is 128 bytes of each of the 128 rows of W, and the same k of 16, 32 or 64 rows of x, 64 elements to a panel.
// What copies is compiled once for all of these: code that a launch runs first comes from memory.
template <class T, int kBits, SkinnyScales kScales>
struct WideProduct {
  static constexpr std::uint32_t kDepth = skinny_wide_stage_values(kBits), kPanels = kDepth / 64;
  static constexpr std::uint32_t kBytesOfWeights = 64 * 128;  // of a warpgroup
  static __host__ __device__ constexpr std::uint32_t panel_bytes(std::uint32_t columns) { return columns * 128; }
  static __host__ __device__ constexpr std::uint32_t stage_bytes(std::uint32_t columns) {
    return kConsumers * kBytesOfWeights + kPanels * panel_bytes(columns);
  }
  // Of rows of x that are a block's, the sums of all blocks of its cluster: at most those of all rows, and of 7 that do
  // not divide.
  static constexpr std::uint32_t sums_bytes(std::uint32_t columns) {
    return (columns + kSkinnyMaxCluster - 1) * kSumsOfRow * 4;
  }
  template <std::uint32_t kColumns>
  static constexpr std::uint32_t kSlots = std::min(kMaxStages,
                                                   (skinny_wide_bytes(kBits) - 3072 - sums_bytes(kColumns)) /
                                                       stage_bytes(kColumns));
  static_assert(kSlots<32> >= kEarlyStages && kSlots<64> >= kEarlyStages);
  // A row of x takes tensor copies as long as one of W, and they limit what a multiprocessor reads. So threads load x
  // beside 16-bit weights: 51 us became 40 with one row and 80 tiles of k = 8192 (H200). Not in the first stages, which
  // come up to 0.7 us sooner by tensor copies, and not where blocks have a third of k or less and x has at most 32
  // rows: there it took up to 5 % more.
  static constexpr std::uint32_t kLoadingWarps = 3;
  static_assert(kBits != 16 || kSlots<64> > kLoadingWarps);
  static constexpr int kSteps = 512 / kBits / 16;  // of 16 values of k, in half a stage
  static constexpr std::uint32_t kValuesOfScale = kScales == SkinnyScales::kToSums ? kDepth / 2 : 32;
  // Of one of the two rows of W that a thread has, in half a stage: the four lanes of a quad hold those of all rows and
  // halves.
  using Scales = T[kDepth / 2 / kValuesOfScale];

  const SkinnyGemmParams& p;
  WideBarriers& barriers;
  unsigned char* const shared;  // stages, then sums
  const std::uint32_t rows;     // that there are
  const std::uint32_t columns = skinny_wide_columns(rows);
  const std::uint32_t slots = columns == 16 ? kSlots<16> : columns == 32 ? kSlots<32> : kSlots<64>;
  const std::uint32_t lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
  const std::uint32_t warp = threadIdx.x / 32 % 4, warpgroup = threadIdx.x / 128;
  const bool has_gate = p.activation == SkinnyActivation::kSiluGate;
  const std::uint32_t tiles = ((has_gate ? p.n : p.weight_rows) - 1) / (has_gate ? 64 : 128) + 1;
  const std::uint32_t blocks = p.cluster.value();  // of a cluster
  const bool loads_x = kBits == 16 && (blocks <= 2 || columns == 64);
  const std::uint32_t cluster = p.cluster.quotient(blockIdx.x), rank = blockIdx.x - cluster * blocks;
  const std::uint32_t first_tile = cluster < p.clusters ? cluster : tiles;  // few rows of integers want more
  const std::uint32_t all_stages = (p.k - 1) / kDepth + 1;
  const std::uint32_t begin = p.cluster.quotient(all_stages * rank), end = p.cluster.quotient(all_stages * (rank + 1));
  std::uint32_t slot = 0, phase = 0;  // of the next stage

  template <class Run>
  __device__ __forceinline__ void with_columns(Run run) {
    if (columns == 16) {
      run.template operator()<16>();
    } else if (columns == 32) {
      run.template operator()<32>();
    } else {
      run.template operator()<64>();
    }
  }

  // The first of a warpgroup's 64 rows of W. With a gate the second has the rows of up.
  __device__ __forceinline__ std::uint32_t first_row(std::uint32_t tile, std::uint32_t of_warpgroup) const {
    return has_gate ? of_warpgroup * p.n + tile * 64 : tile * 128 + of_warpgroup * 64;
  }
  __device__ __forceinline__ void advance() {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
  // The stages of this block in order, at most so many.
  template <class Each>
  __device__ __forceinline__ void for_stages(Each each, std::uint32_t max = ~0u) {
    std::uint32_t i = 0;
    for (std::uint32_t tile = first_tile; tile < tiles; tile += p.clusters) {
      for (std::uint32_t stage = begin; stage < end; ++stage) {
        if (i == max) return;
        each(i++, tile, stage);
        advance();
      }
    }
  }

  __device__ __forceinline__ unsigned char* weights_of(std::uint32_t of_slot) const {
    return shared + of_slot * stage_bytes(columns);
  }
  __device__ __forceinline__ void copy_weights(std::uint32_t tile, std::uint32_t stage) {
    unsigned char* const to = weights_of(slot);
    copy_box(to, p.maps[0], stage * 64, first_row(tile, 0), barriers.full[slot]);
    if (has_gate) copy_box(to + kBytesOfWeights, p.maps[0], stage * 64, first_row(tile, 1), barriers.full[slot]);
  }
  __device__ __forceinline__ void copy_x(std::uint32_t stage) {
    const bool is_whole = columns == skinny_wide_columns(p.rows);
    const CUtensorMap& map = p.maps[is_whole ? 1 : 2];
    const std::uint32_t box_rows = is_whole ? columns : kSkinnyBoxRows;
    unsigned char* const to = weights_of(slot) + kConsumers * kBytesOfWeights;
#pragma unroll
    for (std::uint32_t panel = 0; panel < kPanels; ++panel) {
      for (std::uint32_t row = 0; row < columns; row += box_rows) {
        copy_box(to + panel * panel_bytes(columns) + row * 128, map, (stage * kPanels + panel) * 64, row,
                 barriers.full[slot]);
      }
    }
  }
  __device__ __forceinline__ void begin_stage(std::uint32_t tile, std::uint32_t stage) {
    barriers.full[slot].expect(stage_bytes(columns));
    copy_weights(tile, stage);
  }
  // One thread. W may be read before what writes x has ended, and before the other barriers are there.
  __device__ __forceinline__ void copy_early(bool has_waited) {
    prefetch_tensor_map(p.maps[0]), prefetch_tensor_map(p.maps[1]);
#pragma unroll
    for (BulkBarrier& barrier : barriers.full) barrier.initialize();
    make_barriers_visible();
    if (!has_waited && !p.weights_are_constant) wait_for_predecessors();
    for_stages([&](std::uint32_t, std::uint32_t tile, std::uint32_t stage) { begin_stage(tile, stage); }, kEarlyStages);
  }
  // All threads of the block. A warp whose lanes initialized a barrier each would take them in turns: 1,400 clocks
  // (H100), so one thread of each of three warps has some.
  __device__ __forceinline__ void start(bool has_waited) {
    if (threadIdx.x == kConsumerThreads) {
      copy_early(has_waited);
    } else if (threadIdx.x == 0) {
#pragma unroll
      for (Mbarrier& barrier : barriers.empty) barrier.initialize(kConsumerThreads / 32);
    } else if (threadIdx.x == 32) {
      barriers.sums.initialize();
      make_barriers_visible();
      make_barriers_visible_to_cluster();
    }
    __syncthreads();
    slot = 0, phase = 0;  // the same in all threads, which products ask for
    if (blocks > 1) arrive_in_cluster();
  }
  // One thread: all stages, or those before others load x.
  __device__ __forceinline__ void copy_stages(bool has_waited) {
    if (!has_waited && p.weights_are_constant) wait_for_predecessors();
    const auto each = [&](std::uint32_t i, std::uint32_t tile, std::uint32_t stage) {
      if (i >= slots) barriers.empty[slot].wait(phase ^ 1);
      if (i >= kEarlyStages) begin_stage(tile, stage);
      copy_x(stage);
    };
    for_stages(each, loads_x ? slots : ~0u);
  }
  // By a warp, to where a tensor copy would bring it: 16 bytes of a row are at their number, exclusive or with that of
  // the row. Rows behind the last are not written, and make sums that nobody reads.
  __device__ __forceinline__ void load_x(std::uint32_t stage) const {
    unsigned char* const to = weights_of(slot) + kConsumers * kBytesOfWeights;
    const std::uint32_t piece = lane % 8, k = stage * kDepth + piece * 8;
    for (std::uint32_t row = lane / 8; row < rows; row += 4) {
      const T* const from = static_cast<const T*>(p.args.x) + row * p.x_stride + k;
      copy_or_zero_asynchronously(to + row * 128 + (piece ^ row % 8) * 16, from, k < p.k);
    }
  }
  // The stages that copy_stages leaves, by three warps in turn. Each has x of two in flight.
  __device__ __forceinline__ void load_stages(bool has_waited) {
    if (!has_waited) wait_for_predecessors();
    BulkBarrier* before = nullptr;
    const auto complete = [&] {
      fence_for_tensor_copies();  // for products, x is there
      __syncwarp();
      if (lane == 0) before->expect(kConsumers * kBytesOfWeights);
    };
    for_stages([&](std::uint32_t i, std::uint32_t tile, std::uint32_t stage) {
      if (i < slots || i % kLoadingWarps != warp - 1) return;
      barriers.empty[slot].wait(phase ^ 1);
      if (lane == 0) copy_weights(tile, stage);
      load_x(stage);
      end_copy_group();
      if (before != nullptr) {
        wait_for_copies<1>();
        complete();
      }
      before = &barriers.full[slot];
    });
    if (before == nullptr) return;
    wait_for_copies<0>();
    complete();
  }
  __device__ __forceinline__ void produce(bool has_waited) {
    if (threadIdx.x == kConsumerThreads) {
      copy_stages(has_waited);
    } else if (kBits == 16 && warp > 0 && loads_x) {
      load_stages(has_waited);
    }
    if (blocks == 1) return;
    __syncwarp();
    wait_for_cluster();
    arrive_in_cluster();
    wait_for_cluster();
  }

  __device__ __forceinline__ void release(std::uint32_t of_slot) {
    __syncwarp();
    if (lane == 0) barriers.empty[of_slot].arrive();
  }
  template <int kN>
  __device__ __forceinline__ void multiply_floats(float (&sums)[kN / 2]) {
    std::uint32_t before = 0;
    for (std::uint32_t stage = begin; stage < end; ++stage) {
      barriers.full[slot].wait(phase);
      const unsigned char* const of_stage = shared + slot * stage_bytes(kN);
      const std::uint64_t w = matrix_descriptor<MatrixMajor::kK>(of_stage + warpgroup * kBytesOfWeights);
      const std::uint64_t x = matrix_descriptor<MatrixMajor::kK>(of_stage + kConsumers * kBytesOfWeights);
      fence_registers(sums);
      fence_products();
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        multiply_add_shared_narrow<T, kN>(sums, w + 2 * j, x + 2 * j, stage > begin || j > 0);
      }
      commit_products();
      fence_registers(sums);
      if (stage > begin) {
        wait_for_products<1>();
        release(before);
      }
      before = slot;
      advance();
    }
    wait_for_products<0>();
    fence_registers(sums);
    release(before);
  }

  template <int kCount>
  static __device__ __forceinline__ void add_group(float (&sums)[kCount], const float (&of_group)[kCount],
                                                   const float (&scales)[2]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += of_group[i] * scales[i / 2 % 2];
  }
  // The weights of half a stage, as products take them.
  __device__ __forceinline__ void load_weights(std::uint32_t (&a)[kSteps][4], const unsigned char* weights, int half,
                                               const Scales& scales) const {
    constexpr int kStepsOfPiece = kSteps / 4;  // in 16 bytes
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t row = warp * 16 + i * 8 + group;
#pragma unroll
      for (int piece = 0; piece < 4; ++piece) {
        const std::uint32_t at = (half * 4 + piece) ^ group;
        std::uint32_t pairs[2 * kStepsOfPiece];
        unpack_of_lane<T, kBits>(*reinterpret_cast<const uint4*>(weights + row * 128 + at * 16), quad, pairs);
        if constexpr (kScales == SkinnyScales::kToWeights) {
          const T scale = scale_of(scales[piece * 16 * kStepsOfPiece / 32], half, i), twice[2] = {scale, scale};
          std::uint32_t both;
          memcpy(&both, twice, 4);
#pragma unroll
          for (std::uint32_t& pair : pairs) pair = multiply<T>(pair, both);
        }
#pragma unroll
        for (int j = 0; j < 2 * kStepsOfPiece; ++j) a[piece * kStepsOfPiece + j / 2][j % 2 * 2 + i] = pairs[j];
      }
    }
    // All of them before the products that follow.
#pragma unroll
    for (auto& step : a) {
#pragma unroll
      for (std::uint32_t& pair : step) asm volatile("" : "+r"(pair)::"memory");
    }
  }
  __device__ __forceinline__ const T* scales_of_row(std::uint32_t tile, std::uint32_t of_warpgroup) const {
    const std::uint32_t row = min(first_row(tile, warpgroup) + of_warpgroup, p.weight_rows - 1);
    return static_cast<const T*>(p.args.scales) + std::uint64_t{row} * p.groups;
  }
  // Those of a tile are asked for before the stages that they belong to.
  __device__ __forceinline__ void prefetch_scales(std::uint32_t tile) const {
    const std::uint32_t first = p.group.quotient(begin * kDepth);
    const std::uint32_t behind = p.group.quotient(min(end * kDepth, p.k) - 1) + 1;
    if (lane < 16) prefetch_to_l2(scales_of_row(tile, warp * 16 + lane) + first, (behind - first) * sizeof(T));
  }
  // Of a stage. Zeros behind k, where products have zeros too.
  __device__ __forceinline__ void load_scales(Scales& scales, const T* of_row, std::uint32_t stage) const {
#pragma unroll
    for (std::uint32_t i = 0; i < std::extent_v<Scales>; ++i) {
      const std::uint32_t k = stage * kDepth + quad / 2 * (kDepth / 2) + i * kValuesOfScale;
      scales[i] = k < p.k ? of_row[p.group.quotient(k)] : from_float<T>(0);
    }
  }
  __device__ __forceinline__ T scale_of(T of_quad, int half, int row) const {
    return __shfl_sync(~0u, of_quad, half * 2 + row, 4);
  }
  template <int kN>
  __device__ __forceinline__ void multiply_integers(std::uint32_t tile, float (&sums)[kN / 2]) {
    constexpr bool kToSums = kScales == SkinnyScales::kToSums;
    if (tile + p.clusters < tiles) prefetch_scales(tile + p.clusters);
    const T* const of_row = scales_of_row(tile, warp * 16 + quad % 2 * 8 + group);
    Scales next;
    load_scales(next, of_row, begin);
    float of_group[kToSums ? kN / 2 : 1] = {}, scales[2] = {};
    std::uint32_t a[2][kSteps][4];
#pragma unroll
    for (float& sum : sums) sum = 0;
    std::uint32_t before = 0;
    auto& to = choose(of_group, sums);
    for (std::uint32_t stage = begin; stage < end; ++stage) {
      Scales of_stage;
      memcpy(of_stage, next, sizeof(next));
      if (stage + 1 < end) load_scales(next, of_row, stage + 1);
      barriers.full[slot].wait(phase);
      const unsigned char* const of_slot = shared + slot * stage_bytes(kN);
      const std::uint64_t x = matrix_descriptor<MatrixMajor::kK>(of_slot + kConsumers * kBytesOfWeights);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        // While the products of the half before go on.
        load_weights(a[half], of_slot + warpgroup * kBytesOfWeights, half, of_stage);
        wait_for_products<0>();
        fence_registers(to);
        if (half == 0 && stage > begin) release(before);
        if constexpr (kToSums) {
          add_group(sums, of_group, scales);
          for (int i = 0; i < 2; ++i) scales[i] = to_float(scale_of(of_stage[0], half, i));
          fence_registers(to);
        }
        fence_products();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          const int of_all = half * kSteps + step;
          const std::uint64_t at = x + of_all / 4 * (panel_bytes(kN) / 16) + 2 * (of_all % 4);
          multiply_add_registers_narrow<T, kN>(to, a[half][step], at, !kToSums || step > 0);
        }
        commit_products();
        fence_registers(to);
      }
      before = slot;
      advance();
    }
    wait_for_products<0>();
    fence_registers(to);
    if constexpr (kToSums) add_group(sums, of_group, scales);
    release(before);
  }
  template <int kOfGroup, int kCount>
  static __device__ __forceinline__ auto& choose(float (&of_group)[kOfGroup], float (&sums)[kCount]) {
    if constexpr (kScales == SkinnyScales::kToSums) {
      return of_group;
    } else {
      return sums;
    }
  }

  __device__ __forceinline__ void meet_consumers() const { wait_at_named_barrier<kConsumerThreads>(1); }
  // All sums of this block, for its threads and for bulk copies. In a cluster their place is that of stages.
  template <int kN>
  __device__ __forceinline__ void place_sums(const float (&sums)[kN / 2]) const {
    if (blocks > 1) {
      meet_consumers();    // the stages are used up
      wait_for_cluster();  // all blocks have begun
    }
    float* const to = own_sums();
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) {
      const std::uint32_t row = i / 4 * 8 + quad * 2 + i % 2, of_w = warpgroup * 64 + warp * 16 + i / 2 % 2 * 8 + group;
      to[row * kSumsOfRow + of_w] = sums[i];
    }
    if (blocks > 1) fence_for_tensor_copies();
    meet_consumers();
  }
  // The first of the rows of x whose sums a block of the cluster gets from all.
  __device__ __forceinline__ std::uint32_t first_of_x(std::uint32_t of_rank) const {
    return p.cluster.quotient(columns * of_rank);
  }
  __device__ __forceinline__ std::uint32_t count_of_x(std::uint32_t of_rank) const {
    return first_of_x(of_rank + 1) - first_of_x(of_rank);
  }
  // The sums of other blocks. Where this one is no cluster, its own, as stages may have been filled again.
  __device__ __forceinline__ float* sums_behind_stages() const {
    return reinterpret_cast<float*>(shared + slots * stage_bytes(columns));
  }
  __device__ __forceinline__ float* own_sums() const {
    return blocks > 1 ? reinterpret_cast<float*>(shared) : sums_behind_stages();
  }
  __device__ __forceinline__ void exchange_sums() {
    // A block for each warp.
    const std::uint32_t to = threadIdx.x / 32;
    if (threadIdx.x == 0) barriers.sums.expect((blocks - 1) * count_of_x(rank) * kSumsOfRow * 4);
    if (lane == 0 && to < blocks && to != rank) {
      const std::uint32_t part = count_of_x(to) * kSumsOfRow, place = rank < to ? rank : rank - 1;
      copy_to_block(to, sums_behind_stages() + place * part, own_sums() + first_of_x(to) * kSumsOfRow, part * 4,
                    barriers.sums);
    }
    barriers.sums.wait_for_cluster(0);
    arrive_in_cluster();  // all that others send here has come
  }
  // The rows of x that are this block's: `first` and following. kAtOnce: of a thread, whose steps hide each other's
  // latency.
  template <std::uint32_t kAtOnce>
  __device__ __forceinline__ void store_rows(std::uint32_t tile, std::uint32_t first, std::uint32_t to_store) const {
    const SkinnyEpilogue<T> y{p};
    // Threads have four columns of a row.
    const std::uint32_t shift = has_gate ? 4 : 5, step = kConsumerThreads >> shift;
    const std::uint32_t of_tile = threadIdx.x % (1 << shift) * 4, column = (tile * 4 << shift) + of_tile;
    if (column >= p.n) return;
    const bool is_whole = y.has_whole_packs();
    float bias[4] = {}, bias_of_up[4] = {};
    if (p.args.bias != nullptr) {
      y.add_four(bias, p.args.bias, column, column, is_whole);
      if (has_gate) y.add_four(bias_of_up, p.args.bias, p.n + column, column, is_whole);
    }
    for (std::uint32_t row = threadIdx.x >> shift; row < to_store; row += kAtOnce * step) {
      float values[kAtOnce][4], ups[kAtOnce][4];
      std::uint32_t of_x[kAtOnce];  // behind the last row, that once more
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        of_x[i] = min(row + i * step, to_store - 1);
#pragma unroll
        for (int j = 0; j < 4; ++j) values[i][j] = bias[j], ups[i][j] = bias_of_up[j];
      }
      const auto add_sums = [&](const float* from) {
#pragma unroll
        for (std::uint32_t i = 0; i < kAtOnce; ++i) {
          const float* const of_row = from + of_x[i] * kSumsOfRow + of_tile;
          add(values[i], *reinterpret_cast<const float4*>(of_row));
          if (has_gate) add(ups[i], *reinterpret_cast<const float4*>(of_row + 64));
        }
      };
      add_sums(own_sums() + first * kSumsOfRow);
#pragma unroll 2
      for (std::uint32_t other = 0; other + 1 < blocks; ++other) {
        add_sums(sums_behind_stages() + other * count_of_x(rank) * kSumsOfRow);
      }
      y.finish(values, ups);
      y.add_residual(values, first, of_x, column, is_whole);
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        if (row + i * step < to_store) y.store_four(first + of_x[i], column, is_whole, values[i]);
      }
    }
  }
  __device__ __forceinline__ void store_tile(std::uint32_t tile) const {
    const std::uint32_t first = first_of_x(rank), to_store = first < rows ? min(count_of_x(rank), rows - first) : 0;
    if (to_store > 16) {
      store_rows<4>(tile, first, to_store);
    } else {
      store_rows<2>(tile, first, to_store);
    }
  }

  __device__ __forceinline__ void consume(bool has_waited) {
    if constexpr (kBits != 16) {
      if (first_tile < tiles) prefetch_scales(first_tile);
    }
    if (!has_waited) wait_for_predecessors();  // they may read y
    with_columns([&]<int kN>() {
      for (std::uint32_t tile = first_tile; tile < tiles; tile += p.clusters) {
        float sums[kN / 2];
        if constexpr (kBits == 16) {
          multiply_floats<kN>(sums);
        } else {
          multiply_integers<kN>(tile, sums);
        }
        place_sums<kN>(sums);
        if (blocks > 1) exchange_sums();
        store_tile(tile);
        if (blocks == 1) meet_consumers();  // before the sums of the next tile
      }
    });
    if (blocks == 1) return;
    if (first_tile == tiles) {
      wait_for_cluster();
      arrive_in_cluster();
    }
    wait_for_cluster();  // others have got what this block has sent
  }
};

#endif

template <class T, int kBits, SkinnyScales kScales>
__global__ void __launch_bounds__(skinny_wide_threads(kScales), 1)
    skinny_gemm_wide(const __grid_constant__ SkinnyGemmParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) unsigned char skinny_shared[];
  // The rows that there are choose how wide products are, and few rows of integers go in small tiles.
  const bool has_count = p.args.row_count != nullptr;
  if (has_count) wait_for_predecessors();
  const std::uint32_t rows = has_count ? count_at(p.args.row_count, p.rows) : p.rows;
  if (rows == 0) return;
  constexpr bool kHasFew = kScales == SkinnyScales::kToSums;
  if constexpr (kHasFew) {
    using Few = SkinnyProduct<T, kBits, kScales, 1, 1, kSkinnyWideGroups>;
    if (rows <= p.few_rows) return Few{p, skinny_shared}.run();
  }
  unsigned char* const aligned = skinny_shared + (0 - shared_address(skinny_shared)) % 1024;
  auto& barriers = *reinterpret_cast<WideBarriers*>(aligned);
  WideProduct<T, kBits, kScales> product{p, barriers, aligned + 1024, rows};
  product.start(has_count);
  constexpr int kOfConsumer = kHasFew ? 208 : 224, kOfOthers = kHasFew ? 48 : 56;  // registers
  static_assert(kOfConsumer * kConsumerThreads + kOfOthers * (skinny_wide_threads(kScales) - kConsumerThreads) <=
                65536);
  if (threadIdx.x >= kConsumerThreads) {
    if constexpr (kBits < 16) give_registers<kOfOthers>();
    return product.produce(has_count);
  }
  if constexpr (kBits < 16) take_registers<kOfConsumer>();
  product.consume(has_count);
#endif
}

template <class T, int kBits, SkinnyScales kScales>
Kernel<SkinnyGemmParams> kernel_of() {
  constexpr int kThreads = skinny_wide_threads(kScales);
  return make_kernel<skinny_gemm_wide<T, kBits, kScales>, skinny_gemm_on_host<T, kBits>,
                     KernelResources{.registers = 65536 / kThreads / 8 * 8, .max_threads = kThreads}>();
}

template <class T>
Kernel<SkinnyGemmParams> kernel_of(std::uint32_t bits, SkinnyScales scales) {
  const bool to_sums = scales == SkinnyScales::kToSums;
  switch (bits) {
    case 8: return to_sums ? kernel_of<T, 8, SkinnyScales::kToSums>() : kernel_of<T, 8, SkinnyScales::kToWeights>();
    case 4: return to_sums ? kernel_of<T, 4, SkinnyScales::kToSums>() : kernel_of<T, 4, SkinnyScales::kToWeights>();
    default: return kernel_of<T, 16, SkinnyScales::kNone>();
  }
}

}  // namespace

Kernel<SkinnyGemmParams> skinny_gemm_wide_kernel(DType type, std::uint32_t bits, SkinnyScales scales) {
  return type == DType::kFloat16 ? kernel_of<__half>(bits, scales) : kernel_of<__nv_bfloat16>(bits, scales);
}

}  // namespace cgrt::kernels
