// The kernel of skinny_gemm, and its host body. W's rows are the rows of the tensor cores' products and x's rows their
// columns, so that few rows of x waste only their arithmetic, which is free here.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/load_once.cuh"
#include "cgrt_kernels/common/mma.cuh"
#include "cgrt_kernels/common/named_barrier.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/whole.cuh"
#include "cgrt_kernels/skinny_gemm/kernels.h"
#include "cgrt_kernels/skinny_gemm/reference.h"
#include "cgrt_kernels/skinny_gemm/tiles.cuh"
#include "cgrt_kernels/skinny_gemm/weights.cuh"

namespace cgrt::kernels {

// kGroups: of kSkinnyThreads threads in a block. Each is a block of its own here, and x is theirs in common.
template <class T, int kBits, SkinnyScales kScales, int kColumns, int kRowWarps, int kGroups = 1>
struct SkinnyProduct {
  static constexpr int kPacks = skinny_packs(kBits), kDepth = kSkinnyDepth;
  static constexpr int kDepthWarps = kSkinnyWarps / kRowWarps;
  static constexpr int kPackValues = 128 / kBits, kEights = kPackValues / 8;  // in 16 bytes of W
  static constexpr int kWarpValues = 4 * kPackValues * kPacks;                // of k, that a warp takes in a stage
  // Warps share many rows of x through shared memory. Few stay there, in the order of weights, where these are integers
  // and tiles small; else they come through the L1 cache, where there are registers for them a stage ahead.
  static constexpr bool kSharesX = kColumns > 1, kKeepsX = skinny_keeps_x(kBits, {kColumns, kRowWarps});
  static constexpr bool kLoadsXAhead = kBits == 16 && !kSharesX;
  static constexpr int kXPacks = kLoadsXAhead ? kPacks * kEights : 1;
  static constexpr std::uint32_t kXRowBytes = skinny_x_row_bytes(kBits, kRowWarps);
  static constexpr std::uint32_t kJoinedBytes = skinny_joined_bytes({kColumns, kRowWarps});

  // What a thread reads of a stage: packs of its two rows of W, and their scales. Where the lanes of a row have the
  // same ones, each lane loads one of the warp's 32 of two packs: 2 % faster than its own four (H200).
  static constexpr bool kSharesScales = kScales == SkinnyScales::kToSums;
  static_assert((kGroups == 1 || kKeepsX) && (!kSharesScales || kPacks % 2 == 0) && kDepth > 1);
  struct Stage {
    uint4 weights[2][kPacks];
    T scales[kSharesScales ? kPacks / 2 : 2 * kPacks];
  };
  using StageOfX = uint4[kXPacks];

  const SkinnyGemmParams& p;
  unsigned char* const shared;  // sums of the warps that share rows, of two tiles, for each group; then x
  const std::uint32_t thread_group = kGroups == 1 ? 0 : threadIdx.x / kSkinnyThreads;
  const std::uint32_t block = thread_group * gridDim.x + blockIdx.x,
                      thread = threadIdx.x - thread_group * kSkinnyThreads;
  const std::uint32_t lane = thread % 32, warp = thread / 32;
  const std::uint32_t row_warp = warp % kRowWarps, k_warp = warp / kRowWarps;
  const std::uint32_t group = lane / 4, quad = lane % 4;  // as mma.cuh's g and t
  const SkinnyRanges ranges = {(p.weight_rows - 1) / (16 * kRowWarps) + 1, (p.k - 1) / (kDepthWarps * kWarpValues) + 1,
                               p.blocks, p.shares_tiles};
  const std::uint32_t stages = ranges.stages;
  std::uint32_t rows = 0;  // that there are
  float sums[kColumns][4];

  // Of y, which a thread's first row of W gives.
  __device__ __forceinline__ std::uint32_t first_column(std::uint32_t tile) const {
    return (tile * kRowWarps + row_warp) * p.warp_columns + group;
  }
  // Of the warp's first value in a stage, and of a pack's.
  __device__ __forceinline__ std::uint32_t k_of_warp(std::uint32_t index) const {
    return (index * kDepthWarps + k_warp) * kWarpValues;
  }
  __device__ __forceinline__ std::uint32_t k_of(std::uint32_t index, int pack) const {
    return k_of_warp(index) + (pack * 4 + quad) * kPackValues;
  }

