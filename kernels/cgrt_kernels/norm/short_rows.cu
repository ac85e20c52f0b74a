#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/common/word.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// One block takes all rows, a warp one at a time, and writes the gradients of the weights itself: a second kernel would
// take longer. Single elements, kPerLane of a lane: little code, as each instruction is fetched for one row or two.
template <NormOp kOp, class T, int kPerLane>
__global__ void __launch_bounds__(few_warps(kPerLane * 32) * 32) norm_backward_few(NormBackwardParams p) {
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  extern __shared__ float sums[];  // of each warp's rows: of dweight, then of dbias
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  wait_for_predecessors();
  let_dependents_start();
  const auto has = [&](int i) { return lane + 32 * i < p.columns; };
  T held[kPerLane], from_x[kPerLane], from_dy[kPerLane];
  const auto load = [&](T(&values)[kPerLane], const void* array, std::uint32_t row) {
    const T* const from = static_cast<const T*>(array) + std::uint64_t{row} * p.columns + lane;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) values[i] = row < p.rows && has(i) ? from[32 * i] : T{};
  };
  // Weights that are not there are ones: something else is read meanwhile.
  load(held, p.weight != nullptr ? p.weight : p.dy, 0);
  load(from_x, p.x, warp);
  load(from_dy, p.dy, warp);
  float weights[kPerLane], of_weight[kPerLane] = {}, of_bias[kPerLane] = {};
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) weights[i] = p.weight != nullptr ? to_float(held[i]) : 1.0f;
#pragma unroll 1
  for (std::uint32_t row = warp; row < p.rows; row += warps) {
    const std::uint64_t first = std::uint64_t{row} * p.columns + lane;
    float x[kPerLane], dy[kPerLane], mean = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) x[i] = to_float(from_x[i]), dy[i] = to_float(from_dy[i]);
    load(from_x, p.x, row + warps);
    load(from_dy, p.dy, row + warps);
    if constexpr (kIsLayer) {
#pragma unroll
      for (const float value : x) mean += value;
      mean = reduce_lanes(mean) * p.one_of_columns;
    }
    float squares = 0, sum = 0, product = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      x[i] = has(i) ? x[i] - mean : 0.0f;
      const float g = dy[i] * weights[i];
      squares += x[i] * x[i];
      product += g * x[i];
      if (kIsLayer) sum += g;
    }
    const float scale = rsqrtf(reduce_lanes(squares) * p.one_of_columns + p.epsilon);
    const float slope = -scale * scale * reduce_lanes(product) * p.one_of_columns;
    const float offset = kIsLayer ? reduce_lanes(sum) * p.one_of_columns : 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (has(i)) {
        static_cast<T*>(p.dx)[first + 32 * i] =
            from_float<T>(scale * (fmaf(dy[i], weights[i], -offset) + slope * x[i]));
      }
      of_weight[i] = fmaf(dy[i], scale * x[i], of_weight[i]);
      of_bias[i] += dy[i];
    }
  }
  const std::uint32_t plane = warps * p.columns;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    float* const to = sums + warp * p.columns + lane + 32 * i;
    if (has(i)) *to = of_weight[i];
    if (kIsLayer && has(i)) to[plane] = of_bias[i];
  }
  __syncthreads();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < (kIsLayer ? 2 : 1) * p.columns; i += blockDim.x) {
    const bool is_bias = i >= p.columns;
    const std::uint32_t column = is_bias ? i - p.columns : i;
    const float* const from = sums + (is_bias ? plane : 0) + column;
    float sum = 0;
#pragma unroll 4
    for (std::uint32_t other = 0; other < warps; ++other) sum += from[other * p.columns];
    T* const to = static_cast<T*>(is_bias ? p.dbias : p.dweight);
    if (to != nullptr) to[column] = from_float<T>(sum);
  }
}

#if __CUDA_ARCH__ >= 900

