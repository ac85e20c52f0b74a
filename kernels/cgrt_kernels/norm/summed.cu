#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/common/whole.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/row_parts.cuh"

namespace cgrt::kernels {
namespace {

// Of all warps of a row.
__device__ __forceinline__ Comoments join_warps(RowParts<Comoments>& parts, float one_of_all) {
  parts.wait();
  float mean = 0;
  parts.each([&](const Comoments& part) { mean += part.count * part.mean; });
  parts.reduce(mean);
  mean *= one_of_all;
  Comoments row{0, mean, 0, 0, 0};
  parts.each([&](const Comoments& part) {
    const float away = part.mean - mean;
    row.squares += part.squares + part.count * away * away;
    row.sum += part.sum;
    row.product += part.product + part.sum * away;
  });
  parts.next();
  parts.reduce(row.squares, row.sum, row.product);
  return row;
}
__device__ __forceinline__ Products join_warps(RowParts<Products>& parts, float) {
  parts.wait();
  Products row{0, 0};
  parts.each([&](const Products& part) { row = merge(row, part); });
  parts.next();
  parts.reduce(row.squares, row.product);
  return row;
}

// Some lanes of a warp, some warps of a block, or a cluster of blocks take a row at a time. Each thread has the same
// columns of all its rows and keeps their sums in registers. Where rows are not aligned, the plan sees to it that all
// rows of a thread begin alike between multiples of 16 bytes. Each thread fetches its packs of the next rows into its
// own part of shared memory, so that nobody waits for what others have fetched. It reads a row there twice, before and
// after the warps of a row have told each other their sums; meanwhile it does the first half of the next row. At the
// end the sums of all rows of a block are added.
template <NormOp kOp, class T, int kLanes, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_backward_summed(NormBackwardParams p) {
  constexpr int kPacks = kSumPacks, kSize = kPackSize<T>;
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned, kIsLayer = kOp == NormOp::kLayerNorm;
  constexpr std::uint32_t kWarpBytes = kPacks * 32 * 16;  // of an array
  constexpr std::uint32_t kStageBytes = kSumStageBytes<kAlignment>;
  using Row = Tile<T, kPacks, kLanes, kAlignment>;
  using Pack = typename Row::Pack;
  using Part = std::conditional_t<kIsLayer, Comoments, Products>;
  extern __shared__ __align__(16) unsigned char shared[];
  RowParts<Part> parts;
  const std::uint32_t row_threads = kLanes < 32 ? kLanes : p.shares.stride / kPacks;
  const std::uint32_t rows_of_block = blockDim.x / row_threads, index = threadIdx.x / row_threads;
  const std::uint32_t thread = threadIdx.x % row_threads, lane = threadIdx.x % 32;
  if constexpr (kLanes == 32) parts.initialize(index, row_threads / 32, thread);
  const bool is_alone = kLanes < 32 || parts.is_alone();

  const std::uint32_t begin = min(parts.block * p.shares.share, p.columns);
  const std::uint32_t count = min(p.shares.share, p.columns - begin);
  const std::uint32_t group = blockIdx.x / parts.blocks, step = gridDim.x / parts.blocks * rows_of_block;
  std::uint32_t row = group * rows_of_block + index;
  const typename Row::Where place(static_cast<const T*>(p.dx) + std::uint64_t{row} * p.columns + begin, count, thread);
  const int packs = min((place.packs - min(place.first, place.packs) + kLanes - 1) / kLanes, kPacks);  // of this thread
  const auto has_row = [&](std::uint32_t some) { return some < p.rows; };
  // All lanes of a warp go on as long as the first has a row.
  const auto warp_has_row = [&](std::uint32_t some) { return some - lane / kLanes < p.rows; };
  unsigned char* const mine = shared + threadIdx.x / 32 * (kSumStages * kStageBytes);
  const auto slot = [&](std::uint32_t stage, int array, int i) {
    return reinterpret_cast<Pack*>(mine + stage * kStageBytes + array * kWarpBytes + i * 512 + lane * 16);
  };
  // A word with the single element.
  const auto single_slot = [&](std::uint32_t stage, int array) {
    return mine + stage * kStageBytes + 2 * kWarpBytes + array * 128 + lane * 4;
  };
  const auto array_of = [&](int array) { return static_cast<const T*>(array == 0 ? p.x : p.dy); };

  const auto fetch = [&](std::uint32_t stage, std::uint32_t some) {
    if (has_row(some)) {
#pragma unroll
      for (int a = 0; a < 2; ++a) {
        const T* const from = array_of(a) + std::uint64_t{some} * p.columns + begin;
        const T* const end = array_of(a) + std::uint64_t{p.rows} * p.columns;
        const auto shift = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from + place.head)) % 16;
        if (kIsAligned || shift == 0) {
#pragma unroll
          for (int i = 0; i < kPacks; ++i) {
            if (i < packs) copy_asynchronously(slot(stage, a, i), from + place.of(i));
          }
        } else {  // the array lies otherwise than dx
#pragma unroll 1
          for (int i = 0; i < packs; ++i) {
            T* const to = reinterpret_cast<T*>(slot(stage, a, i));
            if (sizeof(T) == 4 || shift % 4 == 0) {
#pragma unroll
              for (int k = 0; k < kSize; k += 4 / sizeof(T)) copy_word_asynchronously(to + k, from + place.of(i) + k);
            } else {
#pragma unroll
              for (int k = 0; k < kSize; ++k) to[k] = from[place.of(i) + k];
            }
          }
        }
        if (!kIsAligned && place.has_single()) {
          const auto at = reinterpret_cast<std::uintptr_t>(from + place.single);
          const T* const word = reinterpret_cast<const T*>(at / 4 * 4);
          if (word >= array_of(a) && word + 4 / sizeof(T) <= end) {
            copy_word_asynchronously(single_slot(stage, a), word);
          } else {
            *reinterpret_cast<T*>(single_slot(stage, a) + at % 4) = from[place.single];
          }
        }
      }
    }
    end_copy_group();
  };

