#include <cstdint>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rows_backward/backward.cuh"
#include "cgrt_kernels/rows_backward/reference.h"

namespace cgrt::kernels {
namespace {

// Two blocks of 512 threads for a multiprocessor, if 64 registers are enough for a thread. Single elements take
// more of them on other architectures.
#if __CUDA_ARCH__ == 900
constexpr bool kElementsFit = true;
#else
constexpr bool kElementsFit = false;
#endif
template <RowOp kOp, class T, int kFloats, int kSize>
constexpr int kLeastBlocks = (kSize == 1 ? kElementsFit && (kOp != RowOp::kRmsNorm || sizeof(T) == 2)
                                         : kFloats * sizeof(T) < (kOp == RowOp::kLayerNorm ? 64 : 65))
                                 ? 2
                                 : 1;

// Each group of threads takes a row, read once: kFloats of dy and of saved are in the registers of each thread.
template <RowOp kOp, class T, class Group, int kFloats, int kSize = kPackSize<T>>
__global__ void __launch_bounds__(Group::kMostThreads, Group::kIsWarp ? 4 : kLeastBlocks<kOp, T, kFloats, kSize>)
    backward_in_registers(void* dx, const void* dy, const void* saved, const void* weight, float*, std::uint32_t,
                          float epsilon, std::uint32_t rows, std::uint32_t columns) {
  using Part = RowPart<T, kFloats / kSize, kSize, Group::kLanes>;
  using Pack = typename Part::Pack;
  constexpr bool kHeld = Part::kIsHalves && !kIsSoftmax<kOp> && kFloats <= 16;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < rows;
  const typename Part::Where place(group.thread(), has_row ? columns / kSize : 0);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint64_t first = std::uint64_t{group.row()} * place.count;
  Part x, g;
  x.load(static_cast<const Pack*>(saved) + first, place);
  g.load(static_cast<const Pack*>(dy) + first, place);
  RowWeights<Part, kHeld> weights(kIsSoftmax<kOp> ? nullptr : weight, place);
  const BackwardFacts facts = reduce_backward<kOp>(group, x, g, weights, place, epsilon, columns);
  write_gradient<kOp>(facts, x, g, weights, static_cast<Pack*>(dx) + first, place, [](int, int, float, float) {});
}

// `count` elements to shared memory, 16 bytes at a time with what is around them, but nothing from outside of
// `first` to `last`. They come to lie behind `to` as far as `from` is behind a multiple of 16 bytes.
template <class T>
__device__ __forceinline__ void copy_window(unsigned char* to, const T* from, std::uint32_t count, const T* first,
                                            const T* last) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / 16 * 16;
  const auto end = reinterpret_cast<std::uintptr_t>(from + count);
  for (std::uint32_t i = threadIdx.x * 16; begin + i < end; i += blockDim.x * 16) {
    const T* const piece = reinterpret_cast<const T*>(begin + i);
    if (piece >= first && piece + kPackSize<T> <= last) {
      copy_asynchronously(to + i, piece);
      continue;
    }
    for (int e = 0; e < kPackSize<T>; ++e) {
      if (piece + e >= first && piece + e < last) reinterpret_cast<T*>(to + i)[e] = piece[e];
    }
  }
}

// Shares of 8 are for short rows. Single elements: so many that 96 registers are left for each, and two blocks of 320
// threads fit.
template <int kFloats, int kSize>
constexpr int kSummedThreads = kFloats == 8 ? kMostShort / 8 : (kSize == 1 ? 640 : 512);

// A block, or a cluster of blocks, takes a row at a time and keeps the sums of its columns in registers. The next
// rows are on their way into shared memory meanwhile: packs where only the thread that asked for them reads them,
// single elements as they lie in memory, to stay there.
template <RowOp kOp, class T, int kFloats, int kSize = kPackSize<T>>
__global__ void __launch_bounds__(kSummedThreads<kFloats, kSize>)
    backward_summed(void* dx, const void* dy, const void* saved, const void* weight, float* partials,
                    std::uint32_t groups, float epsilon, std::uint32_t rows, std::uint32_t columns) {
  using Held = RowPart<T, kFloats / kSize, kSize>;
  using Pack = typename Held::Pack;
  constexpr int kPacks = Held::kPackCount;
  constexpr bool kIsPacked = kSize > 1;
  using Part = std::conditional_t<kIsPacked, Held, SharedElements<T, kPacks>>;
  extern __shared__ __align__(16) unsigned char shared[];
  BlocksPerRow<16> group;
  const typename Part::Where place(group.thread(), columns / kSize);
  const std::uint32_t share = blockDim.x * kFloats, begin = min(group.block() * share, columns);
  const auto slot = [&](std::uint32_t stage, int array, int pack) {
    return reinterpret_cast<Pack*>(shared) + ((stage * 2 + array) * kPacks + pack) * blockDim.x + threadIdx.x;
  };
  const auto window = [&](std::uint32_t stage, int array) {
    return shared + (stage * 2 + array) * (share * sizeof(T) + 16);
  };
  const auto row_of = [&](const void* array, std::uint64_t row) {
    return static_cast<const Pack*>(array) + row * place.count;
  };
  const auto fetch = [&](std::uint32_t stage, std::uint64_t row) {
    if (row < rows) {
      const Pack *const x = row_of(saved, row), *const g = row_of(dy, row);
      if constexpr (kIsPacked) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (!place.has(p)) continue;
          copy_asynchronously(slot(stage, 0, p), x + place.of(p));
          copy_asynchronously(slot(stage, 1, p), g + place.of(p));
        }
      } else {
        const std::uint32_t count = min(share, columns - begin);
        copy_window(window(stage, 0), x + begin, count, row_of(saved, 0), row_of(saved, rows));
        copy_window(window(stage, 1), g + begin, count, row_of(dy, 0), row_of(dy, rows));
      }
    }
    end_copy_group();
  };
  const auto take = [&](Part& part, std::uint32_t stage, int array, const Pack* from) {
    if constexpr (kIsPacked) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) part.packs[p] = place.has(p) ? *slot(stage, array, p) : Pack{};
    } else {
      const auto misalignment = reinterpret_cast<std::uintptr_t>(from + begin) % 16;
      part.packs.from = reinterpret_cast<const T*>(window(stage, array) + misalignment) + (place.first - begin);
    }
  };

  wait_for_predecessors();
  let_dependents_start();
  std::uint64_t row = group.row();