  // A stage to load, and what this thread reads of it.
  struct Place {
    std::uint32_t tile, index;
    std::uint32_t whole_stages;             // of the tile: before these, all that lanes load is there
    const unsigned char *weights, *scales;  // of the first row of two
  };
  __device__ __forceinline__ void enter_tile(Place& place) const {
    const bool has_all_rows = (place.tile + 1) * kRowWarps * p.warp_columns <= p.n;
    place.whole_stages = has_all_rows ? p.k / (kDepthWarps * kWarpValues) : 0;
    const std::uint32_t first = first_column(place.tile);
    place.weights = static_cast<const unsigned char*>(p.args.weights) + first * p.weight_row_bytes +
                    std::uint64_t{k_of(place.index, 0)} * kBits / 8;
    if constexpr (kSharesScales) {
      place.scales = static_cast<const unsigned char*>(p.args.scales) +
                     (first_column(place.tile) - group + lane / 2 % 8) * p.scale_row_bytes +
                     lane / 16 * p.scale_distance_bytes;
    } else if constexpr (kScales != SkinnyScales::kNone) {
      place.scales = static_cast<const unsigned char*>(p.args.scales) + first * p.scale_row_bytes;
    }
  }
  template <bool kIsWhole>
  __device__ __forceinline__ void load_of(Stage& stage, const Place& place) const {
    const std::uint32_t first = first_column(place.tile);
    const bool has_rows[2] = {kIsWhole || first < p.n, kIsWhole || (first < p.n && first + p.distance < p.weight_rows)};
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      const std::uint32_t k = k_of(place.index, pack);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool is_there = kIsWhole || (has_rows[i] && k < p.k);
        if (!kIsWhole) stage.weights[i][pack] = {};
        if (is_there) stage.weights[i][pack] = load_once(place.weights + i * p.weight_distance_bytes + pack * 64);
        if constexpr (kScales == SkinnyScales::kToWeights) {
          stage.scales[i * kPacks + pack] =
              is_there ? scale_at(place.scales + i * p.scale_distance_bytes, k) : from_float<T>(0);
        }
      }
    }
    if constexpr (kSharesScales) {
      const std::uint32_t row = first - group + lane / 2 % 8;
#pragma unroll
      for (int pair = 0; pair < kPacks / 2; ++pair) {
        const std::uint32_t k = k_of_warp(place.index) + (2 * pair + lane % 2) * 4 * kPackValues;
        const bool is_there = kIsWhole || (row < p.n && row + lane / 16 * p.distance < p.weight_rows && k < p.k);
        stage.scales[pair] = is_there ? scale_at(place.scales, k) : from_float<T>(0);
      }
    }
  }
  __device__ __forceinline__ T scale_at(const unsigned char* of_row, std::uint32_t k) const {
    return reinterpret_cast<const T*>(of_row)[p.group.quotient(k)];
  }
  // Of the row that is the thread's first or second.
  __device__ __forceinline__ T scale_of(const Stage& stage, int row, int pack) const {
    if constexpr (kSharesScales) {
      return __shfl_sync(~0u, stage.scales[pack / 2], (row * 8 + group) * 2 + pack % 2);
    } else {
      return stage.scales[row * kPacks + pack];
    }
  }
  __device__ __forceinline__ void load(Stage& stage, Place& place) const {
    if (place.index < place.whole_stages) {
      load_of<true>(stage, place);
    } else {
      load_of<false>(stage, place);
    }
    if (++place.index == stages) {
      place.index = 0, ++place.tile;
      enter_tile(place);
    } else {
      place.weights += kDepthWarps * kWarpValues * kBits / 8;
    }
  }

  __device__ __forceinline__ unsigned char* x_at(int slot) const {
    return shared + kJoinedBytes + slot * (8 * kColumns * kXRowBytes);
  }
  // Eight elements of a row of x in shared memory, in the order in which lanes read them, neighbours side by side. A
  // `four`: what the lanes that share a row take at once, a pack of W each.
  static __device__ __forceinline__ std::uint32_t place_of_x(std::uint32_t four, std::uint32_t eight,
                                                             std::uint32_t of_lane) {
    return ((four * kEights + eight) * 4 + of_lane) * 16;
  }
  static __device__ __forceinline__ std::uint32_t place_of_x(std::uint32_t i) {  // of eights in their own order
    return place_of_x(i / (4 * kEights), i % kEights, i / kEights % 4);
  }
  __device__ __forceinline__ unsigned char* kept_x(std::uint32_t row) const {
    return shared + kGroups * kJoinedBytes + row * (stages * (kDepthWarps * kWarpValues * 2) + kSkinnyRowGap);
  }
  // All rows of x, at most kMaxRows, zeros behind k.
  template <std::uint32_t kMaxRows>
  __device__ __forceinline__ void keep_rows() const {
    const std::uint32_t packs = stages * (kDepthWarps * kWarpValues / 8);
#pragma unroll(16 / kMaxRows)
    for (std::uint32_t i = threadIdx.x; i < packs; i += kGroups * kSkinnyThreads) {
      uint4 eights[kMaxRows];
#pragma unroll
      for (std::uint32_t row = 0; row < kMaxRows; ++row) {
        const T* const x = static_cast<const T*>(p.args.x) + row * p.x_stride + std::uint64_t{i} * 8;
        eights[row] = row < rows && i < p.k / 8 ? load_whole<uint4>(x) : uint4{};
      }
#pragma unroll
      for (std::uint32_t row = 0; row < kMaxRows; ++row) {
        if (row >= rows) break;
        *reinterpret_cast<uint4*>(kept_x(row) + place_of_x(i)) = in_order_of_weights<kBits>(eights[row]);
      }
    }
  }
  __device__ __forceinline__ void keep_x() const {
    if (rows <= 2) {
      keep_rows<2>();
    } else {
      keep_rows<kSkinnyFewRows>();
    }
    __syncthreads();
  }
  // A stage, zeros for rows that are not there.
  __device__ __forceinline__ void share_x(int slot, std::uint32_t index) const {
    constexpr std::uint32_t kRowPacks = kDepthWarps * kWarpValues / 8;
    static_assert(8 * kColumns * kRowPacks % kSkinnyThreads == 0);
#pragma unroll
    for (std::uint32_t first = 0; first < 8 * kColumns * kRowPacks; first += kSkinnyThreads) {
      const std::uint32_t i = first + threadIdx.x, row = i / kRowPacks, pack = i % kRowPacks;
      const std::uint32_t k = (index * kRowPacks + pack) * 8;
      const bool is_there = row < rows && k < p.k;
      const T* const x = static_cast<const T*>(p.args.x);
      copy_or_zero_asynchronously(x_at(slot) + row * kXRowBytes + place_of_x(pack),
                                  is_there ? x + row * p.x_stride + k : x, is_there);
    }
  }

  // Eight elements of a row of x, in the order of weights.
  __device__ __forceinline__ uint4 x_of(int slot, std::uint32_t index, int column, int pack, int eight) const {
    if constexpr (kKeepsX) {
      // Of rows that are not there: any, as the products are not stored.
      return *reinterpret_cast<const uint4*>(kept_x(min(group, rows - 1)) +
                                             place_of_x((index * kDepthWarps + k_warp) * kPacks + pack, eight, quad));
    }
    const std::uint32_t row = column * 8 + group;
    if constexpr (kSharesX) {
      return in_order_of_weights<kBits>(*reinterpret_cast<const uint4*>(
          x_at(slot) + row * kXRowBytes + place_of_x(k_warp * kPacks + pack, eight, quad)));
    }
    const std::uint32_t k = k_of(index, pack) + eight * 8;
    if (row >= rows || k >= p.k) return {};
    return in_order_of_weights<kBits>(load_whole<uint4>(static_cast<const T*>(p.args.x) + row * p.x_stride + k));
  }
  __device__ __forceinline__ void load_x(StageOfX& x, std::uint32_t index) const {
#pragma unroll
    for (int i = 0; i < kXPacks; ++i) x[i] = x_of(0, index, 0, i / kEights, i % kEights);
  }

  // load_next: what is to be loaded meanwhile. Before the first product it would hold this stage up, as the compiler
  // counts all loads together: 82 us in place of 77 (int4, 1 row, n = 128,256, k = 4,096; H200).
  template <class Load>
  __device__ __forceinline__ void multiply(const Stage& stage, const StageOfX& x, int slot, std::uint32_t index,
                                           Load load_next) {
#pragma unroll
    for (int pack = 0; pack < kPacks; ++pack) {
      float of_group[kColumns][4] = {};
      auto& to = choose(of_group);
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        std::uint32_t pairs[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          unpack_weights<T, kBits>(stage.weights[i][pack], eight, pairs[i]);
          if constexpr (kScales == SkinnyScales::kToWeights) {
            const T twice[2] = {scale_of(stage, i, pack), scale_of(stage, i, pack)};
            std::uint32_t scale;
            memcpy(&scale, twice, 4);
#pragma unroll
            for (std::uint32_t& pair : pairs[i]) pair = kernels::multiply<T>(pair, scale);
          }
        }
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
          const uint4 eights = kLoadsXAhead ? x[pack * kEights + eight] : x_of(slot, index, column, pack, eight);
          multiply_add<T>(to[column], pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1], eights.x, eights.y);
          multiply_add<T>(to[column], pairs[0][2], pairs[1][2], pairs[0][3], pairs[1][3], eights.z, eights.w);
        }
        if (pack == 0 && eight == 0) load_next();
      }
      if constexpr (kScales == SkinnyScales::kToSums) {
        const float scales[2] = {to_float(scale_of(stage, 0, pack)), to_float(scale_of(stage, 1, pack))};
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[column][i] += of_group[column][i] * scales[i / 2];
        }
      }
    }
  }
  __device__ __forceinline__ auto& choose(float (&of_group)[kColumns][4]) {
    if constexpr (kScales == SkinnyScales::kToSums) {
      return of_group;
    } else {
      return sums;
    }
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (auto& column : sums) {
#pragma unroll
      for (float& sum : column) sum = 0;
    }
  }

  // All threads of the group.
  __device__ __forceinline__ void meet() const {
    if constexpr (kGroups == 1) {
      __syncthreads();
    } else {
      wait_at_named_barrier<kSkinnyThreads>(1 + thread_group);
    }
  }
  // As is_last_to_arrive, in each group.
  __device__ __forceinline__ bool is_last_of(std::uint32_t* counter, std::uint32_t parts) const {
    if constexpr (kGroups == 1) return is_last_to_arrive(counter, parts);
    __shared__ bool is_last[kGroups];
    meet();
    if (thread == 0) {
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      is_last[thread_group] = arrive(counter, parts) == parts - 1;
      if (is_last[thread_group]) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    meet();
    return is_last[thread_group];
  }

  // To the first of the warps that share rows. One barrier, as tiles take the two places in turn.
  __device__ __forceinline__ void join_warps(std::uint32_t parity) {
    if constexpr (kDepthWarps == 1) return;
    const auto place = [&](int of_warp, int column) {
      return reinterpret_cast<float4*>(shared + thread_group * kJoinedBytes) +
             ((parity * kSkinnyWarps + of_warp) * kColumns + column) * 32 + lane;
    };
    if (k_warp > 0) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        *place(warp, column) = {sums[column][0], sums[column][1], sums[column][2], sums[column][3]};
      }
    }
    meet();
    if (k_warp > 0) return;
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
#pragma unroll
      for (int other = 1; other < kDepthWarps; ++other) add(sums[column], *place(other * kRowWarps + warp, column));
    }
  }

  // With the other blocks of the tile. True in the last of them, which has all sums then.
  __device__ __forceinline__ bool join_blocks(std::uint32_t tile) {
    const std::uint32_t first = ranges.first_block(tile), last = ranges.last_block(tile);
    const auto part = [&](std::uint32_t of, int column) {
      const std::size_t slot = SkinnyRanges::slot_of(of, first);
      return static_cast<float4*>(p.parts) + ((slot * kRowWarps + row_warp) * kColumns + column) * 32 + lane;
    };
    if (k_warp == 0) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        if (column * 8 >= rows) break;
        *part(block, column) = {sums[column][0], sums[column][1], sums[column][2], sums[column][3]};
      }
    }
    if (!is_last_of(&p.counters[first], last - first + 1)) return false;
    if (k_warp > 0) return true;
    clear();
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (column * 8 >= rows) break;
#pragma unroll 4
      for (std::uint32_t of = first; of <= last; ++of) add(sums[column], __ldcg(part(of, column)));
    }
    return true;
  }

  __device__ __forceinline__ void store_tile(std::uint32_t tile) const {
    if (k_warp > 0) return;
    const std::uint32_t first = first_column(tile);
    const SkinnyEpilogue<T> y{p};
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t row = column * 8 + quad * 2 + i;
        if (row >= rows || first >= p.n) continue;
        const float value = y.with_bias(sums[column][i], first);
        if (p.activation == SkinnyActivation::kSiluGate) {
          y.store(row, first, silu_of(value) * y.with_bias(sums[column][2 + i], p.n + first));
          continue;
        }
        y.store(row, first, y.activated(value));
        if (first + 8 < p.n) {
          y.store(row, first + 8, y.activated(y.with_bias(sums[column][2 + i], first + 8)));
        }
      }
    }
  }

  __device__ __forceinline__ void run() {
    if (blockIdx.x >= ranges.blocks) return;  // then no group has stages; one without keeps x for the other
    const std::uint32_t begin = ranges.begin(block), count = ranges.count(block);
    Place next{begin / stages, begin % stages, 0, nullptr, nullptr};
    std::uint32_t tile = next.tile, index = next.index, part_begin = next.index, parity = 0;
    const auto after = [&](std::uint32_t stage) { return stage + 1 == stages ? 0 : stage + 1; };
    enter_tile(next);
    Stage ring[kDepth];
    StageOfX x[kDepth];
    if (!p.weights_are_constant) wait_for_predecessors();
#pragma unroll
    for (int i = 0; i < kDepth - 1; ++i) {
      if (i < count) load(ring[i], next);
    }
    wait_for_predecessors();
    rows = count_at(p.args.row_count, p.rows);
    if (rows == 0) return;
    if constexpr (kKeepsX) keep_x();
    std::uint32_t index_of_x = index;
    if constexpr (kSharesX) {
#pragma unroll
      for (int i = 0; i < kDepth - 1; ++i) {
        if (i < count) share_x(i, index_of_x);
        end_copy_group();
        index_of_x = after(index_of_x);
      }
    } else if constexpr (kLoadsXAhead) {
      load_x(x[0], index);
    }

    clear();
    for (std::uint32_t left = count; left > 0;) {
#pragma unroll
      for (int i = 0; i < kDepth; ++i) {
        constexpr auto at = [](int slot) { return slot % kDepth; };
        if constexpr (kSharesX) {
          wait_for_copies<kDepth - 2>();
          __syncthreads();
          if (left >= kDepth) share_x(at(i + kDepth - 1), index_of_x);
        }
        const std::uint32_t following = after(index);
        if constexpr (kSharesX) {
          end_copy_group();
          index_of_x = after(index_of_x);
        } else if constexpr (kLoadsXAhead) {
          if (left > 1) load_x(x[at(i + 1)], following);
        }
        multiply(ring[i], x[i], i, index, [&] {
          if (left >= kDepth) {
            load(ring[at(i + kDepth - 1)], next);
          } else {
            let_dependents_start();
          }
        });
        if (following == 0 || left == 1) {
          join_warps(parity);
          const bool is_whole = part_begin == 0 && following == 0;
          if (is_whole || join_blocks(tile)) store_tile(tile);
          clear();
          part_begin = 0, parity ^= 1, ++tile;
        }
        index = following;
        if (--left == 0) return;
      }
    }
  }
};

