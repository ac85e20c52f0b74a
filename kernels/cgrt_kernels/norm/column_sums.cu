#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/backward.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/comoments.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// What a block has of its columns, in shared memory: sums of gradients as floats, and weights. Column c is element
// c / kSize of row c % kSize of a table: lanes whose packs lie one after the other meet no bank conflicts, whatever
// column these packs begin with.
template <NormOp kOp, class Row>
class ColumnTable {
 public:
  using T = typename Row::Element;
  using Sums = std::conditional_t<kOp == NormOp::kLayerNorm, float2, float>;
  static constexpr std::uint32_t kSize = Row::kSize, kLanes = 32;  // between a thread's packs

  // Of `count` columns. By all threads, who meet before they ask for a weight.
  __device__ __forceinline__ ColumnTable(unsigned char* shared, std::uint32_t stride, const Columns<T>& weight,
                                         std::uint32_t count)
      : stride_(stride), shared_(shared) {
    for (std::uint32_t column = threadIdx.x; column < count; column += blockDim.x) {
      at<Sums>(sums_at(column)) = {};
      at<T>(weight_at(column)) = weight.is_there() ? weight.begin[column] : from_float<T>(1);
    }
  }
  // The row that is taken next.
  __device__ __forceinline__ void begin(const typename Row::Where& place) {
    single_ = place.single;
#pragma unroll
    for (std::uint32_t i = 0; i < kSize; ++i) {
      const std::uint32_t column = place.first * kSize + place.head + i;
      weights_of_[i] = weight_at(column), sums_of_[i] = sums_at(column);
      asm volatile("" : "+r"(weights_of_[i]), "+r"(sums_of_[i]));  // not computed again for each pack
    }
  }
  template <int kCount>
  __device__ __forceinline__ void get(int pack, std::uint64_t, float (&values)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = to_float(at<T>(kCount == 1 ? weight_at(single_) : weights_of_[i] + kLanes * sizeof(T) * pack));
    }
  }
  // Of the pack, or of the single element: what is added to the gradients of weight and bias. Some sums are read before
  // any is written: the compiler does not know that they are different ones.
  template <int kCount>
  __device__ __forceinline__ void add(int pack, const float (&dy)[kCount], const float (&normalized)[kCount]) {
    constexpr int kAtOnce = kCount < 4 ? kCount : 4;
    const auto sums_of = [&](int i) -> Sums& {
      return at<Sums>(kCount == 1 ? sums_at(single_) : sums_of_[i] + kLanes * sizeof(Sums) * pack);
    };
#pragma unroll
    for (int first = 0; first < kCount; first += kAtOnce) {
      Sums sums[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) sums[i] = sums_of(first + i);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const float g = dy[first + i], of_weight = normalized[first + i];
        if constexpr (kOp == NormOp::kLayerNorm) {
          sums_of(first + i) = {fmaf(g, of_weight, sums[i].x), sums[i].y + g};
        } else {
          sums_of(first + i) = fmaf(g, of_weight, sums[i]);
        }
      }
    }
  }
  // Of plane 0 the gradient of weight, of plane 1 that of bias.
  __device__ __forceinline__ float sum(std::uint32_t column, std::uint32_t plane) const {
    return at<float>(sums_at(column) + plane * sizeof(float));
  }

 private:
  template <class Value>
  __device__ __forceinline__ Value& at(std::uint32_t byte) const {
    return *reinterpret_cast<Value*>(shared_ + byte);
  }
  __device__ __forceinline__ std::uint32_t place_of(std::uint32_t column) const {
    return column % kSize * stride_ + column / kSize;
  }
  __device__ __forceinline__ std::uint32_t sums_at(std::uint32_t column) const {
    return place_of(column) * static_cast<std::uint32_t>(sizeof(Sums));
  }
  __device__ __forceinline__ std::uint32_t weight_at(std::uint32_t column) const {
    return static_cast<std::uint32_t>(kSize * stride_ * sizeof(Sums) + place_of(column) * sizeof(T));
  }

  const std::uint32_t stride_;
  unsigned char* const shared_;
  std::uint32_t weights_of_[kSize], sums_of_[kSize], single_;
};

