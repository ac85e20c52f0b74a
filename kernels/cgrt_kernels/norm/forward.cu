#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/dispatch.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/stream.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/kernels.h"
#include "cgrt_kernels/norm/reference.h"

namespace cgrt::kernels {
namespace {

// A row becomes (x - mean) * scale.
struct RowFacts {
  float mean, scale;
};

template <NormOp kOp, class Group, class Row>
__device__ __forceinline__ RowFacts facts_of(const Group& group, Row& x, const typename Row::Where& place,
                                             const NormParams& p) {
  const float all = static_cast<float>(p.columns);
  if constexpr (kOp == NormOp::kRmsNorm) {
    const float squares = x.sum(place, [](float value) { return value * value; });
    return {0.0f, rsqrtf(group.reduce(squares) / all + p.epsilon)};
  } else {
    float elements = all;
    const float sum = x.sum(place, [](float value) { return value; });
    if constexpr (!Group::kIsWarp) elements = static_cast<float>(place.of_warp());
    const float mean = __fdividef(reduce_lanes<Group::kLanes>(sum), fmaxf(elements, 1.0f));
    x.stay_packed();
    const float squares = x.sum(place, [=](float value) { return (value - mean) * (value - mean); });
    const Moments row = group.join(Moments{elements, mean, reduce_lanes<Group::kLanes>(squares)}, all);
    return {row.mean, rsqrtf(row.squares / all + p.epsilon)};
  }
}

// Two blocks of 512 threads for a multiprocessor, with 64 registers for a thread; the packed halves of layer_norm need
// only 40.
template <NormOp kOp, bool kHasResidual, class T, class Group, int kPacks, Alignment kAlignment>
constexpr int kMinBlocks = Group::kIsWarp                                                        ? 4
                           : kHasResidual && (kPacks > 4 || kAlignment == Alignment::kUnaligned) ? 1
                           : kOp == NormOp::kLayerNorm && !kHasResidual &&
                                   sizeof(T) == 2 && kPacks == 4 && kAlignment == Alignment::kAligned
                               ? 3
                               : 2;

// Each group of threads takes a row, read once: it is in their registers. 16-bit weights are asked for together with
// the row where that was faster.
template <NormOp kOp, bool kHasResidual, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, (kMinBlocks<kOp, kHasResidual, T, Group, kPacks, kAlignment>))
    norm_in_registers(NormParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsHalves && Row::kIsAligned && !kHasResidual &&
                           kPacks * Row::kSize <= (kOp == NormOp::kLayerNorm ? 16 : 32);
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const in = static_cast<const T*>(p.in), *const residual = static_cast<const T*>(p.residual);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  const Columns<T> weight(p.weight, run.begin, p.columns), bias(p.bias, run.begin, p.columns);
  prefetch_once(group, p.weight, p.columns * sizeof(T));
  if constexpr (kOp == NormOp::kLayerNorm) prefetch_once(group, p.bias, p.columns * sizeof(T));
  wait_for_predecessors();
  let_dependents_start();
  Row x, weights;
  if constexpr (kIsHeld) {
    if (weight.is_there()) {
      weights.load(weight.begin, place, weight.end);
    } else {
      weights.fill(1);
    }
  }
  x.load(in + first, place, in + count);
  if constexpr (kHasResidual) {
    Row added;
    added.load(residual + first, place, residual + count);
    prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);
    prefetch_ahead<Row>(group, residual, p.rows, p.columns, p.rows_ahead);
    x.add(added, place);
    if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
    x.stay_packed();
  } else {
    prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);
  }
  const RowFacts facts = facts_of<kOp>(group, x, place, p);
  x.stay_packed();
  if constexpr (kIsHeld) weights.stay_packed();
  x.store(out, place, [&](auto& values, std::uint64_t offset, int pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float others[kCount];
#pragma unroll
    for (float& value : values) value = (kOp == NormOp::kLayerNorm ? value - facts.mean : value) * facts.scale;
    if (kIsHeld || weight.is_there()) {
      if constexpr (kIsHeld) {
        unpack(weights.packs[pack], others);
      } else {
        load_values<kAlignment>(others, weight.begin, offset, weight.end);
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] *= others[i];
    }
    if (kOp == NormOp::kLayerNorm && bias.is_there()) {
      load_values<kAlignment>(others, bias.begin, offset, bias.end);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] += others[i];
    }
  });
}

