#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/block.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/host_row.cuh"
#include "cgrt_kernels/common/row/lanes.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/softmax/kernels.h"
#include "cgrt_kernels/softmax/reference.h"

namespace cgrt::kernels {
namespace {

template <SoftmaxOp kOp>
__device__ __forceinline__ float term_of(float y, float dy) {
  return kOp == SoftmaxOp::kSoftmax ? dy * y : dy;
}
template <SoftmaxOp kOp>
__device__ __forceinline__ float gradient_of(float y, float dy, float sum, float scale) {
  return scale * (kOp == SoftmaxOp::kSoftmax ? y * (dy - sum) : dy - exp_of(y) * sum);
}

// What a thread has of a row.
template <SoftmaxOp kOp, class Row>
__device__ __forceinline__ float sum_of(const Row& y, const Row& dy, const typename Row::Where& place) {
  float sum = 0;
  y.each(place, [&](const auto& values, const auto& index) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount];
    dy.get(index, gradients);
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum += term_of<kOp>(values[k], gradients[k]);
  });
  return sum;
}
template <SoftmaxOp kOp, class Row>
__device__ __forceinline__ void write_gradient(const Row& y, const Row& dy, typename Row::Element* dx,
                                               const typename Row::Where& place, float sum, float scale) {
  y.store(dx, place, [&](auto& values, std::uint64_t, const auto& index) {
    constexpr int kCount = sizeof(values) / sizeof(float);
    float gradients[kCount];
    dy.get(index, gradients);
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] = gradient_of<kOp>(values[k], gradients[k], sum, scale);
  });
}

// Each group of threads takes a row, read once: y and dy are in their registers.
template <SoftmaxOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, Group::kIsWarp ? 4
                                                      : kPacks < 8   ? 2
                                                                     : 1)
    softmax_backward_in_registers(SoftmaxBackwardParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  Group group;
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t end = std::uint64_t{p.rows} * p.columns;
  const T *const from_y = static_cast<const T*>(p.y), *const from_dy = static_cast<const T*>(p.dy);
  T* const dx = static_cast<T*>(p.dx) + first;
  const typename Row::Where place(dx, has_row ? run.count : 0, group.thread());
  wait_for_predecessors();
  let_dependents_start();
  Row y, dy;
  y.template load<Row::kFewAtOnce>(from_y + first, place, from_y + end);
  dy.template load<Row::kFewAtOnce>(from_dy + first, place, from_dy + end);
  const float all = group.reduce(sum_of<kOp>(y, dy, place));
  y.stay_packed();
  dy.stay_packed();
  write_gradient<kOp>(y, dy, dx, place, all, p.scale);
}

// Rows of few elements: a lane takes one at a time. A warp's pass through shared memory together.
template <SoftmaxOp kOp, class T>
__global__ void __launch_bounds__(kLaneThreads, 8) softmax_backward_in_lane(SoftmaxBackwardParams p) {
  extern __shared__ __align__(128) uint4 stages[];
  const StagedRows rows(p.rows, p.shares.stages * 32);
  wait_for_predecessors();
  let_dependents_start();
  if (rows.count == 0) return;
  const std::uint64_t begin = std::uint64_t{rows.first} * p.columns, end = std::uint64_t{p.rows} * p.columns;
  const auto stage_of = [&](std::uint32_t array, const void* from) {
    const T* const in = static_cast<const T*>(from);
    return WarpStage<T>(stages + (threadIdx.x / 32 * 2 + array) * p.shares.stride, static_cast<T*>(p.dx) + begin,
                        in + begin, rows.count * p.columns, in, in + end);
  };
  const auto of_y = stage_of(0, p.y), of_dy = stage_of(1, p.dy);
  of_y.wait();
  of_dy.wait();
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x % 32; i < rows.count; i += 32) {
    const T* const y = of_y.begin() + i * p.columns;
    T* const dy = of_dy.begin() + i * p.columns;
    float sum = 0;
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) {
      sum += term_of<kOp>(to_float(y[column]), to_float(dy[column]));
    }
#pragma unroll 4
    for (std::uint32_t column = 0; column < p.columns; ++column) {
      dy[column] = from_float<T>(gradient_of<kOp>(to_float(y[column]), to_float(dy[column]), sum, p.scale));
    }
  }
  of_dy.store();
}

// A warp takes a row.
template <SoftmaxOp kOp, class T, int kElements>
__global__ void __launch_bounds__(32) softmax_backward_of_few_rows(SoftmaxBackwardParams p) {
  using Row = LaneRow<T, 32, kElements, 1>;
  const typename Row::Where place(p.columns);
  const std::uint64_t first = std::uint64_t{blockIdx.x} * p.columns;
  wait_for_predecessors();
  let_dependents_start();
  Row of_y, of_dy;
  of_y.load(static_cast<const T*>(p.y) + first, place);
  of_dy.load(static_cast<const T*>(p.dy) + first, place);
  typename Row::Values y, dy, terms;
  of_y.get(y);
  of_dy.get(dy);
#pragma unroll
  for (int i = 0; i < kElements; ++i) terms[i][0] = term_of<kOp>(y[i][0], dy[i][0]);
  const float sum = reduce_lanes(cgrt::kernels::sum_of(terms, [](float term) { return term; }));
  each_pair(dy, y, [&](float& value, float of_row) { value = gradient_of<kOp>(of_row, value, sum, p.scale); });
  Row::store(static_cast<T*>(p.dx) + first, place, dy);
}

