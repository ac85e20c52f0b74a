#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rows/op_reference.h"
#include "cgrt_kernels/rows/row.cuh"

namespace cgrt::kernels {
namespace {

// The part of the weights that begins at pack `begin`; ones when there are none.
template <class Part>
__device__ __forceinline__ void load_weights(Part& weights, const void* weight, std::uint32_t begin,
                                             std::uint32_t thread, std::uint32_t threads, std::uint32_t count) {
  if (weight != nullptr) {
    weights.load(static_cast<const typename Part::Pack*>(weight) + begin, thread, threads, count);
  } else {
    weights.fill(1);
  }
}

// Each group of threads takes a row at a time, read once: kFloats of it are in the registers of each
// thread. 16-bit weights are held there from row to row.
template <RowOp kOp, class T, class Group, int kFloats>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpPerRow> ? 128 : 512,
                                  std::is_same_v<Group, WarpPerRow> ? 4 : 1)
    rows_in_registers(void* out, const void* in, const void* weight, const void* bias, float epsilon,
                      std::uint32_t rows, std::uint32_t columns) {
  constexpr int kPacks = kFloats / kPackSize<T>;
  constexpr bool kHeld = sizeof(T) == 2 && !kIsSoftmax<kOp>;
  using Part = RowPart<T, kPacks>;
  using Pack = typename Part::Pack;
  Group group;
  const std::uint32_t thread = group.thread(), threads = group.threads(), packs = columns / kPackSize<T>;
  wait_for_predecessors();
  let_dependents_start();
  Part weights;
  if constexpr (kHeld) load_weights(weights, weight, 0, thread, threads, packs);
  for (std::uint32_t row = group.row(); row < rows; row += group.rows(), group.turn ^= 1) {
    const std::uint64_t first = std::uint64_t{row} * packs;
    Part x;
    x.load(static_cast<const Pack*>(in) + first, thread, threads, packs);
    finish_row<kOp, T, kPacks, kHeld>(group, x, weights, static_cast<const Pack*>(weight),
                                      static_cast<const Pack*>(bias), epsilon, columns, static_cast<Pack*>(out) + first,
                                      thread, threads, packs);
  }
  group.leave();
}

// A block, or a cluster of blocks, takes a row at a time. Each block's share of the next rows is on its
// way into shared memory meanwhile, by bulk copies, so that memory is busy while threads wait for each
// other. As many rows ahead as the launch has shared memory for.
template <RowOp kOp, class T, int kFloats>
__global__ void __launch_bounds__(512) rows_streamed(void* out, const void* in, const void* weight, const void* bias,
                                                     float epsilon, std::uint32_t rows, std::uint32_t columns) {
#if __CUDA_ARCH__ >= 900
  constexpr int kPacks = kFloats / kPackSize<T>;
  using Part = RowPart<T, kPacks>;
  using Pack = typename Part::Pack;
  extern __shared__ __align__(128) unsigned char landing[];
  __shared__ BulkBarrier landed[kMostStages];
  BlocksPerRow group;
  const std::uint32_t blocks = group.blocks(), packs = columns / kPackSize<T>;
  const std::uint32_t share = (packs + blocks - 1) / blocks, begin = group.block() * share;
  const std::uint32_t count = min(share, packs - begin);
  const std::uint32_t stages = dynamic_shared_bytes() / (share * 16);
  const auto stage = [&](std::uint32_t s) { return reinterpret_cast<Pack*>(landing) + s * share; };
  const auto fetch = [&](std::uint32_t s, std::uint64_t row) {
    landed[s].expect_bulk(stage(s), static_cast<const Pack*>(in) + row * packs + begin, count * 16);
  };

  if (threadIdx.x == 0) {
    for (std::uint32_t s = 0; s < stages; ++s) landed[s].initialize();
    make_barriers_visible();
  }
  __syncthreads();
  wait_for_predecessors();
  if (threadIdx.x == 0) {
    std::uint64_t row = group.row();
    for (std::uint32_t s = 0; s < stages && row < rows; ++s, row += group.rows()) fetch(s, row);
  }
  constexpr bool kHeld = !kIsSoftmax<kOp>;
  Part weights;
  if constexpr (kHeld) load_weights(weights, weight, begin, threadIdx.x, blockDim.x, count);

  std::uint32_t s = 0, phase = 0;
  for (std::uint64_t row = group.row(); row < rows; row += group.rows(), group.turn ^= 1) {
    landed[s].wait(phase);
    Part x;
    x.load(stage(s), threadIdx.x, blockDim.x, count);
    __syncthreads();  // all have read, so the place is free for the row after the next ones
    const std::uint64_t next = row + std::uint64_t{stages} * group.rows();
    if (threadIdx.x == 0 && next < rows) fetch(s, next);
    if (++s == stages) s = 0, phase ^= 1;
    finish_row<kOp, T, kPacks, kHeld>(
        group, x, weights, nullptr, bias != nullptr ? static_cast<const Pack*>(bias) + begin : nullptr, epsilon,
        columns, static_cast<Pack*>(out) + row * packs + begin, threadIdx.x, blockDim.x, count);
  }
  group.leave();
#endif
}

// A block per row, element by element: rows of any length at any address.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(512) rows_any(void* out, const void* in, const void* weight, const void* bias,
                                                float epsilon, std::uint32_t, std::uint32_t columns) {
  const BlocksPerRow group;
  const T* const x = static_cast<const T*>(in) + std::uint64_t{blockIdx.x} * columns;
  T* const y = static_cast<T*>(out) + std::uint64_t{blockIdx.x} * columns;
  wait_for_predecessors();

  float scale = 1, shift = 0;
  if constexpr (kIsSoftmax<kOp>) {
    MaxSum mine{-INFINITY, 0.0f};
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) mine = merge(mine, MaxSum{to_float(x[i]), 1.0f});
    const MaxSum all = group.reduce<0>(mine);
    shift = kOp == RowOp::kSoftmax ? -finite_or_zero(all.most) : -all.most - logf(all.sum);
    scale = 1 / all.sum;
  } else {
    const float share = 1.0f / static_cast<float>(columns);
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
      for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) sum += to_float(x[i]);
      shift = -group.reduce<0>(sum) * share;
    }
    float squares = 0;
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
      const float value = to_float(x[i]) + shift;
      squares += value * value;
    }
    scale = rsqrtf(group.reduce<1>(squares) * share + epsilon);
  }

  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = to_float(x[i]) + shift;
    if constexpr (kOp == RowOp::kSoftmax) value = exp_of(value);
    if constexpr (kOp != RowOp::kLogSoftmax) value *= scale;
    if (!kIsSoftmax<kOp> && weight != nullptr) value *= to_float(static_cast<const T*>(weight)[i]);
    if (kOp == RowOp::kLayerNorm && bias != nullptr) value += to_float(static_cast<const T*>(bias)[i]);
    y[i] = from_float<T>(value);
  }
}