#pragma unroll
  for (int s = 0; s < kSummedStages - 1; ++s) fetch(s, row + std::uint64_t{group.rows()} * s);
  RowWeights<Held, true> weights(weight, place);
  float of_weight[kPacks][kSize] = {}, of_bias[kPacks][kSize] = {};
  for (std::uint32_t stage = 0; row < rows; row += group.rows(), ++group.turn) {
    if constexpr (!kIsPacked) {
      wait_for_copies<kSummedStages - 2>();
      __syncthreads();  // all have what they asked for, and are done with the stage that is free
    }
    const std::uint32_t free = stage == 0 ? kSummedStages - 1 : stage - 1;
    fetch(free, row + std::uint64_t{group.rows()} * (kSummedStages - 1));
    if constexpr (kIsPacked) wait_for_copies<kSummedStages - 1>();
    Part x, g;
    take(x, stage, 0, row_of(saved, row));
    take(g, stage, 1, row_of(dy, row));
    stage = stage == kSummedStages - 1 ? 0 : stage + 1;
    const BackwardFacts facts = reduce_backward<kOp>(group, x, g, weights, place, epsilon, columns);
    write_gradient<kOp>(facts, x, g, weights, static_cast<Pack*>(dx) + row * place.count, place,
                        [&](int p, int i, float gradient, float normalized) {
                          of_weight[p][i] += gradient * normalized;
                          if (kOp == RowOp::kLayerNorm) of_bias[p][i] += gradient;
                        });
  }
  float* const mine = partials + std::uint64_t{group.row()} * columns;
  const auto leave = [](float* to, const float(&sums)[kSize]) {
    if constexpr (kSize == 1) {
      *to = sums[0];
    } else {
#pragma unroll
      for (int i = 0; i < kSize; i += 4) {
        *reinterpret_cast<float4*>(to + i) = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
      }
    }
  };
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!place.has(p)) continue;
    float* const to = mine + place.of(p) * kSize;
    leave(to, of_weight[p]);
    if (kOp == RowOp::kLayerNorm) leave(to + std::uint64_t{groups} * columns, of_bias[p]);
  }
}

