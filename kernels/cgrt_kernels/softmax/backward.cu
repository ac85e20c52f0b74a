#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/dispatch.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/stream.cuh"
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

// Each group of threads takes a row, read once: y and dy are in their registers.
template <SoftmaxOp kOp, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, Group::kIsWarp            ? 4
                                                      : kPacks * sizeof(T) < 17 ? 2
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
  y.load(from_y + first, place, from_y + end);
  dy.load(from_dy + first, place, from_dy + end);
  float sum = 0;
  y.each(place, [&](const auto& values, int pack) {
    if constexpr (sizeof(values) == sizeof(float)) {
      sum += term_of<kOp>(values[0], to_float(dy.single));
    } else {
      float gradients[Row::kSize];
      unpack(dy.packs[pack], gradients);
#pragma unroll
      for (int k = 0; k < Row::kSize; ++k) sum += term_of<kOp>(values[k], gradients[k]);
    }
  });
  const float all = group.reduce(sum);
  y.stay_packed();
  dy.stay_packed();
  y.store(dx, place, [&](auto& values, std::uint64_t, int pack) {
    if constexpr (sizeof(values) == sizeof(float)) {
      values[0] = gradient_of<kOp>(values[0], to_float(dy.single), all, p.scale);
    } else {
      float gradients[Row::kSize];
      unpack(dy.packs[pack], gradients);
#pragma unroll
      for (int k = 0; k < Row::kSize; ++k) values[k] = gradient_of<kOp>(values[k], gradients[k], all, p.scale);
    }
  });
}

template <SoftmaxOp kOp, class T, class Group, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxThreads, 1) softmax_backward_streamed(SoftmaxBackwardParams p) {
  extern __shared__ uint4 ring[];
  Group group;
  const void* const arrays[] = {p.y, p.dy};
  Stream<T, kAlignment, 2> stream(p.shares, ring, group.block(), p.rows, p.columns, p.dx, arrays);
  wait_for_predecessors();
  for (std::uint32_t s = 0; s < p.shares.stages; ++s) stream.fetch(s, group.row() + std::uint64_t{s} * group.rows());
  std::uint32_t stage = 0;
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows()) {
    stream.wait();
    float sum = 0;
    stream.each(stage, row, [&](const auto& values, std::uint64_t) {
#pragma unroll
      for (int k = 0; k < static_cast<int>(sizeof(values[0]) / sizeof(float)); ++k) {
        sum += term_of<kOp>(values[0][k], values[1][k]);
      }
    });
    const float all = group.reduce(sum);
    group.next();
    T* const dx = stream.out(row);
    stream.each(stage, row, [&](auto& values, std::uint64_t offset) {
#pragma unroll
      for (int k = 0; k < static_cast<int>(sizeof(values[0]) / sizeof(float)); ++k) {
        values[0][k] = gradient_of<kOp>(values[0][k], values[1][k], all, p.scale);
      }
      store_values(dx + offset, values[0]);
    });
    stream.fetch(stage, row + std::uint64_t{p.shares.stages} * group.rows());
    stage = stage + 1 == p.shares.stages ? 0 : stage + 1;
  }
  let_dependents_start();
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

template <SoftmaxOp kOp, class T, Alignment kAlignment>
SoftmaxBackwardKernel of_regime(SoftmaxRegime regime) {
  constexpr int kSize = kPackSize<T>, kPacks = kAlignment == Alignment::kAligned ? 32 / kSize : 2;
  switch (regime) {
    case SoftmaxRegime::kLanes4:
      if constexpr (kAlignment == Alignment::kAligned) {
        return with_host_body<softmax_backward_in_registers<kOp, T, LanesPerRow<4>, 16 / kSize, kAlignment>, kOp, T>();
      }
      break;
    case SoftmaxRegime::kLanes16:
      return with_host_body<softmax_backward_in_registers<kOp, T, LanesPerRow<16>, 16 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kWarp:
      return with_host_body<softmax_backward_in_registers<kOp, T, WarpPerRow, 32 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kClusterShort:
      return with_host_body<softmax_backward_in_registers<kOp, T, ClusterPerRow<16>, 8 / kSize, kAlignment>, kOp, T>();
    case SoftmaxRegime::kCluster:
    case SoftmaxRegime::kClusterLong:
    case SoftmaxRegime::kBulkStream:
      return with_host_body<softmax_backward_in_registers<kOp, T, ClusterPerRow<16>, kPacks, kAlignment>, kOp, T>();
    case SoftmaxRegime::kClusterStream: break;
  }
  return with_host_body<softmax_backward_streamed<kOp, T, ClusterPerRow<16>, kAlignment>, kOp, T>();
}

}  // namespace

SoftmaxBackwardKernel softmax_backward_kernel(SoftmaxOp op, DType type, SoftmaxRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == SoftmaxOp::kSoftmax ? of_regime<SoftmaxOp::kSoftmax, T, kAlignment>(regime)
                                     : of_regime<SoftmaxOp::kLogSoftmax, T, kAlignment>(regime);
  });
}

}  // namespace cgrt::kernels