// `bytes` of shared to global memory; addresses and size are multiples of 16. The thread that asked waits for its
// groups.
__device__ __forceinline__ void store_bulk(void* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void end_store_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until all groups but the last kPending have been read from shared memory.
template <int kPending>
__device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

// A word of shared memory, whose address stays in one register.
__device__ __forceinline__ std::uint32_t load_word(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

#endif

// Short rows that are not whole packs, in aligned arrays: `shares.share` rows together are. Each warp has so many rows
// in flight to its own part of shared memory, where dx takes the place of dy, and back, all in bulk. kLanes lanes take
// a row, words of it in turn, whose first and last may be another row's by half. All rows of a lane begin alike.
template <NormOp kOp, class T, int kLanes, int kWords>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_backward_tiled(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  constexpr int kOfWord = Word<T>::kSize;
  constexpr std::uint32_t kAtOnce = 32 / kLanes;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ BulkBarrier barriers[kMaxThreads / 32][kTileStages];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const std::uint32_t row_of_lane = lane / kLanes, place = lane % kLanes;
  const std::uint32_t array_bytes = p.shares.share * p.columns * sizeof(T);  // of a chunk, a multiple of 16
  unsigned char* const mine = shared + warp * (kTileStages * 2 * array_bytes);
  const auto slot = [&](std::uint32_t stage, int array) {
    return mine + (stage * 2 + static_cast<std::uint32_t>(array)) * array_bytes;
  };
  if (lane == 0) {
    for (int s = 0; s < kTileStages; ++s) barriers[warp][s].initialize();
    make_barriers_visible();
  }
  __syncwarp();
  const std::uint32_t chunks = (p.rows + p.shares.share - 1) / p.shares.share, step = gridDim.x * warps;
  const auto rows_of = [&](std::uint32_t chunk) { return min(p.rows - chunk * p.shares.share, p.shares.share); };
  // Elements of a chunk that whole packs do not have: at the end of the arrays.
  const auto fetch = [&](std::uint32_t stage, std::uint32_t chunk) {
    if (chunk >= chunks) return;
    const std::uint64_t first = std::uint64_t{chunk} * p.shares.share * p.columns;
    const std::uint32_t count = rows_of(chunk) * p.columns, whole = count / kPackSize<T> * kPackSize<T>;
    if (lane == 0) {
      BulkBarrier& barrier = barriers[warp][stage];
      const std::uint32_t bytes = whole * sizeof(T);
      barrier.expect(2 * bytes);
      if (bytes != 0) {
        barrier.copy(slot(stage, 0), static_cast<const T*>(p.x) + first, bytes);
        barrier.copy(slot(stage, 1), static_cast<const T*>(p.dy) + first, bytes);
      }
    }
    if (whole + lane < count) {
      reinterpret_cast<T*>(slot(stage, 0))[whole + lane] = static_cast<const T*>(p.x)[first + whole + lane];
      reinterpret_cast<T*>(slot(stage, 1))[whole + lane] = static_cast<const T*>(p.dy)[first + whole + lane];
    }
  };

  wait_for_predecessors();
  let_dependents_start();
  std::uint32_t chunk = blockIdx.x * warps + warp;
#pragma unroll 1
  for (std::uint32_t s = 0; s + 1 < kTileStages; ++s) fetch(s, chunk + s * step);

  // Of word i of this lane, from the row's begin on: its columns are begin + kOfWord * kLanes * i + k.
  const std::uint32_t odd = kOfWord == 2 ? row_of_lane * p.columns % 2 : 0;
  const int begin = static_cast<int>(place * kOfWord - odd);  // may be -1
  const int limit = static_cast<int>(p.columns) - begin;
  const auto offset_of = [](int i, int k) { return kOfWord * kLanes * i + k; };
  const auto has = [&](int i, int k) { return offset_of(i, k) < limit && (i + k > 0 || begin >= 0); };
  const auto has_word = [&](int i) { return offset_of(i, 0) < limit; };
  const auto is_last = [&](int i) { return offset_of(i, 1) == limit; };  // of a pair, only the first is the row's
  const auto column_of = [&](int i, int k) { return begin + offset_of(i, k); };
  float weights[kWords][kOfWord], of_weight[kWords][kOfWord] = {}, of_bias[kWords][kOfWord] = {};
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
#pragma unroll
    for (int k = 0; k < kOfWord; ++k) {
      weights[i][k] = !has(i, k)            ? 0.0f
                      : p.weight == nullptr ? 1.0f
                                            : to_float(static_cast<const T*>(p.weight)[column_of(i, k)]);
    }
  }

  std::uint32_t stage = 0, phase = 0;
#pragma unroll 1
  for (; chunk < chunks; chunk += step) {
    barriers[warp][stage].wait(phase);
    __syncwarp();
    const std::uint32_t rows = rows_of(chunk);
#pragma unroll 1
    for (std::uint32_t first = 0; first < rows; first += kAtOnce) {
      const std::uint32_t row = first + row_of_lane;  // perhaps none
      const std::uint32_t at = row * p.columns / kOfWord + place;
      auto* const to_dx = reinterpret_cast<std::uint32_t*>(slot(stage, 1)) + at;
      const std::uint32_t from_dy = shared_address(to_dx), from_x = from_dy - array_bytes;
      float x[kWords][kOfWord], mean = 0;
      std::uint32_t gradients[kWords];
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        std::uint32_t word = 0;
        gradients[i] = 0;
        if (has_word(i)) word = load_word(from_x + kLanes * 4 * i), gradients[i] = load_word(from_dy + kLanes * 4 * i);
        if (kOfWord == 2 && is_last(i)) word &= 0xffff, gradients[i] &= 0xffff;
        if (kOfWord == 2 && i == 0 && begin < 0) word &= 0xffff0000, gradients[i] &= 0xffff0000;
        Word<T>::unpack(word, x[i]);
#pragma unroll
        for (int k = 0; k < kOfWord; ++k) {
          if (kIsLayer) mean += x[i][k];
        }
      }
      if (kIsLayer) mean = reduce_lanes<kLanes>(mean) * p.one_of_columns;
      float squares = 0, sum = 0, product = 0;
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        float dy[kOfWord];
        Word<T>::unpack(gradients[i], dy);
#pragma unroll
        for (int k = 0; k < kOfWord; ++k) {
          if (kIsLayer && has(i, k)) x[i][k] -= mean;
          const float g = dy[k] * weights[i][k];
          squares += x[i][k] * x[i][k];
          product += g * x[i][k];
          if (kIsLayer) sum += g;
        }
      }
      const float scale = rsqrtf(reduce_lanes<kLanes>(squares) * p.one_of_columns + p.epsilon);
      const float slope = -scale * scale * (scale * reduce_lanes<kLanes>(product) * p.one_of_columns);
      const float offset = kIsLayer ? -scale * (reduce_lanes<kLanes>(sum) * p.one_of_columns) : 0.0f;
      __syncwarp();  // rows that share a word have read it
      if (row < rows) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
          float dy[kOfWord], dx[kOfWord];
          Word<T>::unpack(gradients[i], dy);
#pragma unroll
          for (int k = 0; k < kOfWord; ++k) {
            dx[k] = fmaf(scale * weights[i][k], dy[k], fmaf(slope, x[i][k], offset));
            of_weight[i][k] = fmaf(dy[k], scale * x[i][k], of_weight[i][k]);
            if (kIsLayer) of_bias[i][k] += dy[k];
          }
          const std::uint32_t word = Word<T>::pack(dx);
          if (has(i, kOfWord - 1) && (i > 0 || begin >= 0)) to_dx[kLanes * i] = word;
          if constexpr (kOfWord == 2) {
            auto* const halves = reinterpret_cast<std::uint16_t*>(to_dx + kLanes * i);
            if (is_last(i)) halves[0] = static_cast<std::uint16_t>(word);
            if (i == 0 && begin < 0) halves[1] = static_cast<std::uint16_t>(word >> 16);
          }
        }
      }
      __syncwarp();
    }
    const std::uint64_t first = std::uint64_t{chunk} * p.shares.share * p.columns;
    const std::uint32_t count = rows * p.columns, whole = count / kPackSize<T> * kPackSize<T>;
    if (whole + lane < count) {
      static_cast<T*>(p.dx)[first + whole + lane] = reinterpret_cast<const T*>(slot(stage, 1))[whole + lane];
    }
    make_barriers_visible();
    __syncwarp();
    if (lane == 0) {
      if (whole != 0) store_bulk(static_cast<T*>(p.dx) + first, slot(stage, 1), whole * sizeof(T));
      end_store_group();
      wait_for_stores<1>();
    }
    __syncwarp();
    fetch(stage == 0 ? kTileStages - 1 : stage - 1, chunk + (kTileStages - 1) * step);
    if (++stage == kTileStages) stage = 0, phase ^= 1;
  }
  if (lane == 0) wait_for_stores<0>();

  // Sums of the block: rows that are taken at once have theirs beside each other.
  __syncthreads();
  constexpr std::uint32_t kPlanes = kIsLayer ? 2 : 1;
  float* const sums = reinterpret_cast<float*>(shared);
  const std::uint32_t others = warps * kAtOnce;