template <class T, int kBits, SkinnyScales kScales, int kColumns, int kRowWarps>
__global__ void __launch_bounds__(kSkinnyThreads, skinny_blocks(kBits, kColumns))
    skinny_gemm(const __grid_constant__ SkinnyGemmParams p) {
#if CGRT_NO_PTX_90 && __CUDA_ARCH__ == 900
  if constexpr (kColumns > 1) return;  // its devices have hopper.cu's kernel for so many rows
#endif
  extern __shared__ __align__(16) unsigned char skinny_shared[];
  if constexpr (kColumns > 1 && kScales != SkinnyScales::kToWeights) {
    // Few rows go in small tiles, up to 16 in two columns.
    if (p.args.row_count != nullptr) {
      wait_for_predecessors();
      const std::uint32_t rows = count_at(p.args.row_count, p.rows);
      using Few = SkinnyProduct<T, kBits, kScales, 1, 1>;
      if (rows <= p.few_rows) return Few{p, skinny_shared}.run();
      if constexpr (kColumns > 2) {
        if (rows <= 16) return SkinnyProduct<T, kBits, kScales, 2, 4>{p, skinny_shared}.run();
      }
    }
  }
  SkinnyProduct<T, kBits, kScales, kColumns, kRowWarps>{p, skinny_shared}.run();
}

