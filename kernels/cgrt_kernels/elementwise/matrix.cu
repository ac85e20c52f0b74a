#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/elementwise/kernels.h"
#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::kernels {
namespace {

template <MatrixOp kOp>
struct FunctorOf;
template <>
struct FunctorOf<MatrixOp::kAddPerColumn> : ElementwiseFunctor<ElementwiseOp::kAdd, float> {};
template <>
struct FunctorOf<MatrixOp::kAddPerRow> : ElementwiseFunctor<ElementwiseOp::kAdd, float> {};
template <>
struct FunctorOf<MatrixOp::kMulPerColumn> : ElementwiseFunctor<ElementwiseOp::kMul, float> {};
template <>
struct FunctorOf<MatrixOp::kMulPerRow> : ElementwiseFunctor<ElementwiseOp::kMul, float> {};
template <>
struct FunctorOf<MatrixOp::kSiluAndMul> {
  __host__ __device__ float operator()(float gate, float value) const { return silu_of(gate) * value; }
};
template <>
struct FunctorOf<MatrixOp::kGeluAndMul> {
  template <class T>
  __host__ __device__ float operator()(T gate, T value) const {
    return gelu_of(gate) * static_cast<float>(value);
  }
};
template <>
struct FunctorOf<MatrixOp::kGeluTanhAndMul> {
  __host__ __device__ float operator()(float gate, float value) const { return gelu_tanh_of(gate) * value; }
};

template <MatrixOp kOp>
constexpr bool kGated = is_gated(kOp);
template <MatrixOp kOp>
constexpr bool kPerRow = is_per_row(kOp);

template <MatrixOp kOp, class T, Alignment kAlignment>
constexpr std::uint32_t kRowsInFlight = matrix_rows_in_flight(kOp, sizeof(T), kAlignment);

template <int kSize, class T>
__device__ __forceinline__ Pack<T, kSize> filled(T value) {
  Pack<T, kSize> pack;
#pragma unroll
  for (T& one : pack.of) one = value;
  return pack;
}

// Each thread has a column, or a pack of columns, of several rows at once. No division: the block is
// as wide as a row, or as an equal part of one.
template <MatrixOp kOp, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kMaxMatrixThreads) matrix_elementwise(const __grid_constant__ MatrixParams p) {
  constexpr int kPack = kAlignment == Alignment::kAligned ? 16 / static_cast<int>(sizeof(T)) : 1;
  constexpr std::uint32_t kRows = kRowsInFlight<kOp, T, kAlignment>;
  const FunctorOf<kOp> functor{};
  const std::uint32_t column = (blockIdx.x * blockDim.x + threadIdx.x) * kPack;
  if (column >= p.columns) return;
  const T* const other = static_cast<const T*>(p.b);
  const std::uint64_t stride = kGated<kOp> ? 2 * std::uint64_t{p.columns} : p.columns;
  const std::uint32_t tile = blockDim.y * kRows;
  wait_for_predecessors();
  let_dependents_start();
  Pack<T, kPack> of_columns;
  if constexpr (!kGated<kOp> && !kPerRow<kOp>) of_columns = internal::load_pack<kPack>(other + column);
  for (std::uint64_t first = std::uint64_t{blockIdx.y} * tile + threadIdx.y; first < p.rows;
       first += std::uint64_t{gridDim.y} * tile) {
    const auto left = static_cast<std::uint32_t>(p.rows - first);
    const T* from = static_cast<const T*>(p.a) + first * stride + column;
    Pack<T, kPack> x[kRows], y[kRows];
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r, from += blockDim.y * stride) {
      if (r * blockDim.y >= left) continue;
      x[r] = internal::load_pack<kPack>(from);
      if constexpr (kGated<kOp>) {
        y[r] = internal::load_pack<kPack>(from + p.columns);
      } else {
        y[r] = kPerRow<kOp> ? filled<kPack>(other[first + r * blockDim.y]) : of_columns;
      }
    }
    T* to = static_cast<T*>(p.out) + first * p.columns + column;
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r, to += std::uint64_t{blockDim.y} * p.columns) {
      if (r * blockDim.y < left) internal::store_pack(to, internal::apply<T, kPack>(functor, x[r], y[r]));
    }
  }
}

template <MatrixOp kOp, class T>
void matrix_on_host(HostGrid, MatrixParams p) {
  const FunctorOf<kOp> functor{};
  const std::uint64_t stride = kGated<kOp> ? 2 * std::uint64_t{p.columns} : p.columns;
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    const T* const from = static_cast<const T*>(p.a) + row * stride;
    T* const to = static_cast<T*>(p.out) + row * p.columns;
    for (std::uint64_t c = 0; c < p.columns; ++c) {
      const T other = kGated<kOp> ? from[p.columns + c] : static_cast<const T*>(p.b)[kPerRow<kOp> ? row : c];
      to[c] = internal::rounded_to<T>(functor(from[c], other));
    }
  }
}

template <MatrixOp kOp>
MatrixKernel of_op(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<matrix_elementwise<kOp, T, kAlignment>, matrix_on_host<kOp, T>,
                       KernelResources{.registers = 48, .max_threads = kMaxMatrixThreads}>();
  });
}

}  // namespace

MatrixKernel matrix_kernel(MatrixOp op, DType type, Alignment alignment) {
  switch (op) {
    case MatrixOp::kAddPerColumn: return of_op<MatrixOp::kAddPerColumn>(type, alignment);
    case MatrixOp::kAddPerRow: return of_op<MatrixOp::kAddPerRow>(type, alignment);
    case MatrixOp::kMulPerColumn: return of_op<MatrixOp::kMulPerColumn>(type, alignment);
    case MatrixOp::kMulPerRow: return of_op<MatrixOp::kMulPerRow>(type, alignment);
    case MatrixOp::kSiluAndMul: return of_op<MatrixOp::kSiluAndMul>(type, alignment);
    case MatrixOp::kGeluAndMul: return of_op<MatrixOp::kGeluAndMul>(type, alignment);
    case MatrixOp::kGeluTanhAndMul: break;
  }
  return of_op<MatrixOp::kGeluTanhAndMul>(type, alignment);
}

}  // namespace cgrt::kernels
