#include <cstdint>

#include "cgrt_kernels/common/bulk_copy.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rows/reference.h"
#include "cgrt_kernels/rows/row.cuh"

namespace cgrt::kernels {
namespace {

// Two blocks of 512 threads for a multiprocessor, with 64 registers for a thread; the packed halves of layer_norm
// need only 40.
template <RowOp kOp, class Group, int kFloats, int kSize>
constexpr int kLeastBlocks = Group::kIsWarp ? 4 : (kOp == RowOp::kLayerNorm && kFloats == 32 && kSize == 8 ? 3 : 2);

// Each group of threads takes a row, read once: kFloats of it are in the registers of each
// thread. 16-bit weights are asked for together with the row where that was shorter.
template <RowOp kOp, class T, class Group, int kFloats, int kSize = kPackSize<T>>
__global__ void __launch_bounds__(Group::kMostThreads, (kLeastBlocks<kOp, Group, kFloats, kSize>))
    rows_in_registers(void* out, const void* in, const void* weight, const void* bias, float epsilon,
                      std::uint32_t rows, std::uint32_t columns, std::uint32_t ahead) {
  using Part = RowPart<T, kFloats / kSize, kSize, Group::kLanes>;
  using Pack = typename Part::Pack;
  constexpr bool kHeld = Part::kIsHalves && !kIsSoftmax<kOp> && kFloats <= (kOp == RowOp::kLayerNorm ? 16 : 32);
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < rows;
  const typename Part::Where place(group.thread(), has_row ? columns / kSize : 0);
  prefetch_weights<kOp>(group, weight, bias, columns * sizeof(T));
  wait_for_predecessors();
  let_dependents_start();
  const std::uint64_t first = std::uint64_t{group.row()} * place.count;
  Part x, weights;
  if constexpr (kHeld) load_weights(weights, weight, place);
  x.load(static_cast<const Pack*>(in) + first, place);
  prefetch_ahead<kFloats>(group, static_cast<const T*>(in), rows, columns, ahead);
  const RowFacts facts = reduce_row<kOp>(group, x, place, epsilon, columns);
  write_row<kOp>(facts, x, kHeld ? &weights : nullptr, static_cast<Part*>(nullptr), static_cast<const Pack*>(weight),
                 static_cast<const Pack*>(bias), static_cast<Pack*>(out) + first, place);
}

// A block, or a cluster of blocks, takes a row at a time. Each block's share of the next rows is on its
// way into shared memory meanwhile, by bulk copies, so that memory is busy while threads wait for each
// other; weights and bias stay in registers.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(32 * kStreamWarps)
    rows_streamed(void* out, const void* in, const void* weight, const void* bias, float epsilon, std::uint32_t rows,
                  std::uint32_t columns, std::uint32_t) {
#if __CUDA_ARCH__ >= 900
  using Part = RowPart<T, kStreamPacks, kPackSize<T>>;
  using Pack = typename Part::Pack;
  extern __shared__ __align__(128) unsigned char landing_bytes[];
  __shared__ BulkBarrier landed[kMostStages];
  BlocksPerRow<kStreamWarps> group;
  const std::uint32_t packs = columns / kPackSize<T>, share = (packs + group.blocks() - 1) / group.blocks();
  const std::uint32_t begin = group.block() * share, count = min(share, packs - begin);
  const typename Part::Where place(threadIdx.x, count);
  auto* const landing = reinterpret_cast<Pack*>(landing_bytes);
  const std::uint32_t stages = dynamic_shared_bytes() / (share * 16);
  const auto fetch = [&](std::uint32_t s, std::uint64_t row) {
    landed[s].expect_bulk(landing + s * share, static_cast<const Pack*>(in) + row * packs + begin, count * 16);
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
  Part weights, biases;
  if constexpr (!kIsSoftmax<kOp>) {
    load_weights(weights, weight != nullptr ? static_cast<const Pack*>(weight) + begin : nullptr, place);
  }
  if constexpr (kOp == RowOp::kLayerNorm) {
    biases.fill(0);
    if (bias != nullptr) biases.load(static_cast<const Pack*>(bias) + begin, place);
  }

  std::uint32_t s = 0, phase = 0;
  for (std::uint64_t row = group.row(); row < rows; row += group.rows(), ++group.turn) {
    landed[s].wait(phase);
    Part x;
    x.load(landing + s * share, place);
    const RowFacts facts = reduce_row<kOp>(group, x, place, epsilon, columns);
    // All have read the stage before any knew the sum: it is free for the row after the next ones.
    const std::uint64_t next = row + std::uint64_t{stages} * group.rows();
    if (threadIdx.x == 0 && next < rows) fetch(s, next);
    if (++s == stages) s = 0, phase ^= 1;
    write_row<kOp>(facts, x, kIsSoftmax<kOp> ? nullptr : &weights, kOp == RowOp::kLayerNorm ? &biases : nullptr,
                   static_cast<const Pack*>(nullptr), static_cast<const Pack*>(nullptr),
                   static_cast<Pack*>(out) + row * packs + begin, place);
  }
#endif
}

// A block per row, element by element: rows of any length at any address.
template <RowOp kOp, class T>
__global__ void __launch_bounds__(512) rows_any(void* out, const void* in, const void* weight, const void* bias,
                                                float epsilon, std::uint32_t, std::uint32_t columns, std::uint32_t) {
  BlocksPerRow<16> group;
  const T* const x = static_cast<const T*>(in) + std::uint64_t{blockIdx.x} * columns;
  T* const y = static_cast<T*>(out) + std::uint64_t{blockIdx.x} * columns;
  wait_for_predecessors();

  float scale = 1, shift = 0;
  if constexpr (kIsSoftmax<kOp>) {
    MaxSum mine{-INFINITY, 0.0f};
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) mine = merge(mine, MaxSum{to_float(x[i]), 1.0f});
    const MaxSum all = group.reduce(mine);
    shift = -(kOp == RowOp::kSoftmax ? finite_or_zero(all.most) : all.most);
    scale = kOp == RowOp::kSoftmax ? 1 / all.sum : -logf(all.sum);
  } else {
    const float share = 1.0f / static_cast<float>(columns);
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
      for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) sum += to_float(x[i]);
      shift = -group.reduce(sum) * share;
    }
    float squares = 0;
    ++group.turn;
    for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
      const float value = to_float(x[i]) + shift;
      squares += value * value;
    }
    scale = rsqrtf(group.reduce(squares) * share + epsilon);
  }

  for (std::uint32_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = to_float(x[i]) + shift;
    if constexpr (kOp == RowOp::kSoftmax) value = exp_of(value);
    // A large maximum would swallow the logarithm: it comes after the maximum is gone.
    value = kOp == RowOp::kLogSoftmax ? value + scale : value * scale;
    if (!kIsSoftmax<kOp> && weight != nullptr) value *= to_float(static_cast<const T*>(weight)[i]);
    if (kOp == RowOp::kLayerNorm && bias != nullptr) value += to_float(static_cast<const T*>(bias)[i]);
    y[i] = from_float<T>(value);
  }
}