// A block per row at a time, element by element: rows of any length at any address.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(512)
    backward_any(void* dx, const void* dy, const void* saved, const void* weight, float* partials, std::uint32_t groups,
                 float epsilon, std::uint32_t rows, std::uint32_t columns) {
  BlocksPerRow<16> group;
  const T* const weights = static_cast<const T*>(weight);
  const float share = 1.0f / static_cast<float>(columns);
  const auto sum = [&](auto term) {
    float mine = 0;
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) mine += term(i);
    const float all = group.reduce(mine);
    ++group.turn;
    return all;
  };
  wait_for_predecessors();
  for (std::uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(saved) + row * columns;
    const T* const g = static_cast<const T*>(dy) + row * columns;
    T* const out = static_cast<T*>(dx) + row * columns;
    if constexpr (kIsSoftmax<kOp>) {
      const float all =
          sum([&](std::uint32_t i) { return to_float(g[i]) * (kOp == RowOp::kSoftmax ? to_float(x[i]) : 1.0f); });
      for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
        const float y = to_float(x[i]), gradient = to_float(g[i]);
        out[i] = from_float<T>(kOp == RowOp::kSoftmax ? y * (gradient - all) : gradient - exp_of(y) * all);
      }
    } else {
      const auto weighted = [&](std::uint32_t i) {
        return to_float(g[i]) * (weights != nullptr ? to_float(weights[i]) : 1.0f);
      };
      float mean = 0, mean_gradient = 0;
      if constexpr (kOp == RowOp::kLayerNorm) {
        mean = sum([&](std::uint32_t i) { return to_float(x[i]); }) * share;
        mean_gradient = sum(weighted) * share;
      }
      const float squares = sum([&](std::uint32_t i) { return (to_float(x[i]) - mean) * (to_float(x[i]) - mean); });
      const float scale = rsqrtf(squares * share + epsilon);
      const float product = sum([&](std::uint32_t i) { return weighted(i) * (to_float(x[i]) - mean); }) * share;
      for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
        const float centered = to_float(x[i]) - mean, gradient = to_float(g[i]);
        const float result = scale * (weighted(i) - mean_gradient - centered * scale * scale * product);
        if (partials != nullptr) {
          const bool is_first = row == blockIdx.x;
          float* const of_weight = partials + std::uint64_t{blockIdx.x} * columns + i;
          float* const of_bias = of_weight + std::uint64_t{groups} * columns;
          *of_weight = (is_first ? 0 : *of_weight) + gradient * centered * scale;
          if (kOp == RowOp::kLayerNorm) *of_bias = (is_first ? 0 : *of_bias) + gradient;
        }
        out[i] = from_float<T>(result);
      }
    }
  }
}

// Columns of what the groups have summed, always added in the same order.
template <class T>
__global__ void __launch_bounds__(kSumColumns* kSumLanes)
    sum_partials(void* dweight, void* dbias, const float* partials, std::uint32_t groups, std::uint32_t columns) {
  __shared__ float sums[kSumLanes][kSumColumns];
  const std::uint32_t column = blockIdx.x * kSumColumns + threadIdx.x, lane = threadIdx.y;
  const bool is_bias = blockIdx.y == 1;
  T* const out = static_cast<T*>(is_bias ? dbias : dweight);
  const float* const plane = partials + (is_bias ? std::uint64_t{groups} * columns : 0);
  wait_for_predecessors();
  let_dependents_start();
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (std::uint32_t group = lane; group < groups; group += kSumLanes) {
      sum += plane[std::uint64_t{group} * columns + column];
    }
  }
  sums[lane][threadIdx.x] = sum;
  __syncthreads();
  if (lane != 0 || column >= columns) return;
#pragma unroll
  for (std::uint32_t other = 1; other < kSumLanes; ++other) sum += sums[other][threadIdx.x];
  out[column] = from_float<T>(sum);
}

template <RowOp kOp, class T>
void backward_on_host(HostGrid, void* dx, const void* dy, const void* saved, const void* weight, float* partials,
                      std::uint32_t groups, float epsilon, std::uint32_t rows, std::uint32_t columns) {
  const auto read = [columns](const void* from, std::uint64_t first) {
    std::vector<double> values(from != nullptr ? columns : 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(to_float(static_cast<const T*>(from)[first + i]));
    }
    return values;
  };
  const std::vector<double> weights = read(weight, 0);
  std::vector<double> of_weight(columns), of_bias(columns);
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<double> values = read(dy, row * columns);
    row_backward_reference(kOp, values, read(saved, row * columns), weight != nullptr ? weights.data() : nullptr,
                           static_cast<double>(epsilon), of_weight.data(), of_bias.data());
    for (std::uint32_t i = 0; i < columns; ++i) {
      static_cast<T*>(dx)[row * columns + i] = from_float<T>(static_cast<float>(values[i]));
    }
  }
  if (partials == nullptr) return;
  const std::uint64_t plane = std::uint64_t{groups} * columns;
  for (std::uint64_t i = 0; i < plane; ++i) {  // all in the first group
    partials[i] = i < columns ? static_cast<float>(of_weight[i]) : 0.0f;
    if (kOp == RowOp::kLayerNorm) partials[plane + i] = i < columns ? static_cast<float>(of_bias[i]) : 0.0f;
  }
}