// Rows in slices of groups of blocks, or in chunks.
template <SoftmaxOp kOp, class Rows>
__global__ void __launch_bounds__(Rows::kThreads, Rows::kMinBlocks)
    softmax_backward_of_long_rows(SoftmaxBackwardParams p) {
  extern __shared__ __align__(128) uint4 landing[];
  using T = typename Rows::Element;
  using Place = typename Rows::Place;
  using Work = typename Rows::Work;
  using Array = typename Rows::Array;
  using Row = UnitRow<T, Place>;
  Rows rows(p.slices, p.rows, p.columns, p.workspace, landing, {p.y, p.dy}, p.dx);
  rows.run([](const Place& place, const Work&, const Array& y,
              const Array& dy) { return sum_of<kOp>(Row{y}, Row{dy}, place); },
           [&](const Place& place, const Work& work, float all, const Array& y, const Array& dy) {
             T* const dx = static_cast<T*>(p.dx) + work.first;
             write_gradient<kOp>(Row{y}, Row{dy}, dx, place, all, p.scale);
           });
}

template <SoftmaxOp kOp, class T>
void softmax_backward_on_host(HostGrid, SoftmaxBackwardParams p) {
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    std::vector<double> values = read_row<T>(p.dy, row, p.columns);
    softmax_backward_reference(kOp, values, read_row<T>(p.y, row, p.columns), static_cast<double>(p.scale));
    write_row<T>(p.dx, row, values);
  }
}

template <auto kKernel, SoftmaxOp kOp, class T>
SoftmaxBackwardKernel with_host_body() {
  return make_kernel<kKernel, softmax_backward_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMaxThreads}>();
}

template <SoftmaxOp kOp, class Rows>
SoftmaxBackwardKernel of_long_rows() {
  constexpr auto kOnHost =
      Rows::kWrites ? softmax_backward_on_host<kOp, typename Rows::Element> : nothing_on_host<SoftmaxBackwardParams>;
  return make_kernel<softmax_backward_of_long_rows<kOp, Rows>, kOnHost,
                     KernelResources{.registers = 64, .max_threads = Rows::kThreads}>();
}

template <SoftmaxOp kOp, class T, Alignment kAlignment>
SoftmaxBackwardKernel of_regime(SoftmaxRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned;
  constexpr int kSize = kPackSize<T>, kPacks = (kIsAligned ? 32 : 16) / kSize;
  const auto of_lanes = [=]<int kLanes>() {
    return with_host_body<softmax_backward_in_registers<kOp, T, LanesPerRow<kLanes>, 2, kAlignment>, kOp, T>();
  };
  switch (regime) {
    case SoftmaxRegime::kFew4: return with_host_body<softmax_backward_of_few_rows<kOp, T, kFewElements / 2>, kOp, T>();
    case SoftmaxRegime::kFew8: return with_host_body<softmax_backward_of_few_rows<kOp, T, kFewElements>, kOp, T>();
    case SoftmaxRegime::kLane: return with_host_body<softmax_backward_in_lane<kOp, T>, kOp, T>();
    case SoftmaxRegime::kLanes2:
      if constexpr (kIsAligned) return of_lanes.template operator()<2>();
      break;
    case SoftmaxRegime::kLanes4:
      if constexpr (kIsAligned) return of_lanes.template operator()<4>();
      break;
    case SoftmaxRegime::kLanes8:
      if constexpr (kIsAligned) return of_lanes.template operator()<8>();
      break;
    case SoftmaxRegime::kLanes16:
      return with_host_body<softmax_backward_in_registers<kOp, T, LanesPerRow<16>, 16 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kWarp:
      return with_host_body<softmax_backward_in_registers<kOp, T, WarpPerRow, 32 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kBlock:
      return with_host_body<softmax_backward_in_registers<kOp, T, BlockPerRow<16>, 8 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kClusterShort:
      return with_host_body<softmax_backward_in_registers<kOp, T, ClusterPerRow<16>, 8 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kClusterLong:
      return with_host_body<softmax_backward_in_registers<kOp, T, ClusterPerRow<16>, 5, kAlignment>, kOp, T>();
    case SoftmaxRegime::kCluster:
      return with_host_body<softmax_backward_in_registers<kOp, T, ClusterPerRow<16>, kPacks, kAlignment>, kOp, T>();
    case SoftmaxRegime::kSlices: return of_long_rows<kOp, SlicedRows<T, float, 2>>();
    case SoftmaxRegime::kFindInChunks: return of_long_rows<kOp, ChunkedRows<T, float, 2, ChunkPass::kFind>>();
    case SoftmaxRegime::kBulkStream:
    case SoftmaxRegime::kWriteChunks: break;
  }
  return of_long_rows<kOp, ChunkedRows<T, float, 2, ChunkPass::kWrite>>();
}

}  // namespace

SoftmaxBackwardKernel softmax_backward_kernel(SoftmaxOp op, DType type, SoftmaxRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == SoftmaxOp::kSoftmax ? of_regime<SoftmaxOp::kSoftmax, T, kAlignment>(regime)
                                     : of_regime<SoftmaxOp::kLogSoftmax, T, kAlignment>(regime);
  });
}

}  // namespace cgrt::kernels
