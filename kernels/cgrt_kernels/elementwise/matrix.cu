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

template <int kSize, class T>
__device__ __forceinline__ Pack<T, kSize> filled(T value) {
  Pack<T, kSize> pack;
#pragma unroll
  for (T& one : pack.of) one = value;
  return pack;
}

// What the functor takes for elements of a matrix.
template <MatrixOp kOp, class T>
class Factors {
  static constexpr bool kIsGated = is_gated(kOp), kIsPerRow = is_per_row(kOp);

 public:
  __host__ __device__ explicit Factors(const MatrixParams& p)
      : a_(static_cast<const T*>(p.a)), b_(static_cast<const T*>(p.b)), columns_(p.columns.value()) {}

  // Of one element.
  __host__ __device__ T first(std::uint64_t row, std::uint32_t column) const { return *first_at(row, column); }
  __host__ __device__ T second(std::uint64_t row, std::uint32_t column) const { return *second_at(row, column); }

  // Of a pack of elements that are all of a row and aligned.
  template <int kPack>
  __device__ __forceinline__ void get_aligned(std::uint64_t row, std::uint32_t column, Pack<T, kPack>& x,
                                              Pack<T, kPack>& y) const {
    x = internal::load_pack<kPack>(first_at(row, column));
    if constexpr (kIsPerRow) {
      y = filled<kPack>(second(row, column));
    } else {
      y = internal::load_pack<kPack>(second_at(row, column));
    }
  }
  // Of any, but for the first and the last of the matrix.
  template <int kPack>
  __device__ __forceinline__ void get(std::uint64_t row, std::uint32_t column, Pack<T, kPack>& x,
                                      Pack<T, kPack>& y) const {
    using Shifted = internal::ShiftedPack<T, kPack>;
    // What is read of `b` must not reach behind it.
    constexpr std::uint32_t kReach = kIsGated || kIsPerRow ? kPack : 2 * kPack;
    if (column + kReach <= columns_) {
      const Shifted at_first(first_at(row, column));
      if constexpr (kIsPerRow) {
        y = filled<kPack>(second(row, column));
      } else {
        y = Shifted(second_at(row, column)).take();
      }
      x = at_first.take();
      return;
    }
    if constexpr (!kIsGated) x = Shifted(first_at(row, column)).take();  // rows follow each other
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      if constexpr (kIsGated) x.of[i] = first(row, column);
      y.of[i] = second(row, column);
      if (++column == columns_) column = 0, ++row;
    }
  }

 private:
  __host__ __device__ const T* first_at(std::uint64_t row, std::uint32_t column) const {
    return a_ + row * (kIsGated ? 2 * std::uint64_t{columns_} : columns_) + column;
  }
  __host__ __device__ const T* second_at(std::uint64_t row, std::uint32_t column) const {
    if constexpr (kIsGated) return first_at(row, column) + columns_;
    return b_ + (kIsPerRow ? row : column);
  }

  const T *const a_, *const b_;
  const std::uint32_t columns_;
};

// Each thread has packs of the output, wherever rows begin and end.
template <MatrixOp kOp, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kMapBlock) matrix_elementwise(const __grid_constant__ MatrixParams p) {
  constexpr int kPack = kMapPack<T>;
  const FunctorOf<kOp> functor{};
  const Factors<kOp, T> factors(p);
  T* const out = static_cast<T*>(p.out);
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns.value();
  const std::uint64_t i = (std::uint64_t{blockIdx.x} * kMapBlock + threadIdx.x) * kPack;
  Pack<T, kPack> x, y;
  wait_for_predecessors();
  let_dependents_start();
  if constexpr (kAlignment == Alignment::kAligned) {
    if (i >= count) return;
    const auto [row, column] = p.columns.divide(i);
    factors.get_aligned(row, column, x, y);
    internal::store_pack(out + i, internal::apply<T, kPack>(functor, x, y));
  } else {
    // As map_elements: packs that are aligned in the output, but for one at either end, so that the two that one of an
    // input lies in are inside of it.
    const std::uint32_t begin = internal::begin_of_packs<kPack>(out, true);
    const std::uint64_t packs = count < begin + kPack ? 0 : (count - begin - kPack) / kPack;
    const std::uint32_t nth = kMapBlock - 1 - threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && nth < count - packs * kPack) {
      const std::uint64_t edge = nth < begin ? nth : packs * kPack + nth;
      const auto [row, column] = p.columns.divide(edge);
      out[edge] = internal::rounded_to<T>(functor(factors.first(row, column), factors.second(row, column)));
    }
    if (i >= packs * kPack) return;
    const auto [row, column] = p.columns.divide(begin + i);
    factors.get(row, column, x, y);
    internal::store_whole_pack(out + begin + i, internal::apply<T, kPack>(functor, x, y));
  }
}

template <MatrixOp kOp, class T>
void matrix_on_host(HostGrid, MatrixParams p) {
  const FunctorOf<kOp> functor{};
  const Factors<kOp, T> factors(p);
  T* to = static_cast<T*>(p.out);
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    for (std::uint32_t c = 0; c < p.columns.value(); ++c) {
      *to++ = internal::rounded_to<T>(functor(factors.first(row, c), factors.second(row, c)));
    }
  }
}

template <MatrixOp kOp>
MatrixKernel of_op(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<matrix_elementwise<kOp, T, kAlignment>, matrix_on_host<kOp, T>,
                       KernelResources{.registers = 40, .max_threads = kMapBlock}>();
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
