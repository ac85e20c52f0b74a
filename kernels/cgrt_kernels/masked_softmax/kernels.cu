#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/masked_softmax/masked_softmax_desc.h"
#include "cgrt_kernels/masked_softmax/reference.h"
#include "cgrt_kernels/rows/row.cuh"

namespace cgrt::kernels {
namespace {

// Where a row lies, its mask, and how many of its columns it sees.
template <class T>
struct MaskedRow {
  std::uint64_t first;  // element
  const T* mask;        // null: none
  std::uint32_t seen;

  __device__ __forceinline__ MaskedRow(const MaskedSoftmaxTask& task, std::uint32_t row)
      : first(std::uint64_t{row} * task.columns), mask(nullptr), seen(task.columns) {
    const std::uint32_t matrix = row / task.rows, in_matrix = row - matrix * task.rows;
    const std::uint32_t set = matrix / task.matrices_per_mask;
    if (task.mask != nullptr) {
      const std::uint64_t mask_row = std::uint64_t{set} * task.mask_rows + (task.mask_rows == 1 ? 0 : in_matrix);
      mask = static_cast<const T*>(task.mask) + mask_row * task.columns;
    }
    if (task.lengths != nullptr) seen = static_cast<std::uint32_t>(max(min(task.lengths[set], int(seen)), 0));
    if (task.is_causal != 0) {
      const int last = static_cast<int>(in_matrix) + 1 + static_cast<int>(task.columns) - static_cast<int>(task.rows);
      seen = min(seen, static_cast<std::uint32_t>(max(last, 0)));
    }
  }
};

// 0 for what has seen nothing, or NaN as the sum is: its powers are 0, and may not be multiplied by infinity.
__device__ __forceinline__ float factor_of(float most, MaxSum row) {
  return most == -INFINITY || row.sum == 0 ? 0 * row.sum : exp_of(most - row.most) / row.sum;
}

// Of a row that sees a NaN: all that it sees is one, the rest 0, and no longer a product. Finds its way anew, so that
// the others keep nothing in registers for it.
template <class T, int kPacks, int kSize>
__device__ __forceinline__ void write_nan(const MaskedSoftmaxTask& task, std::uint32_t row, std::uint32_t thread,
                                          float nan) {
  using Pack = typename RowPart<T, kPacks, kSize>::Pack;
  asm volatile("" : "+r"(row), "+r"(thread));
  const MaskedRow<T> masked(task, row);
  const Place<kPacks> place(thread, task.columns / kSize);
  auto* const out = reinterpret_cast<Pack*>(static_cast<T*>(task.out) + masked.first);
#pragma unroll 1
  for (int p = 0; p < kPacks; ++p) {
    if (!place.has(p)) continue;
    float values[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) values[i] = place.of(p) * kSize + i < masked.seen ? nan : 0.0f;
    pack_into(out[place.of(p)], values);
  }
}

// Each group of threads takes a row, read once: kFloats of it are in the registers of each thread.
template <class T, class Group, int kFloats, int kSize = kPackSize<T>>
__global__ void __launch_bounds__(Group::kMostThreads, Group::kIsWarp ? 6 : 2)
    masked_in_registers(MaskedSoftmaxTask task) {
  constexpr int kPacks = kFloats / kSize;
  using Pack = typename RowPart<T, kPacks, kSize>::Pack;
  Group group;
  const Place<kPacks> place(group.thread(), task.columns / kSize);
  wait_for_predecessors();
  let_dependents_start();
  const std::uint32_t row = group.row();
  if (Group::kIsWarp && row >= task.all_rows) return;
  const MaskedRow<T> masked(task, row);
  const auto* const in = reinterpret_cast<const Pack*>(static_cast<const T*>(task.in) + masked.first);
  auto* const out = reinterpret_cast<Pack*>(static_cast<T*>(task.out) + masked.first);
  const auto column_of = [&](int p) { return static_cast<std::uint32_t>(place.of(p)) * kSize; };
  const auto sees = [&](int p) { return column_of(p) < masked.seen; };

  Pack packs[kPacks], masks[kPacks] = {};
#pragma unroll
  for (int p = 0; p < kPacks; ++p) packs[p] = sees(p) ? in[place.of(p)] : Pack{};
  if (masked.mask != nullptr) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (sees(p)) masks[p] = reinterpret_cast<const Pack*>(masked.mask)[place.of(p)];
    }
  }
  float values[kPacks][kSize], most = -INFINITY;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    float mask[kSize];
    unpack(packs[p], values[p]);
    unpack(masks[p], mask);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      const bool is_seen = column_of(p) + static_cast<std::uint32_t>(i) < masked.seen;
      values[p][i] = is_seen ? values[p][i] * task.scale + mask[i] : -INFINITY;
      most = fmaxf(most, values[p][i]);
    }
  }
  MaxSum mine{most, 0.0f};
  const float base = finite_or_zero(most);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
