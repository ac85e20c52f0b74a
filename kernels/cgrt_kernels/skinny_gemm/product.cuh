// The kernel of skinny_gemm, and its host body. W's rows are the rows of the tensor cores' products and x's rows their
// columns, so that few rows of x waste only their arithmetic, which is free here.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/async_copy_or_zero.cuh"
#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/mma.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/skinny_gemm/kernels.h"
#include "cgrt_kernels/skinny_gemm/reference.h"
#include "cgrt_kernels/skinny_gemm/weights.cuh"

namespace cgrt::kernels {

template <class T, int kBits, SkinnyScales kScales, int kColumns, int kRowWarps>
struct SkinnyProduct {
  static constexpr int kDepth = skinny_depth(kColumns), kDepthWarps = kSkinnyWarps / kRowWarps;
  static constexpr int kPackValues = 128 / kBits, kEights = kPackValues / 8;  // in 16 bytes of W
  static constexpr int kWarpValues = 8 * kPackValues;                         // of k, that a warp takes in a stage
  // Whether x is put into the order of weights where it was copied to, a stage ahead, rather than by each warp: then
  // one stage fewer is on its way.
  static constexpr bool kOrdersAhead = kBits == 4 && kDepth > 3;
  static constexpr std::uint32_t kXRowBytes = skinny_x_row_bytes(kBits, kRowWarps);
  static_assert(kDepthWarps == 1 || kColumns == 1);

  struct Scales {
    T of[2][2];  // rows of the thread, packs of a row
  };

  const SkinnyGemmParams& p;
  unsigned char* const shared;
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t row_warp = warp % kRowWarps, k_warp = warp / kRowWarps;
  const std::uint32_t group = lane / 4, quad = lane % 4;  // as mma.cuh's g and t
  const std::uint32_t stage_bytes = kSkinnyStageBytes + p.rows * kXRowBytes;
  std::uint32_t rows = 0;  // that there are
  float sums[kColumns][4];

  __device__ __forceinline__ unsigned char* stage_at(std::uint32_t slot) const { return shared + slot * stage_bytes; }
  // Of y, which a thread's first row of W gives.
  __device__ __forceinline__ std::uint32_t first_column(std::uint32_t tile) const {
    return (tile * kRowWarps + row_warp) * p.warp_columns + group;
  }

  // A stage, and what this thread reads of it in the weights or in the scales.
  struct Place {
    std::uint32_t tile, index;
    const unsigned char* row;  // the first of two
    bool has_rows[2];
  };
  // Of a pack's first value.
  __device__ __forceinline__ std::uint32_t k_of(const Place& place, int pack) const {
    return place.index * (kDepthWarps * kWarpValues) + k_warp * kWarpValues + (pack * 4 + quad) * kPackValues;
  }
  template <bool kOfWeights>
  __device__ __forceinline__ void enter_tile(Place& place) const {
    if constexpr (kOfWeights || kScales != SkinnyScales::kNone) {
      const std::uint32_t first = first_column(place.tile);
      place.has_rows[0] = first < p.n;
      place.has_rows[1] = first < p.n && first + p.distance < p.weight_rows;
      place.row = static_cast<const unsigned char*>(kOfWeights ? p.args.weights : p.args.scales) +
                  first * (kOfWeights ? p.weight_row_bytes : p.scale_row_bytes);
      if (kOfWeights) place.row += std::uint64_t{k_of(place, 0)} * kBits / 8;
    }
  }
  template <bool kOfWeights>
  __device__ __forceinline__ void advance(Place& place) const {
    if (++place.index == p.stages) {
      place.index = 0, ++place.tile;
      return enter_tile<kOfWeights>(place);
    }
    if constexpr (kOfWeights) place.row += kDepthWarps * kWarpValues * kBits / 8;
  }

