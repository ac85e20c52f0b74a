#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// dx of a run; visit(pack, index in it, dy, normalized x) of each element.
template <class Row, class Weights, class Visit>
__device__ __forceinline__ void write_gradient(const Row& x, const Row& dy, typename Row::Element* dx,
                                               const Weights& weights, const typename Row::Where& place,
                                               const GradientFacts& facts, Visit visit) {
  x.store(dx, place, [&](auto& values, std::uint64_t offset, const auto& pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount], weight[kCount];
    dy.get(pack, gradients);
    weights.get(pack, offset, weight);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float normalized;
      values[i] = gradient_of(facts, values[i], gradients[i], weight[i], normalized);
      visit(pack, i, gradients[i], normalized);
    }
  });
}

// Each group of threads takes a row, read once: x and dy are in their registers.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads,
                                  Group::kIsWarp                                                             ? 4
                                  : kPacks* kPackSize<T> * sizeof(T) < (kOp == NormOp::kLayerNorm ? 64 : 65) ? 2
                                                                                                             : 1)
    norm_backward_in_registers(NormBackwardParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsHeld = Row::kIsHalves && kPacks <= 2;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const from_x = static_cast<const T*>(p.x), *const from_dy = static_cast<const T*>(p.dy);
  T* const dx = static_cast<T*>(p.dx) + first;
  const typename Row::Where place(dx, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  Row x, dy;
  x.load(from_x + first, place, from_x + count);
  dy.load(from_dy + first, place, from_dy + count);
  RowWeights<Row, kIsHeld, kAlignment> weights(Columns<T>(p.weight, run.begin, p.columns), place);
  const GradientFacts facts = facts_of<kOp>(group, x, dy, weights, place, p.epsilon, p.columns);
  x.stay_packed();
  dy.stay_packed();
  weights.stay_packed();
  write_gradient(x, dy, dx, weights, place, facts, [](const auto&, int, float, float) {});
}

// A block, or a cluster, takes a row at a time, through registers; the weights are in shared memory, as each thread
// needs them.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_backward_bulk_streamed(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  using Rows = BulkStream<T, Group, Alignment::kUnaligned, 2>;
  using Row = typename Rows::Row;
  Group group;
  Rows rows(p.shares, ring, group, p.rows, p.columns, {p.x, p.dy});
  T* dx = static_cast<T*>(p.dx) + std::uint64_t{group.row()} * p.columns + rows.begin;
  const typename Row::Where place(dx, rows.count, threadIdx.x);
  wait_for_predecessors();
  rows.start(group.row());
  const HeldColumns<Row> weights(rows.held(0), Columns<T>(p.weight, rows.begin, p.columns), place, 1);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    const T* at[2];
    rows.wait(row, at);
    Row x, dy;
    x.load_shared(at[0], place);
    dy.load_shared(at[1], place);
    const GradientFacts facts = facts_of<kOp>(group, x, dy, weights, place, p.epsilon, p.columns);
    rows.next(row);
    x.stay_packed();
    dy.stay_packed();
    write_gradient(x, dy, dx, weights, place, facts, [](const auto&, int, float, float) {});
    dx += std::uint64_t{group.rows()} * p.columns;
  }
#endif
}

// Weights of the columns that a thread has; ones when there are none.
template <class Array>
struct UnitWeights {
  Array array;
  bool is_there;

  template <class At, int kCount>
  __device__ __forceinline__ void get(const At& at, std::uint64_t, float (&values)[kCount]) const {
    if (is_there) return array.load(at, values);
#pragma unroll
    for (float& value : values) value = 1;
  }
};

template <bool kIsSummed>
constexpr std::uint32_t kWorkersOf = kIsSummed ? kSummedWorkers : kSliceWorkers;