#pragma unroll
    for (float& value : values[p]) mine.sum += value = exp_of(value - base);
  }
  const float factor = factor_of(most, group.reduce(mine));
  if (factor != factor) return write_nan<T, kPacks, kSize>(task, group.row(), group.thread(), factor);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (!place.has(p)) continue;
#pragma unroll
    for (float& value : values[p]) value *= factor;
    pack_into(out[place.of(p)], values[p]);
  }
}

// A block per row, element by element: rows of any length at any address.
template <class T>
__global__ void __launch_bounds__(512) masked_any(MaskedSoftmaxTask task) {
  BlocksPerRow<16> group;
  wait_for_predecessors();
  const MaskedRow<T> masked(task, blockIdx.x);
  const T* const in = static_cast<const T*>(task.in) + masked.first;
  T* const out = static_cast<T*>(task.out) + masked.first;
  const auto value_of = [&](std::uint32_t i) {
    return to_float(in[i]) * task.scale + (masked.mask != nullptr ? to_float(masked.mask[i]) : 0.0f);
  };
  MaxSum mine{-INFINITY, 0.0f};
  for (std::uint32_t i = threadIdx.x; i < masked.seen; i += blockDim.x) mine.most = fmaxf(mine.most, value_of(i));
  const float base = finite_or_zero(mine.most);
  for (std::uint32_t i = threadIdx.x; i < masked.seen; i += blockDim.x) mine.sum += exp_of(value_of(i) - base);
  const MaxSum row = group.reduce(mine);
  const float most = finite_or_zero(row.most), factor = factor_of(row.most, row);
  for (std::uint32_t i = threadIdx.x; i < task.columns; i += blockDim.x) {
    out[i] = from_float<T>(i < masked.seen ? exp_of(value_of(i) - most) * factor : 0.0f);
  }
}

template <class T>
void masked_on_host(HostGrid, MaskedSoftmaxTask task) {
  const auto read = [columns = task.columns](const void* from, std::uint64_t first) {
    std::vector<double> values(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      values[i] = static_cast<double>(to_float(static_cast<const T*>(from)[first + i]));
    }
    return values;
  };
  for (std::uint64_t row = 0; row < task.all_rows; ++row) {
    const std::uint64_t matrix = row / task.rows, in_matrix = row % task.rows, set = matrix / task.matrices_per_mask;
    std::vector<double> values = read(task.in, row * task.columns), mask;
    if (task.mask != nullptr) {
      mask = read(task.mask, (set * task.mask_rows + (task.mask_rows == 1 ? 0 : in_matrix)) * task.columns);
    }
    const std::int64_t seen = seen_columns(static_cast<std::int64_t>(in_matrix), task.rows, task.columns,
                                           task.is_causal != 0, task.lengths != nullptr ? task.lengths + set : nullptr);
    masked_softmax_reference(values, static_cast<double>(task.scale), task.mask != nullptr ? mask.data() : nullptr,
                             seen);
    for (std::uint32_t i = 0; i < task.columns; ++i) {
      static_cast<T*>(task.out)[row * task.columns + i] = from_float<T>(static_cast<float>(values[i]));
    }
  }
}

template <auto kKernel, class T>
MaskedSoftmaxKernel with_host_body() {
  return make_kernel<kKernel, masked_on_host<T>, KernelResources{.registers = 64, .max_threads = 512}>();
}

template <class T>
MaskedSoftmaxKernel of_regime(MaskedSoftmaxRegime regime) {
  switch (regime) {
    case MaskedSoftmaxRegime::kWarp8: return with_host_body<masked_in_registers<T, WarpPerRow, 8>, T>();
    case MaskedSoftmaxRegime::kWarp32: return with_host_body<masked_in_registers<T, WarpPerRow, 32>, T>();
    case MaskedSoftmaxRegime::kBlock8: return with_host_body<masked_in_registers<T, BlocksPerRow<16>, 8>, T>();
    case MaskedSoftmaxRegime::kBlock16: return with_host_body<masked_in_registers<T, BlocksPerRow<16>, 16>, T>();
    case MaskedSoftmaxRegime::kElements8: return with_host_body<masked_in_registers<T, BlocksPerRow<16>, 8, 1>, T>();
    case MaskedSoftmaxRegime::kAny: break;
  }
  return with_host_body<masked_any<T>, T>();
}

}  // namespace

MaskedSoftmaxKernel masked_softmax_kernel(DType type, MaskedSoftmaxRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<float>(regime);
    case DType::kFloat16: return of_regime<__half>(regime);
    default: return of_regime<__nv_bfloat16>(regime);  // plan_masked_softmax lets no other pass
  }
}

}  // namespace cgrt::kernels