// A block, or a cluster, takes an aligned row at a time, through registers, which also keep weight and bias.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kMaxThreads) norm_bulk_streamed(NormParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  Group group;
  BulkStream<T, Group> stream(p.shares, ring, group, p.in, p.rows, p.columns);
  using Row = typename BulkStream<T, Group>::Row;
  const typename Row::Where place(static_cast<const T*>(nullptr), stream.count, threadIdx.x);
  wait_for_predecessors();
  stream.start(group.row());
  Row weights, biases;
  const auto take_columns = [&](Row& held, const void* array, float otherwise) {
    const Columns<T> columns(array, stream.begin, p.columns);
    if (columns.is_there()) {
      held.load(columns.begin, place, columns.end);
    } else {
      held.fill(otherwise);
    }
  };
  take_columns(weights, p.weight, 1);
  if constexpr (kOp == NormOp::kLayerNorm) take_columns(biases, p.bias, 0);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    Row x;
    stream.take(x, place);
    const RowFacts facts = facts_of<kOp>(group, x, place, p);
    stream.next(row);
    x.stay_packed();
    weights.stay_packed();
    if constexpr (kOp == NormOp::kLayerNorm) biases.stay_packed();
    x.store(static_cast<T*>(p.out) + row * p.columns + stream.begin, place, [&](auto& values, std::uint64_t, int pack) {
      constexpr int kCount = sizeof(values) / sizeof(float);
      if constexpr (kCount > 1) {
        float others[kCount];
        unpack(weights.packs[pack], others);
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[i] = (values[i] - facts.mean) * facts.scale * others[i];
        if constexpr (kOp == NormOp::kLayerNorm) {
          unpack(biases.packs[pack], others);
#pragma unroll
          for (int i = 0; i < kCount; ++i) values[i] += others[i];
        }
      }
    });
  }
#endif
}

// Each group of blocks takes a row at a time, its share in shared memory.
template <NormOp kOp, bool kHasResidual, class T, class Group, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_streamed(NormParams p) {
  extern __shared__ uint4 ring[];
  constexpr int kArrays = kHasResidual ? 2 : 1;
  Group group;
  const void* const arrays[2] = {p.in, p.residual};
  using Rows = Stream<T, kAlignment, kArrays>;
  Rows stream(p.shares, ring, group.block(), p.rows, p.columns, p.out,
              reinterpret_cast<const void* const(&)[kArrays]>(arrays));
  wait_for_predecessors();
  for (std::uint32_t s = 0; s < p.shares.stages; ++s) stream.fetch(s, group.row() + std::uint64_t{s} * group.rows());
  Columns<T> weight(p.weight, stream.begin, p.columns), bias(p.bias, stream.begin, p.columns);
  T* free = reinterpret_cast<T*>(ring + std::uint64_t{p.shares.stages} * kArrays * p.shares.held);
  if (p.shares.holds_columns != 0) {
    free = weight.hold<kAlignment>(free, stream.count);
    if (kOp == NormOp::kLayerNorm) bias.hold<kAlignment>(free, stream.count);
    __syncthreads();
  }
  const float all = static_cast<float>(p.columns);
  std::uint32_t stage = 0;
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows()) {
    stream.wait();
    // visit(x, offset); with a residual x is their sum, rounded to the type.
    const auto each = [&](auto visit) {
      stream.each(stage, row, [&](auto& arrays, std::uint64_t offset) {
        if constexpr (kHasResidual) add_rounded<T>(arrays[0], arrays[1]);
        visit(arrays[0], offset);
      });
    };
    RowFacts facts{0.0f, 0.0f};
    float sum = 0, mean = 0;
    if constexpr (kOp == NormOp::kLayerNorm) {
      each([&](const auto& values, std::uint64_t) {
#pragma unroll
        for (const float value : values) sum += value;
      });
      mean = reduce_lanes(sum) / fmaxf(stream.of_warp(row), 1.0f);
    }
    float squares = 0;
    each([&](const auto& values, std::uint64_t) {
      float of_pack = 0;
#pragma unroll
      for (const float value : values) of_pack += (value - mean) * (value - mean);
      squares += of_pack;
    });
    if constexpr (kOp == NormOp::kLayerNorm) {
      const Moments moments = group.join(Moments{stream.of_warp(row), mean, reduce_lanes(squares)}, all);
      facts = {moments.mean, rsqrtf(moments.squares / all + p.epsilon)};
    } else {
      facts.scale = rsqrtf(group.reduce(squares) / all + p.epsilon);
    }
    group.next();
    T* const out = stream.out(row);
    T* const sum_out = p.sum != nullptr ? static_cast<T*>(p.sum) + row * p.columns + stream.begin : nullptr;
    each([&](auto& values, std::uint64_t offset) {
      constexpr int kCount = sizeof(values) / sizeof(float);
      float others[kCount];
      if (kHasResidual && sum_out != nullptr) store_values_anywhere<kAlignment>(sum_out + offset, values);
#pragma unroll
      for (float& value : values) value = (value - facts.mean) * facts.scale;
      if (weight.is_there()) {
        load_values<kAlignment>(others, weight.begin, offset, weight.end);
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[i] *= others[i];
      }
      if (kOp == NormOp::kLayerNorm && bias.is_there()) {
        load_values<kAlignment>(others, bias.begin, offset, bias.end);
#pragma unroll
        for (int i = 0; i < kCount; ++i) values[i] += others[i];
      }
      store_values(out + offset, values);
    });
    stream.fetch(stage, row + std::uint64_t{p.shares.stages} * group.rows());
    stage = stage + 1 == p.shares.stages ? 0 : stage + 1;
  }
  let_dependents_start();
}