  // Each thread loads what it multiplies, to where nobody else reads.
  __device__ __forceinline__ void load_weights(const Place& place, std::uint32_t slot) const {
    unsigned char* const to = stage_at(slot) + warp * 2048 + lane * 16;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int pack = 0; pack < 2; ++pack) {
        copy_or_zero_asynchronously(to + (i * 2 + pack) * 512, place.row + i * p.weight_distance_bytes + pack * 64,
                                    place.has_rows[i] && k_of(place, pack) < p.k);
      }
    }
  }

  // each(place, row, pack) of the 16 bytes of x that this thread copies in a stage, in the order in which lanes read
  // them: neighbours side by side.
  static constexpr std::uint32_t kXPacks = kDepthWarps * kWarpValues / 8;  // of a row
  template <class Each>
  __device__ __forceinline__ void for_packs_of_x(std::uint32_t slot, Each each) const {
    unsigned char* const stage = stage_at(slot) + kSkinnyStageBytes;
    for (std::uint32_t i = threadIdx.x; i < rows * kXPacks; i += kSkinnyThreads) {
      const std::uint32_t row = i / kXPacks, pack = i % kXPacks;
      const std::uint32_t of_lane = pack / kEights % 4, eight = pack % kEights, four = pack / (4 * kEights);
      each(stage + row * kXRowBytes + ((four * kEights + eight) * 4 + of_lane) * 16, row, pack);
    }
  }
  // copy(to, from, is_there)
  template <class Copy>
  __device__ __forceinline__ void load_x(std::uint32_t index, std::uint32_t slot, Copy copy) const {
    const T* const x = static_cast<const T*>(p.args.x);
    for_packs_of_x(slot, [&](unsigned char* to, std::uint32_t row, std::uint32_t pack) {
      const std::uint32_t k = (index * kXPacks + pack) * 8;
      const bool is_there = k < p.k;
      copy(to, is_there ? x + row * p.x_stride + k : x, is_there);
    });
  }
  __device__ __forceinline__ void order_x(std::uint32_t slot) const {
    for_packs_of_x(slot, [](unsigned char* at, std::uint32_t, std::uint32_t) {
      auto* const pack = reinterpret_cast<uint4*>(at);
      *pack = in_order_of_weights<kBits>(*pack);
    });
  }

  __device__ __forceinline__ void load_scales(Scales& scales, const Place& place) const {
    if constexpr (kScales != SkinnyScales::kNone) {
#pragma unroll
      for (int pack = 0; pack < 2; ++pack) {
        const std::uint32_t k = k_of(place, pack), group = p.group.quotient(k);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          scales.of[i][pack] = from_float<T>(0);
          if (place.has_rows[i] && k < p.k)
            scales.of[i][pack] = reinterpret_cast<const T*>(place.row + i * p.scale_distance_bytes)[group];
        }
      }
    }
  }

  __device__ __forceinline__ void multiply_stage(std::uint32_t slot, const Scales& scales) {
    const unsigned char* const w = stage_at(slot) + warp * 2048 + lane * 16;
    const unsigned char* const x =
        stage_at(slot) + kSkinnyStageBytes + group * kXRowBytes + k_warp * kWarpValues * 2 + quad * 16;
#pragma unroll
    for (int pack = 0; pack < 2; ++pack) {
      const uint4 packs[2] = {*reinterpret_cast<const uint4*>(w + pack * 512),
                              *reinterpret_cast<const uint4*>(w + (2 + pack) * 512)};
      float of_group[kColumns][4] = {};
      auto& to = choose(of_group);
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        std::uint32_t pairs[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          unpack_weights<T, kBits>(packs[i], eight, pairs[i]);
          if constexpr (kScales == SkinnyScales::kToWeights) {
            const T twice[2] = {scales.of[i][pack], scales.of[i][pack]};
            std::uint32_t scale;
            memcpy(&scale, twice, 4);
#pragma unroll
            for (std::uint32_t& pair : pairs[i]) pair = multiply<T>(pair, scale);
          }
        }
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
          if (column * 8 >= rows) break;
          uint4 eights = {};
          if (column * 8 + group < rows) {
            eights = *reinterpret_cast<const uint4*>(x + column * 8 * kXRowBytes + (pack * kEights + eight) * 64);
          }
          if constexpr (!kOrdersAhead) eights = in_order_of_weights<kBits>(eights);
          multiply_add<T>(to[column], pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1], eights.x, eights.y);
          multiply_add<T>(to[column], pairs[0][2], pairs[1][2], pairs[0][3], pairs[1][3], eights.z, eights.w);
        }
      }
      if constexpr (kScales == SkinnyScales::kToSums) {
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[column][i] += of_group[column][i] * to_float(scales.of[i / 2][pack]);
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

  // To the first of the warps that share rows.
  __device__ __forceinline__ void join_warps() {
    if constexpr (kDepthWarps == 1) return;
    auto* const joined = reinterpret_cast<float4*>(stage_at(kDepth)) + threadIdx.x;
    if (k_warp > 0) *joined = {sums[0][0], sums[0][1], sums[0][2], sums[0][3]};
    __syncthreads();
    if (k_warp > 0) return;
#pragma unroll
    for (int other = 1; other < kDepthWarps; ++other) add(sums[0], joined[other * kRowWarps * 32]);
  }
  static __device__ __forceinline__ void add(float (&to)[4], float4 from) {
    to[0] += from.x, to[1] += from.y, to[2] += from.z, to[3] += from.w;
  }

  // The block that has the stage, counted through all tiles.
  __device__ __forceinline__ std::uint32_t block_of(std::uint64_t stage) const {
    return static_cast<std::uint32_t>(((stage + 1) * gridDim.x - 1) / (std::uint64_t{p.tiles} * p.stages));
  }

  // With the other blocks of the tile. True in the last of them, which has all sums then.
  __device__ __forceinline__ bool join_blocks(std::uint32_t tile) {
    const std::uint64_t first_stage = std::uint64_t{tile} * p.stages;
    const std::uint32_t first = block_of(first_stage), last = block_of(first_stage + p.stages - 1);
    // A block has at most two parts: of a tile that others began, and of one that it begins.
    const auto part = [&](std::uint32_t block, int column) {
      const std::size_t slot = std::size_t{2} * block + (block == first ? 1 : 0);
      return static_cast<float4*>(p.parts) + ((slot * kRowWarps + row_warp) * kColumns + column) * 32 + lane;
    };
    if (k_warp == 0) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        if (column * 8 >= rows) break;
        *part(blockIdx.x, column) = {sums[column][0], sums[column][1], sums[column][2], sums[column][3]};
      }
    }
    if (!is_last_to_arrive(&p.counters[first], last - first + 1)) return false;
    if (k_warp > 0) return true;
    clear();
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
      if (column * 8 >= rows) break;