template <class T, int kBits>
void skinny_gemm_on_host(HostGrid, SkinnyGemmParams p) {
  const auto at = [](const void* array, std::uint64_t i) {
    return static_cast<double>(to_float(static_cast<const T*>(array)[i]));
  };
  const auto weight = [&](std::uint64_t row, std::uint64_t k) {
    const unsigned char* const bytes = static_cast<const unsigned char*>(p.args.weights) + row * p.weight_row_bytes;
    if constexpr (kBits == 16) {
      return at(bytes, k);
    } else {
      constexpr SkinnyWeights kWeights = kBits == 8 ? SkinnyWeights::kInt8 : SkinnyWeights::kInt4;
      return skinny_integer(kWeights, bytes, k) * at(p.args.scales, row * p.groups + k / p.group.value());
    }
  };
  for (std::uint64_t row = 0, rows = count_at(p.args.row_count, p.rows); row < rows; ++row) {
    for (std::uint64_t column = 0; column < p.n; ++column) {
      const std::uint64_t place = row * p.y_stride + column;
      double value = skinny_gemm_reference(
          p.activation, p.n, p.k, row, column,
          [&](std::uint64_t i, std::uint64_t k) { return at(p.args.x, i * p.x_stride + k); }, weight,
          [&](std::uint64_t i) { return p.args.bias == nullptr ? 0.0 : at(p.args.bias, i); });
      if (p.args.residual != nullptr) value += at(p.args.residual, place);
      static_cast<T*>(p.args.y)[place] = from_float<T>(static_cast<float>(value));
    }
  }
}