#pragma unroll
  for (std::uint32_t plane = 0; plane < kPlanes; ++plane) {
    float* const to = sums + (plane * others + threadIdx.x / kLanes) * p.columns;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
#pragma unroll
      for (int k = 0; k < kOfWord; ++k) {
        if (has(i, k)) to[column_of(i, k)] = plane == 0 ? of_weight[i][k] : of_bias[i][k];
      }
    }
  }
  __syncthreads();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < kPlanes * p.columns; i += blockDim.x) {
    const std::uint32_t plane = i >= p.columns ? 1 : 0, column = i - plane * p.columns;
    float sum = 0;
#pragma unroll 8
    for (std::uint32_t other = 0; other < others; ++other) sum += sums[(plane * others + other) * p.columns + column];
    p.partials[(std::uint64_t{plane} * p.groups + blockIdx.x) * p.columns + column] = sum;
  }
#endif
}

template <auto kKernel, NormOp kOp, class T, std::uint32_t kThreads>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kThreads}>();
}

template <NormOp kOp, class T>
NormBackwardKernel few(std::uint32_t columns) {
  if (columns <= 64) return with_host_body<norm_backward_few<kOp, T, 2>, kOp, T, few_warps(64) * 32>();
  if (columns <= 128) return with_host_body<norm_backward_few<kOp, T, 4>, kOp, T, few_warps(128) * 32>();
  return with_host_body<norm_backward_few<kOp, T, 8>, kOp, T, few_warps(256) * 32>();
}