#pragma unroll 4
      for (std::uint32_t block = first; block <= last; ++block) add(sums[column], __ldcg(part(block, column)));
    }
    return true;
  }

  __device__ __forceinline__ float with_bias(float sum, std::uint32_t row) const {
    return p.args.bias == nullptr ? sum : sum + to_float(static_cast<const T*>(p.args.bias)[row]);
  }
  __device__ __forceinline__ float activated(float sum) const {
    return p.activation == SkinnyActivation::kGelu       ? gelu_of(sum)
           : p.activation == SkinnyActivation::kGeluTanh ? gelu_tanh_of(sum)
                                                         : sum;
  }
  __device__ __forceinline__ void store(std::uint32_t row, std::uint32_t column, float value) const {
    const std::uint64_t at = row * p.y_stride + column;
    if (p.args.residual != nullptr) value += to_float(static_cast<const T*>(p.args.residual)[at]);
    static_cast<T*>(p.args.y)[at] = from_float<T>(value);
  }
  __device__ __forceinline__ void store_tile(std::uint32_t tile) const {
    if (k_warp > 0) return;
    const std::uint32_t first = first_column(tile);
#pragma unroll
    for (int column = 0; column < kColumns; ++column) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t row = column * 8 + quad * 2 + i;
        if (row >= rows || first >= p.n) continue;
        const float value = with_bias(sums[column][i], first);
        if (p.activation == SkinnyActivation::kSiluGate) {
          store(row, first, silu_of(value) * with_bias(sums[column][2 + i], p.n + first));
          continue;
        }
        store(row, first, activated(value));
        if (first + 8 < p.n) store(row, first + 8, activated(with_bias(sums[column][2 + i], first + 8)));
      }
    }
  }

  __device__ __forceinline__ void run() {
    const std::uint64_t all = std::uint64_t{p.tiles} * p.stages, begin = all * blockIdx.x / gridDim.x;
    const auto count = static_cast<std::uint32_t>(all * (blockIdx.x + 1) / gridDim.x - begin);
    Place next{static_cast<std::uint32_t>(begin / p.stages), static_cast<std::uint32_t>(begin % p.stages)};  // to load
    Place following = next;  // to multiply after the current one
    std::uint32_t tile = next.tile, index_of_x = next.index, part_begin = next.index;
    enter_tile<true>(next);
    enter_tile<false>(following);
    Scales scales, next_scales;

    if (!p.weights_are_constant) wait_for_predecessors();
    load_scales(scales, following);
    advance<false>(following);
#pragma unroll
    for (std::uint32_t slot = 0; slot < kDepth - 1; ++slot) {
      if (slot < count) {
        load_weights(next, slot);
        advance<true>(next);
      }
      end_copy_group();
    }
    wait_for_predecessors();
    rows = count_at(p.args.row_count, p.rows);
    if (rows == 0) return wait_for_copies<0>();
    for (std::uint32_t slot = 0; slot < kDepth - 1 && slot < count; ++slot) {
      load_x(index_of_x, slot, [](unsigned char* to, const T* from, bool is_there) {
        *reinterpret_cast<uint4*>(to) = is_there ? *reinterpret_cast<const uint4*>(from) : uint4{};
      });
      if (++index_of_x == p.stages) index_of_x = 0;
    }
    if constexpr (kOrdersAhead) order_x(0);

    clear();
    std::uint32_t slot = 0;
    for (std::uint32_t left = count; left > 0; --left) {
      wait_for_copies<kOrdersAhead ? kDepth - 3 : kDepth - 2>();
      if constexpr (kOrdersAhead) {
        if (left > 1) order_x(slot + 1 == kDepth ? 0 : slot + 1);
      }
      __syncthreads();
      if (left >= kDepth) {
        const std::uint32_t next_slot = slot == 0 ? kDepth - 1 : slot - 1;
        load_weights(next, next_slot);
        load_x(next.index, next_slot, copy_or_zero_asynchronously);
        advance<true>(next);
      } else {
        let_dependents_start();
      }
      end_copy_group();
      if (left > 1) load_scales(next_scales, following);
      multiply_stage(slot, scales);
      scales = next_scales;
      if (following.index == 0 || left == 1) {
        join_warps();
        const bool is_whole = part_begin == 0 && following.index == 0;
        if (is_whole || join_blocks(tile)) store_tile(tile);
        clear();
        part_begin = 0;
      }
      tile = following.tile;
      advance<false>(following);
      if (++slot == kDepth) slot = 0;
    }
  }
};