template <RowOp kOp, class T>
void rows_on_host(HostGrid, void* out, const void* in, const void* weight, const void* bias, float epsilon,
                  std::uint32_t rows, std::uint32_t columns) {
  const auto read = [columns](const void* from, std::uint64_t first) {
    std::vector<double> values(from != nullptr ? columns : 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(to_float(static_cast<const T*>(from)[first + i]));
    }
    return values;
  };
  const std::vector<double> weights = read(weight, 0), biases = read(bias, 0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<double> values = read(in, row * columns);
    row_reference(kOp, values, weight != nullptr ? weights.data() : nullptr, bias != nullptr ? biases.data() : nullptr,
                  epsilon);
    for (std::uint32_t i = 0; i < columns; ++i) {
      static_cast<T*>(out)[row * columns + i] = from_float<T>(static_cast<float>(values[i]));
    }
  }
}

template <auto kKernel, RowOp kOp, class T>
RowsKernel with_host_body() {
  return make_kernel<kKernel, rows_on_host<kOp, T>, KernelResources{.registers = 64, .max_threads = 512}>();
}

template <RowOp kOp, class T>
RowsKernel of_regime(RowRegime regime) {
  switch (regime) {
    case RowRegime::kWarp8: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 8>, kOp, T>();
    case RowRegime::kWarp16: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 16>, kOp, T>();
    case RowRegime::kWarp32: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 32>, kOp, T>();
    case RowRegime::kBlock8: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow, 8>, kOp, T>();
    case RowRegime::kBlock32: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow, 32>, kOp, T>();
    case RowRegime::kStream32: return with_host_body<rows_streamed<kOp, T, 32>, kOp, T>();
    case RowRegime::kAny: break;
  }
  return with_host_body<rows_any<kOp, T>, kOp, T>();
}

template <RowOp kOp>
RowsKernel of_type(DType type, RowRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<kOp, float>(regime);
    case DType::kFloat16: return of_regime<kOp, __half>(regime);
    default: return of_regime<kOp, __nv_bfloat16>(regime);  // plan_rows lets no other pass
  }
}

}  // namespace

RowsKernel rows_kernel(RowOp op, DType type, RowRegime regime) {
  switch (op) {
    case RowOp::kSoftmax: return of_type<RowOp::kSoftmax>(type, regime);
    case RowOp::kLogSoftmax: return of_type<RowOp::kLogSoftmax>(type, regime);
    case RowOp::kLayerNorm: return of_type<RowOp::kLayerNorm>(type, regime);
    case RowOp::kRmsNorm: break;
  }
  return of_type<RowOp::kRmsNorm>(type, regime);
}

}  // namespace cgrt::kernels