  wait_for_predecessors();
  let_dependents_start();
#pragma unroll 1
  for (std::uint32_t s = 0; s < kSumStages; ++s) fetch(s, row + step * s);  // little code, which is fetched, too
  const Columns<T> weight(p.weight, begin, p.columns);
  Row weights;
  if (weight.is_there()) {
    weights.load(weight.begin, place, weight.end);
  } else {
    weights.fill(1);
  }
  float of_weight[kPacks][kSize] = {}, of_bias[kPacks][kSize] = {}, single_of_weight = 0, single_of_bias = 0;

  // visit(x, dy, weight, index) of each pack, and of the single element, whose index is kPacks.
  const auto each = [&](std::uint32_t stage, std::uint32_t some, auto visit) {
    if (kLanes < 32 && !has_row(some)) return;
    weights.stay_packed();
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (i >= packs) continue;
      float x[kSize], dy[kSize], w[kSize];
      unpack(*slot(stage, 0, i), x);
      unpack(*slot(stage, 1, i), dy);
      unpack(weights.packs[i], w);
      visit(x, dy, w, i);
    }
    if constexpr (!kIsAligned) {
      if (!place.has_single()) return;
      float values[2][1], w[1];
#pragma unroll
      for (int a = 0; a < 2; ++a) {
        const T* const from = array_of(a) + std::uint64_t{some} * p.columns + begin + place.single;
        const std::uint32_t behind = reinterpret_cast<std::uintptr_t>(from) % 4;
        unpack(*reinterpret_cast<const T*>(single_slot(stage, a) + behind), values[a]);
      }
      unpack(weights.single, w);
      visit(values[0], values[1], w, kPacks);
    }
  };

  // In shared memory, where they take no registers.
  __shared__ float counts[kMaxThreads / kLanes];
  float& of_warp = counts[threadIdx.x / kLanes];  // elements of the lanes that share a row
  const auto elements = [&] { return static_cast<float>(packs * kSize + (place.has_single() ? 1 : 0)); };
  if constexpr (kIsLayer) of_warp = reduce_lanes<kLanes>(elements());
  __syncwarp();
  const auto part_of = [&](std::uint32_t stage, std::uint32_t some) {
    float shift = 0, away = 0, squares = 0, sum = 0, product = 0;
    each(stage, some, [&](const auto& x, const auto& dy, const auto& w, int i) {
      constexpr int kCount = sizeof(x) / sizeof(float);
      // One of the lane's elements, so that little cancels.
      if (kIsLayer && (i == 0 || (kCount == 1 && packs == 0))) shift = x[0];
      float of_pack = 0;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float value = kIsLayer ? x[k] - shift : x[k], g = dy[k] * w[k];
        if (kIsLayer) away += value, sum += g;
        of_pack += value * value;
        product += g * value;
      }
      squares += of_pack;
    });
    if constexpr (kIsLayer) {
      const float mean = __fdividef(away, fmaxf(elements(), 1.0f));
      return join_lanes<kLanes>(Part{elements(), shift + mean, squares - away * mean, sum, product - sum * mean},
                                of_warp);
    } else {
      return join_lanes<kLanes>(Part{squares, product}, 0);
    }
  };

  std::uint32_t stage = 0;
  if (!is_alone) {
    parts.begin();
    wait_for_copies<kSumStages - 1>();
    if (row < p.rows) parts.post(part_of(0, row), 0);
  }
  for (; warp_has_row(row); row += step) {
    const std::uint32_t next = stage == kSumStages - 1 ? 0 : stage + 1;
    // A warp that is alone does not wait for others: it begins with this row instead of the next.
    const std::uint32_t other = is_alone ? row : row + step;
    if (is_alone) {
      wait_for_copies<kSumStages - 1>();
    } else {
      wait_for_copies<kSumStages - 2>();
    }
    Part part;
    if (warp_has_row(other)) {
      part = part_of(is_alone ? stage : next, other);
      if (!is_alone) parts.post(part, 1);
    }
    if (!is_alone) part = join_warps(parts, p.one_of_columns);
    const RowLine line = line_of(part, p.one_of_columns, p.epsilon);
    T* const dx = static_cast<T*>(p.dx) + std::uint64_t{row} * p.columns + begin;
    each(stage, row, [&](auto& x, const auto& dy, const auto& w, int i) {
      constexpr int kCount = sizeof(x) / sizeof(float);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float normalized = fmaf(x[k], line.scale, line.center);
        x[k] = fmaf(line.scale, dy[k] * w[k], fmaf(line.slope, x[k], line.offset));
        float& to_weight = kCount == 1 ? single_of_weight : of_weight[i % kPacks][k];
        to_weight = fmaf(dy[k], normalized, to_weight);
        if (kIsLayer) (kCount == 1 ? single_of_bias : of_bias[i % kPacks][k]) += dy[k];
      }
      if constexpr (kCount == 1) {
        store_values(dx + place.single, x);
      } else {
        Pack pack;
        pack_into(pack, x);
        store_whole(dx + place.of(i), pack);
      }
    });
    fetch(stage, row + step * kSumStages);
    stage = next;
  }

  // Sums of the block: those of each row lie where packs are aligned, `lead` behind their columns.
  constexpr std::uint32_t kPlanes = kIsLayer ? 2 : 1;
  __shared__ std::uint32_t leads[kMaxThreads / 16];
  const std::uint32_t stride = (count + 2 * kSize + 3) / 4 * 4, lead = kSize - place.head;
  float* const sums = reinterpret_cast<float*>(shared);
  wait_for_copies<0>();
  __syncthreads();
  if (!kIsAligned && thread == 0) leads[index] = lead;
