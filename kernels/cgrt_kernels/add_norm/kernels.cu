#include <cstdint>

#include "cgrt_kernels/add_norm/add_norm_desc.h"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rows/reference.h"
#include "cgrt_kernels/rows/row.cuh"

namespace cgrt::kernels {
namespace {

// Each group of threads takes a row, read once: kFloats of the sum are in the registers of each thread.
template <RowOp kOp, class T, class Group, int kFloats, int kSize = kPackSize<T>>
__global__ void __launch_bounds__(Group::kMostThreads, Group::kIsWarp ? 4 : 1024 / Group::kMostThreads)
    add_norm_in_registers(void* out, void* sum, const void* in, const void* residual, const void* weight,
                          const void* bias, float epsilon, std::uint32_t rows, std::uint32_t columns,
                          std::uint32_t ahead) {
  using Part = RowPart<T, kFloats / kSize, kSize>;
  using Pack = typename Part::Pack;
  Group group;
  const typename Part::Where place(group.thread(), columns / kSize);
  prefetch_weights<kOp>(group, weight, bias, columns * sizeof(T));
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t row = group.row();
  if (Group::kIsWarp && row >= rows) return;
  const std::uint64_t first = std::uint64_t{row} * place.count;
  Part x, added;
  x.load(static_cast<const Pack*>(in) + first, place);
  added.load(static_cast<const Pack*>(residual) + first, place);
  prefetch_ahead<kFloats>(group, static_cast<const T*>(in), rows, columns, ahead);
  prefetch_ahead<kFloats>(group, static_cast<const T*>(residual), rows, columns, ahead);
#pragma unroll
  for (int p = 0; p < Part::kPackCount; ++p) {
    if (!place.has(p)) continue;
    float values[kSize], other[kSize];
    unpack(x.packs[p], values);
    unpack(added.packs[p], other);
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] += other[i];
    pack_into(x.packs[p], values);
    (static_cast<Pack*>(sum) + first)[place.of(p)] = x.packs[p];
  }
  x.stay_packed();
  const RowFacts facts = reduce_row<kOp>(group, x, place, epsilon, columns);
  write_row<kOp>(facts, x, static_cast<Part*>(nullptr), static_cast<Part*>(nullptr), static_cast<const Pack*>(weight),
                 static_cast<const Pack*>(bias), static_cast<Pack*>(out) + first, place);
}

// A block per row, element by element: rows of any length at any address. Each thread reads of the sum only
// what it has written itself.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(512)
    add_norm_any(void* out, void* sum, const void* in, const void* residual, const void* weight, const void* bias,
                 float epsilon, std::uint32_t, std::uint32_t columns, std::uint32_t) {
  BlocksPerRow<16> group;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * columns;
  const T* const a = static_cast<const T*>(in) + first;
  const T* const b = static_cast<const T*>(residual) + first;
  T* const x = static_cast<T*>(sum) + first;
  T* const y = static_cast<T*>(out) + first;
  const float share = 1.0f / static_cast<float>(columns);
  wait_for_predecessors();
  float total = 0, squares = 0;
  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    x[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
    total += to_float(x[i]);
  }
  const float shift = kOp == RowOp::kLayerNorm ? -group.reduce(total) * share : 0;
  ++group.turn;
  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    const float value = to_float(x[i]) + shift;
    squares += value * value;
  }
  const float scale = rsqrtf(group.reduce(squares) * share + epsilon);
  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = (to_float(x[i]) + shift) * scale;
    if (weight != nullptr) value *= to_float(static_cast<const T*>(weight)[i]);
    if (kOp == RowOp::kLayerNorm && bias != nullptr) value += to_float(static_cast<const T*>(bias)[i]);
    y[i] = from_float<T>(value);
  }
}

template <RowOp kOp, class T>
void add_norm_on_host(HostGrid, void* out, void* sum, const void* in, const void* residual, const void* weight,
                      const void* bias, float epsilon, std::uint32_t rows, std::uint32_t columns, std::uint32_t) {
  const auto read = [](const void* from, std::uint64_t i) {
    return static_cast<double>(to_float(static_cast<const T*>(from)[i]));
  };
  std::vector<double> weights, biases;
  for (std::uint32_t i = 0; i < columns && weight != nullptr; ++i) weights.push_back(read(weight, i));
  for (std::uint32_t i = 0; i < columns && bias != nullptr; ++i) biases.push_back(read(bias, i));
  std::vector<double> values(columns);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t first = row * columns;
    for (std::uint32_t i = 0; i < columns; ++i) {
      const auto added = static_cast<float>(read(in, first + i) + read(residual, first + i));
      static_cast<T*>(sum)[first + i] = from_float<T>(added);
      values[i] = read(sum, first + i);
    }
    row_reference(kOp, values, weights.empty() ? nullptr : weights.data(), biases.empty() ? nullptr : biases.data(),
                  static_cast<double>(epsilon));
    for (std::uint32_t i = 0; i < columns; ++i) {
      static_cast<T*>(out)[first + i] = from_float<T>(static_cast<float>(values[i]));
    }
  }
}

template <auto kKernel, RowOp kOp, class T, int kMostThreads = 512>
AddNormKernel with_host_body() {
  return make_kernel<kKernel, add_norm_on_host<kOp, T>,
                     KernelResources{.registers = 64, .max_threads = kMostThreads}>();
}

// Of a row that a block of up to kMostWideThreads threads takes.
template <RowOp kOp, class T, int kFloats>
AddNormKernel wide() {
  return with_host_body<add_norm_in_registers<kOp, T, BlocksPerRow<kMostWideThreads / 32>, kFloats>, kOp, T,
                        kMostWideThreads>();
}

template <RowOp kOp, class T>
AddNormKernel of_regime(AddNormRegime regime) {
  switch (regime) {
    case AddNormRegime::kWarp32: return with_host_body<add_norm_in_registers<kOp, T, WarpPerRow, 32>, kOp, T>();
    case AddNormRegime::kBlock8: return with_host_body<add_norm_in_registers<kOp, T, BlocksPerRow<16>, 8>, kOp, T>();
    case AddNormRegime::kBlock16: return wide<kOp, T, 16>();
    case AddNormRegime::kBlock32:
      if constexpr (sizeof(T) == 2) return wide<kOp, T, 32>();
      break;
    case AddNormRegime::kElements8:
      return with_host_body<add_norm_in_registers<kOp, T, BlocksPerRow<16>, 8, 1>, kOp, T>();
    case AddNormRegime::kAny: break;
  }
  return with_host_body<add_norm_any<kOp, T>, kOp, T>();
}

template <RowOp kOp>
AddNormKernel of_type(DType type, AddNormRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<kOp, float>(regime);
    case DType::kFloat16: return of_regime<kOp, __half>(regime);
    default: return of_regime<kOp, __nv_bfloat16>(regime);  // plan_add_norm lets no other pass
  }
}

}  // namespace

AddNormKernel add_norm_kernel(RowOp op, DType type, AddNormRegime regime) {
  return op == RowOp::kLayerNorm ? of_type<RowOp::kLayerNorm>(type, regime) : of_type<RowOp::kRmsNorm>(type, regime);
}

}  // namespace cgrt::kernels