template <class T, int kBits, SkinnyScales kScales, int kColumns, int kRowWarps>
Kernel<SkinnyGemmParams> skinny_kernel_of_shape() {
  return make_kernel<skinny_gemm<T, kBits, kScales, kColumns, kRowWarps>, skinny_gemm_on_host<T, kBits>,
                     KernelResources{.registers = skinny_blocks(kBits, kColumns) == 1 ? 200 : 128,
                                     .max_threads = kSkinnyThreads}>();
}

template <int kBits, SkinnyScales kScales>
Kernel<SkinnyGemmParams> skinny_kernel_of_weights(DType type, SkinnyShape shape) {
  const auto of_type = [=]<class T>() {
    switch (shape.columns) {
      case 2:
        if constexpr (kBits == 16) {
          if (shape.row_warps == 2) return skinny_kernel_of_shape<T, kBits, kScales, 2, 2>();
        }
        return skinny_kernel_of_shape<T, kBits, kScales, 2, 4>();
      case 4: return skinny_kernel_of_shape<T, kBits, kScales, 4, 8>();
      case 8: return skinny_kernel_of_shape<T, kBits, kScales, 8, 8>();
      default: break;
    }
    if constexpr (kScales != SkinnyScales::kToWeights) {
      if (shape.row_warps == 1) return skinny_kernel_of_shape<T, kBits, kScales, 1, 1>();
    }
    if constexpr (kBits == 16) {
      return skinny_kernel_of_shape<T, kBits, kScales, 1, 1>();
    } else {
      return skinny_kernel_of_shape<T, kBits, kScales, 1, 4>();
    }
  };
  return type == DType::kFloat16 ? of_type.template operator()<__half>() : of_type.template operator()<__nv_bfloat16>();
}

}  // namespace cgrt::kernels
