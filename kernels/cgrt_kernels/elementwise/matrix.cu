#include <cstdint>

#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/elementwise/map.cuh"
#include "cgrt_kernels/elementwise/matrix_desc.h"

namespace cgrt::kernels {
namespace {

struct SiluAndMul {
  __host__ __device__ float operator()(float gate, float value) const { return silu_of(gate) * value; }
};
struct GeluAndMul {
  template <class T>
  __host__ __device__ float operator()(T gate, T value) const {
    return gelu_of(gate) * static_cast<float>(value);
  }
};
struct GeluTanhAndMul {
  __host__ __device__ float operator()(float gate, float value) const { return gelu_tanh_of(gate) * value; }
};

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
struct FunctorOf<MatrixOp::kSiluAndMul> : SiluAndMul {};
template <>
struct FunctorOf<MatrixOp::kGeluAndMul> : GeluAndMul {};
template <>
struct FunctorOf<MatrixOp::kGeluTanhAndMul> : GeluTanhAndMul {};

template <MatrixOp kOp>
constexpr bool kGated = is_gated(kOp);
template <MatrixOp kOp>
constexpr bool kPerRow = is_per_row(kOp);

template <class T>
constexpr DType kTypeOf = DType::kFloat32;
template <>
constexpr DType kTypeOf<__half> = DType::kFloat16;
template <>
constexpr DType kTypeOf<__nv_bfloat16> = DType::kBFloat16;

template <MatrixOp kOp, class T, MatrixAccess kAccess>
constexpr int kRowsInFlight = matrix_rows_in_flight(kOp, kTypeOf<T>, kAccess);

template <int kSize, class T>
__device__ __forceinline__ Pack<T, kSize> filled(T value) {
  Pack<T, kSize> pack;
#pragma unroll
  for (T& one : pack.of) one = value;
  return pack;
}

// Each thread has a column, or a pack of columns, of several rows at once. No division: the block is
// as wide as a row, or as an equal part of one.
template <MatrixOp kOp, class T, MatrixAccess kAccess>
__global__ void __launch_bounds__(kMatrixBlock)
    matrix_elementwise(void* out, const void* a, const void* b, std::uint32_t rows, std::uint32_t columns) {
  constexpr int kPack = kAccess == MatrixAccess::kPack ? 16 / static_cast<int>(sizeof(T)) : 1;
  constexpr int kRows = kRowsInFlight<kOp, T, kAccess>;
  const FunctorOf<kOp> functor{};
  const std::uint32_t column = (blockIdx.x * blockDim.x + threadIdx.x) * kPack;
  if (column >= columns) return;
  const T* const other = static_cast<const T*>(b);
  const std::uint64_t stride = kGated<kOp> ? 2 * std::uint64_t{columns} : columns;
  const std::uint32_t tile = blockDim.y * kRows;
  wait_for_predecessors();
  let_dependents_start();
  Pack<T, kPack> of_columns;
  if constexpr (!kGated<kOp> && !kPerRow<kOp>) of_columns = internal::load_pack<kPack>(other + column);
  for (std::uint64_t first = std::uint64_t{blockIdx.y} * tile + threadIdx.y; first < rows;
       first += std::uint64_t{gridDim.y} * tile) {
    const auto left = static_cast<std::uint32_t>(rows - first);
    const T* from = static_cast<const T*>(a) + first * stride + column;
    Pack<T, kPack> x[kRows], y[kRows];
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r, from += blockDim.y * stride) {
      if (r * blockDim.y >= left) continue;
      x[r] = internal::load_pack<kPack>(from);
      if constexpr (kGated<kOp>) {
        y[r] = internal::load_pack<kPack>(from + columns);
      } else {
        y[r] = kPerRow<kOp> ? filled<kPack>(other[first + r * blockDim.y]) : of_columns;
      }
    }
    T* to = static_cast<T*>(out) + first * columns + column;
#pragma unroll
    for (std::uint32_t r = 0; r < kRows; ++r, to += std::uint64_t{blockDim.y} * columns) {
      if (r * blockDim.y < left) internal::store_pack(to, internal::apply<T, kPack>(functor, x[r], y[r]));
    }
  }
}

template <MatrixOp kOp, class T>
void matrix_on_host(HostGrid, void* out, const void* a, const void* b, std::uint32_t rows, std::uint32_t columns) {
  const FunctorOf<kOp> functor{};
  const std::uint64_t stride = kGated<kOp> ? 2 * std::uint64_t{columns} : columns;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const T* const from = static_cast<const T*>(a) + row * stride;
    T* const to = static_cast<T*>(out) + row * columns;
    for (std::uint64_t c = 0; c < columns; ++c) {
      const T other = kGated<kOp> ? from[columns + c] : static_cast<const T*>(b)[kPerRow<kOp> ? row : c];
      to[c] = internal::rounded_to<T>(functor(from[c], other));
    }
  }
}

template <MatrixOp kOp, class T>
MatrixKernel of_access(MatrixAccess access) {
  constexpr KernelResources kResources{.registers = 48, .max_threads = static_cast<int>(kMatrixBlock)};
  if (access == MatrixAccess::kPack) {
    return make_kernel<matrix_elementwise<kOp, T, MatrixAccess::kPack>, matrix_on_host<kOp, T>, kResources>();
  }
  return make_kernel<matrix_elementwise<kOp, T, MatrixAccess::kElement>, matrix_on_host<kOp, T>, kResources>();
}

template <MatrixOp kOp>
MatrixKernel of_type(DType type, MatrixAccess access) {
  switch (type) {
    case DType::kFloat32: return of_access<kOp, float>(access);
    case DType::kFloat16: return of_access<kOp, __half>(access);
    default: return of_access<kOp, __nv_bfloat16>(access);  // plan_matrix lets no other pass
  }
}

}  // namespace

MatrixKernel matrix_kernel(MatrixOp op, DType type, MatrixAccess access) {
  switch (op) {
    case MatrixOp::kAddPerColumn: return of_type<MatrixOp::kAddPerColumn>(type, access);
    case MatrixOp::kAddPerRow: return of_type<MatrixOp::kAddPerRow>(type, access);
    case MatrixOp::kMulPerColumn: return of_type<MatrixOp::kMulPerColumn>(type, access);
    case MatrixOp::kMulPerRow: return of_type<MatrixOp::kMulPerRow>(type, access);
    case MatrixOp::kSiluAndMul: return of_type<MatrixOp::kSiluAndMul>(type, access);
    case MatrixOp::kGeluAndMul: return of_type<MatrixOp::kGeluAndMul>(type, access);
    case MatrixOp::kGeluTanhAndMul: break;
  }
  return of_type<MatrixOp::kGeluTanhAndMul>(type, access);
}

}  // namespace cgrt::kernels