#pragma unroll
  for (std::uint32_t plane = 0; plane < kPlanes; ++plane) {
    float* const to = sums + (plane * rows_of_block + index) * stride + lead;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (i >= packs) continue;
#pragma unroll
      for (int k = 0; k < kSize; k += 4) {
        const float* const four = plane == 0 ? of_weight[i] + k : of_bias[i] + k;
        *reinterpret_cast<float4*>(to + place.of(i) + k) = {four[0], four[1], four[2], four[3]};
      }
    }
    if (place.has_single()) to[place.single] = plane == 0 ? single_of_weight : single_of_bias;
  }
  __syncthreads();
#pragma unroll
  for (std::uint32_t plane = 0; plane < kPlanes; ++plane) {
    float* const to = p.partials + (std::uint64_t{plane} * p.groups + group) * p.columns + begin;
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      const float* const from = sums + plane * rows_of_block * stride + i;
      float sum = 0;
#pragma unroll 8
      for (std::uint32_t other = 0; other < rows_of_block; ++other) {
        sum += from[other * stride + (kIsAligned ? kSize : leads[other])];
      }
      to[i] = sum;
    }
  }
}

// Columns of what the groups have summed, always added in the same order.
template <class T>
__global__ void __launch_bounds__(kMaxSumThreads) sum_partials(SumPartialsParams p) {
  __shared__ float sums[kMaxSumThreads];
  const std::uint32_t columns = blockDim.x, column = blockIdx.x * columns + threadIdx.x;
  const std::uint32_t lane = threadIdx.y, lanes = blockDim.y;
  const bool is_bias = blockIdx.y == 1;
  T* const out = static_cast<T*>(is_bias ? p.dbias : p.dweight);
  const float* const plane = p.partials + (is_bias ? std::uint64_t{p.groups} * p.columns : 0);
  wait_for_predecessors();
  let_dependents_start();
  float sum = 0;
  if (column < p.columns) {
#pragma unroll 8
    for (std::uint32_t group = lane; group < p.groups; group += lanes) {
      sum += plane[std::uint64_t{group} * p.columns + column];
    }
  }
  sums[lane * columns + threadIdx.x] = sum;
  __syncthreads();
  if (lane != 0 || column >= p.columns) return;
  for (std::uint32_t other = 1; other < lanes; ++other) sum += sums[other * columns + threadIdx.x];
  out[column] = from_float<T>(sum);
}