template <class T>
void sum_on_host(HostGrid grid, void* dweight, void* dbias, const float* partials, std::uint32_t groups,
                 std::uint32_t columns) {
  for (std::uint64_t plane = 0; plane < grid.grid.y; ++plane) {
    T* const out = static_cast<T*>(plane == 1 ? dbias : dweight);
    for (std::uint64_t i = 0; i < columns; ++i) {
      double sum = 0;
      for (std::uint64_t g = 0; g < groups; ++g)
        sum += static_cast<double>(partials[(plane * groups + g) * columns + i]);
      out[i] = from_float<T>(static_cast<float>(sum));
    }
  }
}

template <auto kKernel, RowOp kOp, class T, int kMostThreads = 512>
RowsBackwardKernel with_host_body() {
  return make_kernel<kKernel, backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMostThreads}>();
}

template <RowOp kOp, class T>
RowsBackwardKernel of_regime(RowBackwardRegime regime) {
  switch (regime) {
    case RowBackwardRegime::kLanes4: return with_host_body<backward_in_registers<kOp, T, LanesPerRow<4>, 16>, kOp, T>();
    case RowBackwardRegime::kLanes16:
      return with_host_body<backward_in_registers<kOp, T, LanesPerRow<16>, 16>, kOp, T>();
    case RowBackwardRegime::kWarp32: return with_host_body<backward_in_registers<kOp, T, WarpPerRow, 32>, kOp, T>();
    case RowBackwardRegime::kBlock8:
      return with_host_body<backward_in_registers<kOp, T, BlocksPerRow<16>, 8>, kOp, T>();
    case RowBackwardRegime::kBlock16:
      return with_host_body<backward_in_registers<kOp, T, BlocksPerRow<16>, 16>, kOp, T>();
    case RowBackwardRegime::kBlock32:
      return with_host_body<backward_in_registers<kOp, T, BlocksPerRow<16>, 32>, kOp, T>();
    case RowBackwardRegime::kElementLanes4:
      return with_host_body<backward_in_registers<kOp, T, LanesPerRow<4>, 16, 1>, kOp, T>();
    case RowBackwardRegime::kElementWarp16:
      return with_host_body<backward_in_registers<kOp, T, WarpPerRow, 16, 1>, kOp, T>();
    case RowBackwardRegime::kElements16:
      return with_host_body<backward_in_registers<kOp, T, BlocksPerRow<16>, 16, 1>, kOp, T>();
    default: break;
  }
  if constexpr (!kIsSoftmax<kOp>) {
    switch (regime) {
      case RowBackwardRegime::kSummed8: return with_host_body<backward_summed<kOp, T, 8>, kOp, T, kMostShort / 8>();
      case RowBackwardRegime::kSummed16: return with_host_body<backward_summed<kOp, T, 16>, kOp, T>();
      case RowBackwardRegime::kSummedElements16: return with_host_body<backward_summed<kOp, T, 16, 1>, kOp, T>();
      default: break;
    }
  }
  return with_host_body<backward_any<kOp, T>, kOp, T>();
}

template <RowOp kOp>
RowsBackwardKernel of_type(DType type, RowBackwardRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<kOp, float>(regime);
    case DType::kFloat16: return of_regime<kOp, __half>(regime);
    default: return of_regime<kOp, __nv_bfloat16>(regime);  // plan_rows_backward lets no other pass
  }
}

template <class T>
SumPartialsKernel sum_of_type() {
  return make_kernel<sum_partials<T>, sum_on_host<T>, KernelResources{.registers = 32, .max_threads = 512}>();
}

}  // namespace

RowsBackwardKernel rows_backward_kernel(RowOp op, DType type, RowBackwardRegime regime) {
  switch (op) {
    case RowOp::kSoftmax: return of_type<RowOp::kSoftmax>(type, regime);
    case RowOp::kLogSoftmax: return of_type<RowOp::kLogSoftmax>(type, regime);
    case RowOp::kLayerNorm: return of_type<RowOp::kLayerNorm>(type, regime);
    case RowOp::kRmsNorm: break;
  }
  return of_type<RowOp::kRmsNorm>(type, regime);
}

SumPartialsKernel sum_partials_kernel(DType type) {
  switch (type) {
    case DType::kFloat32: return sum_of_type<float>();
    case DType::kFloat16: return sum_of_type<__half>();
    default: return sum_of_type<__nv_bfloat16>();
  }
}

}  // namespace cgrt::kernels