template <NormOp kOp, class T>
NormBackwardKernel tiled(std::uint32_t words) {
  if (words <= 32) return with_host_body<norm_backward_tiled<kOp, T, 8, 4>, kOp, T, kMaxThreads>();
  if (words <= 56) return with_host_body<norm_backward_tiled<kOp, T, 8, 7>, kOp, T, kMaxThreads>();
  if (words <= 64) return with_host_body<norm_backward_tiled<kOp, T, 8, 8>, kOp, T, kMaxThreads>();
  return with_host_body<norm_backward_tiled<kOp, T, 16, 8>, kOp, T, kMaxThreads>();
}

template <class Get>
NormBackwardKernel of_op(NormOp op, DType type, Get get) {
  return of_float_type(type, Alignment::kUnaligned, [=]<class T, Alignment>() {
    return op == NormOp::kLayerNorm ? get.template operator()<NormOp::kLayerNorm, T>()
                                    : get.template operator()<NormOp::kRmsNorm, T>();
  });
}

}  // namespace

NormBackwardKernel norm_summed_few(NormOp op, DType type, std::uint32_t columns) {
  return of_op(op, type, [=]<NormOp kOp, class T>() { return few<kOp, T>(columns); });
}

NormBackwardKernel norm_summed_tiled(NormOp op, DType type, std::uint32_t words) {
  return of_op(op, type, [=]<NormOp kOp, class T>() { return tiled<kOp, T>(words); });
}

}  // namespace cgrt::kernels