template <class T>
void sum_on_host(HostGrid grid, SumPartialsParams p) {
  for (std::uint64_t plane = 0; plane < grid.grid.y; ++plane) {
    T* const out = static_cast<T*>(plane == 1 ? p.dbias : p.dweight);
    for (std::uint64_t i = 0; i < p.columns; ++i) {
      double sum = 0;
      for (std::uint64_t g = 0; g < p.groups; ++g) {
        sum += static_cast<double>(p.partials[(plane * p.groups + g) * p.columns + i]);
      }
      out[i] = from_float<T>(static_cast<float>(sum));
    }
  }
}

template <NormOp kOp, class T, int kLanes, Alignment kAlignment>
NormBackwardKernel summed() {
  return make_kernel<norm_backward_summed<kOp, T, kLanes, kAlignment>, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormSumRegime regime) {
  switch (regime) {
    case NormSumRegime::kLanes4:
      if constexpr (kAlignment == Alignment::kAligned) return summed<kOp, T, 4, kAlignment>();
      break;
    case NormSumRegime::kLanes16: return summed<kOp, T, 16, kAlignment>();
    case NormSumRegime::kWarps: break;
  }
  return summed<kOp, T, 32, kAlignment>();
}

template <class T>
SumPartialsKernel sum_of_type() {
  return make_kernel<sum_partials<T>, sum_on_host<T>, KernelResources{.registers = 32, .max_threads = 1024}>();
}

}  // namespace

NormBackwardKernel norm_summed_kernel(NormOp op, DType type, NormSumRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

SumPartialsKernel sum_partials_kernel(DType type) {
  switch (type) {
    case DType::kFloat32: return sum_of_type<float>();
    case DType::kFloat16: return sum_of_type<__half>();
    default: return sum_of_type<__nv_bfloat16>();
  }
}

}  // namespace cgrt::kernels