// Rows in slices of groups of blocks. With kIsSummed a thread has the same columns of all rows; their sums are in its
// registers, or in what its group has summed where the block has several slices, or chunks.
template <NormOp kOp, bool kIsSummed, class T>
__global__ void __launch_bounds__((kWorkersOf<kIsSummed> + kSliceHelpers), 1)
    norm_backward_in_slices(NormBackwardParams p) {
  extern __shared__ __align__(128) uint4 landing[];
  constexpr int kPlanes = kOp == NormOp::kLayerNorm ? 2 : 1, kSize = 4 / sizeof(T);
  constexpr int kUnits = kIsSummed ? kSummedColumns / kSize : 0;
  using Rows = SlicedRows<T, GradientPart<kOp>, 2, kWorkersOf<kIsSummed>, kUnits>;
  using Place = typename Rows::Place;
  using Work = typename Rows::Work;
  using Array = typename Rows::Array;
  using Row = UnitRow<T, Place>;
  wait_for_predecessors();
  let_dependents_start();
  Rows rows(p.slices, p.rows, p.columns, p.workspace, landing, {p.x, p.dy}, p.dx);
  const SliceColumns<Rows, T> weight(rows, p.slices, p.weight, 0);
  __syncthreads();
  const auto weights_of = [&](const Place& place, const Work& work) {
    return UnitWeights<Array>{weight.from(work.begin, place), weight.is_there()};
  };
  const bool has_own_columns = rows.has_own_columns() && p.slices.chunks == 1;
  float sums[kPlanes][kIsSummed ? kSummedColumns : 1] = {};
  const auto partials_of = [&](int plane, const Work& work) {
    return p.partials + (plane * std::uint64_t{p.groups} + work.group) * p.columns + work.begin;
  };
  rows.run(
      [&](const Place& place, const Work& work, const Array& x, const Array& dy) {
        Row of_x{x}, of_dy{dy};
        return part_of<kOp, 1, true>(of_x, of_dy, weights_of(place, work), place, static_cast<float>(place.elements()));
      },
      [&](const Place& place, const Work& work, const GradientPart<kOp>& part, const Array& x, const Array& dy) {
        const GradientFacts facts = gradient_facts(part, static_cast<float>(p.columns), p.epsilon);
        T* const dx = static_cast<T*>(p.dx) + work.first;
        const auto add = [&](const auto& at, int i, float gradient, float normalized) {
          if constexpr (kIsSummed) {
#pragma unroll
            for (int plane = 0; plane < kPlanes; ++plane) {
              const float term = plane == 0 ? gradient * normalized : gradient;
              if (has_own_columns) {
                sums[plane][at.unit * kSize + i] += term;
              } else {
                float* const sum = partials_of(plane, work) + place.of(at, i);
                *sum = work.index == 0 ? term : *sum + term;
              }
            }
          }
        };
        write_gradient(Row{x}, Row{dy}, dx, weights_of(place, work), place, facts, add);
      });
  if constexpr (kIsSummed) {
    if (!has_own_columns || threadIdx.x >= kSummedWorkers) return;
    const Work own = rows.own();
    const Place place(static_cast<const T*>(nullptr), own.count, threadIdx.x);
    place.each([&]<int kCount>(const UnitAt<kCount>& at) {
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) partials_of(plane, own)[place.of(at, i)] = sums[plane][at.unit * kSize + i];
      }
    });
  }
}

template <auto kKernel, NormOp kOp, class T, std::uint32_t kThreads = kMaxThreads>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kThreads}>();
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
NormBackwardKernel in_registers() {
  return with_host_body<norm_backward_in_registers<kOp, T, Group, kPacks, kAlignment>, kOp, T>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = kIsAligned ? 32 / kSize : 2;
  switch (regime) {
    case NormRegime::kLanes4:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, LanesPerRow<4>, 16 / kSize>();
      break;
    case NormRegime::kLanes16: return in_registers<kOp, T, kAlignment, LanesPerRow<16>, 16 / kSize>();
    case NormRegime::kWarp: return in_registers < kOp, T, kAlignment, WarpPerRow, kIsAligned ? 32 / kSize : 4 > ();
    case NormRegime::kClusterShort:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 8 / kSize>();
      break;
    case NormRegime::kClusterMiddle:
      if constexpr (kIsAligned) return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, 16 / kSize>();
      break;
    case NormRegime::kCluster:
    case NormRegime::kClusterLong: return in_registers<kOp, T, kAlignment, ClusterPerRow<16>, kPacks>();
    case NormRegime::kBulkStream:
      if constexpr (!kIsAligned) return with_host_body<norm_backward_bulk_streamed<kOp, T>, kOp, T>();
      break;
    case NormRegime::kSlices: break;
  }
  return with_host_body<norm_backward_in_slices<kOp, false, T>, kOp, T, kSliceThreads>();
}

}  // namespace

NormBackwardKernel norm_backward_kernel(NormOp op, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

NormBackwardKernel norm_summed_slices(NormOp op, DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    constexpr auto kLayerNorm = NormOp::kLayerNorm, kRmsNorm = NormOp::kRmsNorm;
    return op == kLayerNorm
               ? with_host_body<norm_backward_in_slices<kLayerNorm, true, T>, kLayerNorm, T, kSliceThreads>()
               : with_host_body<norm_backward_in_slices<kRmsNorm, true, T>, kRmsNorm, T, kSliceThreads>();
  });
}

}  // namespace cgrt::kernels
