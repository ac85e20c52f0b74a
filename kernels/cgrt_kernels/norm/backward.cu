#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// dx of a run.
template <class Row, class Weights>
__device__ __forceinline__ void write_gradient(const Row& x, const Row& dy, typename Row::Element* dx,
                                               const Weights& weights, const typename Row::Where& place,
                                               const GradientFacts& facts) {
  x.store(dx, place, [&](auto& values, std::uint64_t offset, const auto& pack) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount], weight[kCount];
    dy.get(pack, gradients);
    weights.get(pack, offset, weight);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float normalized;
      values[i] = gradient_of(facts, values[i], gradients[i], weight[i], normalized);
    }
  });
}

// Of 512 threads each on a multiprocessor.
template <NormOp kOp, class Group, int kPacks, Alignment kAlignment>
constexpr int kMinBlocks = Group::kIsWarp ? 4
                           : kPacks < 4 || (kPacks == 4 && kOp == NormOp::kRmsNorm && kAlignment == Alignment::kAligned)
                               ? 2
                               : 1;

// Each group of threads takes a row, read once: x and dy are in their registers.
template <NormOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, (kMinBlocks<kOp, Group, kPacks, kAlignment>))
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
  write_gradient(x, dy, dx, weights, place, facts);
}

// A warp takes a row.
template <NormOp kOp, class T, int kElements>
__global__ void __launch_bounds__(32) norm_backward_of_few_rows(NormBackwardParams p) {
  using Row = LaneRow<T, 32, kElements, 1>;
  const typename Row::Where place(p.columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * p.columns;
  wait_for_predecessors();
  let_dependents_start();
  Row rows[3];
  rows[0].load(static_cast<const T*>(p.x) + first, place);
  rows[1].load(static_cast<const T*>(p.dy) + first, place);
  rows[2].load_columns(p.weight, place, 1);
  typename Row::Values x, g, weight;
  rows[0].get(x);
  rows[1].get(g);
  rows[2].get(weight);
  each_pair(g, weight, [](float& dy, float of_column) { dy *= of_column; });
  const auto all = static_cast<float>(p.columns);
  const auto sum_of_row = [](const auto& values, auto term) { return reduce_lanes(sum_of(values, term)); };
  Comoments row{all, 0, 0, 0, 0};
  if constexpr (kOp == NormOp::kLayerNorm) {
    row.mean = sum_of_row(x, [](float value) { return value; }) / all;
    row.sum = sum_of_row(g, [](float value) { return value; });
#pragma unroll
    for (int i = 0; i < kElements; ++i) x[i][0] = place.has(i) ? x[i][0] - row.mean : 0;
  }
  row.squares = sum_of_row(x, [](float value) { return value * value; });
  typename Row::Values products;
#pragma unroll
  for (int i = 0; i < kElements; ++i) products[i][0] = g[i][0] * x[i][0];
  row.product = sum_of_row(products, [](float value) { return value; });
  const GradientFacts facts = gradient_facts(row, all, p.epsilon);
  each_pair(g, x, [=](float& value, float centered) {
    value = facts.scale * (value - facts.sum - centered * facts.product);
  });
  Row::store(static_cast<T*>(p.dx) + first, place, g);
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
    write_gradient(x, dy, dx, weights, place, facts);
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

// Rows in slices of groups of blocks, or in chunks.
template <NormOp kOp, class Rows>
__global__ void __launch_bounds__(Rows::kThreads, Rows::kMinBlocks) norm_backward_of_long_rows(NormBackwardParams p) {
  extern __shared__ __align__(128) uint4 landing[];
  using T = typename Rows::Element;
  using Place = typename Rows::Place;
  using Work = typename Rows::Work;
  using Array = typename Rows::Array;
  using Row = UnitRow<T, Place>;
  Rows rows(p.slices, p.rows, p.columns, p.workspace, landing, {p.x, p.dy}, p.dx);
  const SliceColumns<Rows, T> weight(rows, p.slices, p.weight, 0);
  __syncthreads();
  const auto weights_of = [&](const Place& place, const Work& work) {
    return UnitWeights{weight.from(work.begin, place), weight.is_there()};
  };
  rows.run([&](const Place& place, const Work& work, const Array& x,
               const Array& dy) { return part_of_units<kOp>(Row{x}, Row{dy}, weights_of(place, work), place); },
           [&](const Place& place, const Work& work, const GradientPart<kOp>& part, const Array& x, const Array& dy) {
             const GradientFacts facts = gradient_facts(part, static_cast<float>(p.columns), p.epsilon);
             T* const dx = static_cast<T*>(p.dx) + work.first;
             write_gradient(Row{x}, Row{dy}, dx, weights_of(place, work), place, facts);
           });
}

template <auto kKernel, NormOp kOp, class T>
NormBackwardKernel with_host_body() {
  return make_kernel<kKernel, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <NormOp kOp, class Rows>
NormBackwardKernel of_long_rows() {
  constexpr auto kOnHost =
      Rows::kWrites ? norm_backward_on_host<kOp, typename Rows::Element> : nothing_on_host<NormBackwardParams>;
  return make_kernel<norm_backward_of_long_rows<kOp, Rows>, kOnHost,
                     KernelResources{.registers = 64, .max_threads = Rows::kThreads}>();
}

template <NormOp kOp, class T, Alignment kAlignment, class Group, int kPacks>
NormBackwardKernel in_registers() {
  return with_host_body<norm_backward_in_registers<kOp, T, Group, kPacks, kAlignment>, kOp, T>();
}

template <NormOp kOp, class T, Alignment kAlignment>
NormBackwardKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = (kIsAligned ? 32 : 16) / kSize;
  switch (regime) {
    case NormRegime::kFew4: return with_host_body<norm_backward_of_few_rows<kOp, T, kFewElements / 2>, kOp, T>();
    case NormRegime::kFew8: return with_host_body<norm_backward_of_few_rows<kOp, T, kFewElements>, kOp, T>();
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
    case NormRegime::kHeldColumns:
    case NormRegime::kWideBlock: break;
    case NormRegime::kBulkStream:
      if constexpr (!kIsAligned) return with_host_body<norm_backward_bulk_streamed<kOp, T>, kOp, T>();
      break;
    case NormRegime::kFindInChunks:
      return of_long_rows<kOp, ChunkedRows<T, GradientPart<kOp>, 2, ChunkPass::kFind, false>>();
    case NormRegime::kWriteChunks: return of_long_rows<kOp, ChunkedRows<T, GradientPart<kOp>, 2, ChunkPass::kWrite>>();
    case NormRegime::kSlices: break;
  }
  return of_long_rows<kOp, SlicedRows<T, GradientPart<kOp>, 2>>();
}

}  // namespace

NormBackwardKernel norm_backward_kernel(NormOp op, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_regime<NormOp::kLayerNorm, T, kAlignment>(regime)
                                    : of_regime<NormOp::kRmsNorm, T, kAlignment>(regime);
  });
}

}  // namespace cgrt::kernels