// Of a row, from what threads have of it.
template <class Group>
__device__ __forceinline__ Comoments row_of(const Group& group, Comoments part, float of_warp, float all) {
  return group.join(join_lanes<32>(part, of_warp), all);
}
template <class Group>
__device__ __forceinline__ Products row_of(const Group& group, Products part, float, float) {
  return group.reduce(part);
}

// Persistent blocks or clusters: a row's x and dy are in registers, read once, the next row on its way to the L2 cache.
// Rows need not begin alike between multiples of 16 bytes: of a column that is another thread's in the next row, the
// sums are in shared memory.
template <NormOp kOp, class T, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(kColumnSumThreads<kPacks>, 1) norm_backward_column_sums(NormBackwardParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) unsigned char shared[];
  using Group = ClusterPerRow<kColumnSumThreads<kPacks> / 32>;
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  Group group;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const T *const from_x = static_cast<const T*>(p.x), *const from_dy = static_cast<const T*>(p.dy);
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns, step = std::uint64_t{group.rows()} * p.columns;
  std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  wait_for_predecessors();
  let_dependents_start();
  ColumnTable<kOp, Row> columns(shared, p.shares.stride, Columns<T>(p.weight, run.begin, p.columns), run.count);
  __syncthreads();
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), first += step, group.next()) {
    T* const dx = static_cast<T*>(p.dx) + first;
    const typename Row::Where place(dx, run.count, threadIdx.x);
    Row x, dy;
    x.template load<Row::kFewAtOnce>(from_x + first, place, from_x + count);
    dy.template load<Row::kFewAtOnce>(from_dy + first, place, from_dy + count);
    if (threadIdx.x == 0 && row + group.rows() < p.rows) {
      prefetch_to_l2(from_x + first + step, run.count * sizeof(T));
      prefetch_to_l2(from_dy + first + step, run.count * sizeof(T));
    }
    columns.begin(place);
    const auto all = row_of(group, part_of_units<kOp>(x, dy, columns, place), static_cast<float>(place.of_warp()),
                            static_cast<float>(p.columns));
    const RowLine line = line_of(all, p.one_of_columns, p.epsilon);
    // A column may have been another thread's in the last row. Small groups meet nowhere else.
    if constexpr (!Row::kIsAligned) __syncthreads();
    x.stay_packed();
    dy.stay_packed();
    x.store(dx, place, [&](auto& values, std::uint64_t, const auto& pack) {
      constexpr int kCount = sizeof(values) / sizeof(float);
      float gradients[kCount], weight[kCount], normalized[kCount];
      dy.get(pack, gradients);
      columns.get(pack, 0, weight);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        normalized[i] = fmaf(values[i], line.scale, line.center);
        values[i] = fmaf(line.scale, gradients[i] * weight[i], fmaf(line.slope, values[i], line.offset));
      }
      columns.add(pack, gradients, normalized);
    });
  }
  __syncthreads();
#pragma unroll
  for (std::uint32_t plane = 0; plane < (kOp == NormOp::kLayerNorm ? 2 : 1); ++plane) {
    float* const partials = p.partials + (std::uint64_t{plane} * p.groups + group.row()) * p.columns + run.begin;
    for (std::uint32_t column = threadIdx.x; column < run.count; column += blockDim.x) {
      partials[column] = columns.sum(column, plane);
    }
  }
#endif
}

template <NormOp kOp, class T, int kPacks, Alignment kAlignment>
NormBackwardKernel of_packs() {
  return make_kernel<norm_backward_column_sums<kOp, T, kPacks, kAlignment>, norm_backward_on_host<kOp, T>,
                     KernelResources{.registers = kPacks == 4 ? 96 : 128, .max_threads = kColumnSumThreads<kPacks>}>();
}

}  // namespace

NormBackwardKernel norm_column_sums(NormOp op, DType type, std::uint32_t packs, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    const auto of_op = [=]<NormOp kOp>() {
      if constexpr (sizeof(T) == 4) {
        if (packs == 8) return of_packs<kOp, T, 8, kAlignment>();
      }
      return of_packs<kOp, T, 4, kAlignment>();
    };
    return op == NormOp::kLayerNorm ? of_op.template operator()<NormOp::kLayerNorm>()
                                    : of_op.template operator()<NormOp::kRmsNorm>();
  });
}

}  // namespace cgrt::kernels