template <NormOp kOp, class T>
void norm_on_host(HostGrid, NormParams p) {
  const std::vector<double> weights = read_row<T>(p.weight, 0, p.columns), biases = read_row<T>(p.bias, 0, p.columns);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.in, row, p.columns);
    const std::vector<double> added = read_row<T>(p.residual, row, p.columns);
    for (std::size_t i = 0; i < added.size(); ++i) {
      values[i] = static_cast<double>(to_float(from_float<T>(static_cast<float>(values[i] + added[i]))));
    }
    if (p.sum != nullptr) write_row<T>(p.sum, row, values);
    norm_reference(kOp, values, weights.empty() ? nullptr : weights.data(), biases.empty() ? nullptr : biases.data(),
                   static_cast<double>(p.epsilon));
    write_row<T>(p.out, row, values);
  }
}

template <auto kKernel, NormOp kOp, class T>
NormKernel with_host_body() {
  return make_kernel<kKernel, norm_on_host<kOp, T>, KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, bool kHasResidual, class T, Alignment kAlignment, class Group, int kPacks>
NormKernel in_registers() {
  return with_host_body<norm_in_registers<kOp, kHasResidual, T, Group, kPacks, kAlignment>, kOp, T>();
}

template <NormOp kOp, bool kHasResidual, class T, Alignment kAlignment>
NormKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = kIsAligned ? 32 / kSize : 4;
  switch (regime) {
    case NormRegime::kLanes4:
      if constexpr (kIsAligned && !kHasResidual)
        return in_registers<kOp, kHasResidual, T, kAlignment, LanesPerRow<4>, 16 / kSize>();
      break;
    case NormRegime::kLanes16: return in_registers<kOp, kHasResidual, T, kAlignment, LanesPerRow<16>, 16 / kSize>();
    case NormRegime::kWarp: return in_registers<kOp, kHasResidual, T, kAlignment, WarpPerRow, kPacks>();
    case NormRegime::kClusterShort:
      if constexpr (kIsAligned) return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 8 / kSize>();
      break;
    case NormRegime::kClusterMiddle:
      if constexpr (kIsAligned) return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 16 / kSize>();
      break;
    case NormRegime::kCluster: return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, kPacks>();
    case NormRegime::kClusterLong:
      if constexpr (kIsAligned && sizeof(T) == 2 && !kHasResidual) {
        return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 64 / kSize>();
      }
      break;
    case NormRegime::kBulkStream:
      if constexpr (kIsAligned && !kHasResidual) return with_host_body<norm_bulk_streamed<kOp, T>, kOp, T>();
      break;
    case NormRegime::kClusterStream: break;
  }
  return with_host_body<norm_streamed<kOp, kHasResidual, T, ClusterPerRow<16>, kAlignment>, kOp, T>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormKernel of_residual(Residual residual, NormRegime regime) {
  return residual == Residual::kAdded ? of_regime<kOp, true, T, kAlignment>(regime)
                                      : of_regime<kOp, false, T, kAlignment>(regime);
}

}  // namespace

NormKernel norm_kernel(NormOp op, Residual residual, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_residual<NormOp::kLayerNorm, T, kAlignment>(residual, regime)
                                    : of_residual<NormOp::kRmsNorm, T, kAlignment>(residual, regime);
  });
}

}  // namespace cgrt::kernels