template <RowOp kOp, class T>
void rows_on_host(HostGrid, void* out, const void* in, const void* weight, const void* bias, float epsilon,
                  std::uint32_t rows, std::uint32_t columns, std::uint32_t) {
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
    case RowRegime::kLanes4: return with_host_body<rows_in_registers<kOp, T, LanesPerRow<4>, 16>, kOp, T>();
    case RowRegime::kLanes16: return with_host_body<rows_in_registers<kOp, T, LanesPerRow<16>, 16>, kOp, T>();
    case RowRegime::kWarp16: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 16>, kOp, T>();
    case RowRegime::kWarp32: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 32>, kOp, T>();
    case RowRegime::kBlock8: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow<16>, 8>, kOp, T>();
    case RowRegime::kBlock16:
      if constexpr (kOp == RowOp::kLayerNorm && sizeof(T) == 4)
        return with_host_body<rows_in_registers<kOp, T, BlocksPerRow<16>, 16>, kOp, T>();
      break;
    case RowRegime::kBlock32: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow<16>, 32>, kOp, T>();
    case RowRegime::kBlock64:
      if constexpr (sizeof(T) == 2) return with_host_body<rows_in_registers<kOp, T, BlocksPerRow<16>, 64>, kOp, T>();
      break;
    case RowRegime::kElementLanes4: return with_host_body<rows_in_registers<kOp, T, LanesPerRow<4>, 16, 1>, kOp, T>();
    case RowRegime::kElementWarp16: return with_host_body<rows_in_registers<kOp, T, WarpPerRow, 16, 1>, kOp, T>();
    case RowRegime::kElements16: return with_host_body<rows_in_registers<kOp, T, BlocksPerRow<16>, 16, 1>, kOp, T>();
    case RowRegime::kStream: return with_host_body<rows_streamed<kOp, T>, kOp, T>();
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