template <class T, int kBits, SkinnyScales kScales, int kColumns, int kRowWarps>
__global__ void __launch_bounds__(kSkinnyThreads, kColumns == 1 ? 3 : 2)
    skinny_gemm(const __grid_constant__ SkinnyGemmParams p) {
  extern __shared__ __align__(16) unsigned char skinny_shared[];
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
                     KernelResources{.registers = kColumns == 1 ? 80 : 128, .max_threads = kSkinnyThreads}>();
}

template <int kBits, SkinnyScales kScales>
Kernel<SkinnyGemmParams> skinny_kernel_of_weights(DType type, SkinnyShape shape) {
  const auto of_type = [=]<class T>() {
    switch (shape.columns) {
      case 2: return skinny_kernel_of_shape<T, kBits, kScales, 2, 8>();
      case 4: return skinny_kernel_of_shape<T, kBits, kScales, 4, 8>();
      case 8: return skinny_kernel_of_shape<T, kBits, kScales, 8, 8>();
      default: break;
    }
    if constexpr (kBits > 4 && kScales != SkinnyScales::kToWeights) {
      if (shape.row_warps == 1) return skinny_kernel_of_shape<T, kBits, kScales, 1, 1>();
    }
    return skinny_kernel_of_shape<T, kBits, kScales, 1, 4>();
  };
  return type == DType::kFloat16 ? of_type.template operator()<__half>() : of_type.template operator()<__nv_bfloat16>();
}

}  // namespace cgrt::kernels
