#include <algorithm>
#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/row/bulk_stream.cuh"
#include "cgrt_kernels/common/row/chunks.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/prefetch.cuh"
#include "cgrt_kernels/common/row/slices.cuh"
#include "cgrt_kernels/common/row/tile.cuh"
#include "cgrt_kernels/norm/columns.cuh"
#include "cgrt_kernels/norm/forward.cuh"
#include "cgrt_kernels/norm/host_body.cuh"
#include "cgrt_kernels/norm/kernels.h"

namespace cgrt::kernels {
namespace {

// Two blocks of 512 threads for a multiprocessor, with 64 registers for a thread; the packed halves of layer_norm need
// only 40.
template <NormOp kOp, bool kHasResidual, class T, class Group, int kPacks, Alignment kAlignment>
constexpr int kMinBlocks = Group::kIsWarp                                                        ? 4
                           : Group::kMaxThreads > kMaxThreads                                    ? 1
                           : kHasResidual && (kPacks > 4 || kAlignment == Alignment::kUnaligned) ? 1
                           : kOp == NormOp::kLayerNorm && !kHasResidual &&
                                   sizeof(T) == 2 && kPacks == 4 && kAlignment == Alignment::kAligned
                               ? 3
                               : 2;

// Each group of threads takes a row, read once: it is in their registers. Weights are asked for together with the row
// where that was faster; so is the bias of few elements, whose rows are few, too.
template <NormOp kOp, bool kHasResidual, class T, class Group, int kPacks, Alignment kAlignment>
__global__ void __launch_bounds__(Group::kMaxThreads, (kMinBlocks<kOp, kHasResidual, T, Group, kPacks, kAlignment>))
    norm_in_registers(NormParams p) {
  using Row = Tile<T, kPacks, Group::kLanes, kAlignment>;
  constexpr bool kAreAllHeld = Row::kIsAligned && kPacks * Row::kSize <= 8;
  constexpr bool kIsHeld = kAreAllHeld || (Row::kIsHalves && Row::kIsAligned && !kHasResidual &&
                                           kPacks * Row::kSize <= (kOp == NormOp::kLayerNorm ? 16 : 32));
  constexpr bool kIsBiasHeld = kAreAllHeld && kOp == NormOp::kLayerNorm;
  Group group;
  // Lanes without a row stay with the others of their warp.
  const bool has_row = !Group::kIsWarp || group.row() < p.rows;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t count = std::uint64_t{p.rows} * p.columns;
  const T *const in = static_cast<const T*>(p.in), *const residual = static_cast<const T*>(p.residual);
  T* const out = static_cast<T*>(p.out) + first;
  const typename Row::Where place(out, has_row ? run.count : 0, group.thread());
  const Columns<T> weight(p.weight, run.begin, p.columns),
      bias(kOp == NormOp::kLayerNorm ? p.bias : nullptr, run.begin, p.columns);
  prefetch_once(p.weight, p.columns * sizeof(T));
  if constexpr (kOp == NormOp::kLayerNorm) prefetch_once(p.bias, p.columns * sizeof(T));
  wait_for_predecessors();
  let_dependents_start();
  Row x, weights, biases;
  if constexpr (kIsHeld) hold(weights, weight, place, 1);
  if constexpr (kIsBiasHeld) hold(biases, bias, place, 0);
  x.template load<Row::kFewAtOnce>(in + first, place, in + count);
  if constexpr (kHasResidual) {
    Row added;
    added.load(residual + first, place, residual + count);
    prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);
    prefetch_ahead<Row>(group, residual, p.rows, p.columns, p.rows_ahead);
    x.add(added, place);
    if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
    x.stay_packed();
  } else {
    prefetch_ahead<Row>(group, in, p.rows, p.columns, p.rows_ahead);
  }
  const RowFacts facts = facts_of<kOp>(group, x, place, p);
  x.stay_packed();
  if constexpr (kIsHeld) weights.stay_packed();
  if constexpr (kIsBiasHeld) biases.stay_packed();
  x.store(out, place, [&](auto& values, std::uint64_t offset, int pack) {
    normalize<kOp>(values, facts);
    if constexpr (kIsHeld) {
      float others[sizeof(values) / sizeof(float)];
      unpack(weights.packs[pack], others);
      multiply(values, others);
      if constexpr (kIsBiasHeld) {
        unpack(biases.packs[pack], others);
        add(values, others);
      } else {
        apply_columns<kAlignment>(values, offset, Columns<T>(nullptr, 0, 0), bias);
      }
    } else {
      apply_columns<kAlignment>(values, offset, weight, bias);
    }
  });
}

// A block, or a cluster, takes an aligned row at a time, through registers, which also keep weight and bias.
template <NormOp kOp, class T>
__global__ void __launch_bounds__(kMaxThreads) norm_bulk_streamed(NormParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  using Rows = BulkStream<T, Group, Alignment::kAligned>;
  using Row = typename Rows::Row;
  Group group;
  Rows rows(p.shares, ring, group, p.rows, p.columns, {p.in});
  const typename Row::Where place(static_cast<const T*>(nullptr), rows.count, threadIdx.x);
  wait_for_predecessors();
  rows.start(group.row());
  Row weights, biases;
  hold(weights, Columns<T>(p.weight, rows.begin, p.columns), place, 1);
  if constexpr (kOp == NormOp::kLayerNorm) hold(biases, Columns<T>(p.bias, rows.begin, p.columns), place, 0);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    const T* at[1];
    rows.wait(row, at);
    Row x;
    x.load_shared(at[0], place);
    const RowFacts facts = facts_of<kOp>(group, x, place, p);
    rows.next(row);
    x.stay_packed();
    weights.stay_packed();
    if constexpr (kOp == NormOp::kLayerNorm) biases.stay_packed();
    x.store(static_cast<T*>(p.out) + row * p.columns + rows.begin, place, [&](auto& values, std::uint64_t, int pack) {
      constexpr int kCount = sizeof(values) / sizeof(float);
      if constexpr (kCount > 1) {
        float others[kCount];
        normalize<kOp>(values, facts);
        unpack(weights.packs[pack], others);
        multiply(values, others);
        if constexpr (kOp == NormOp::kLayerNorm) {
          unpack(biases.packs[pack], others);
          add(values, others);
        }
      }
    });
  }
#endif
}

// The same of rows that are not aligned: weight and bias are in shared memory, as each thread needs them.
template <NormOp kOp, bool kHasResidual, class T>
__global__ void __launch_bounds__(kMaxThreads, 1) norm_unaligned_bulk_streamed(NormParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 ring[];
  using Group = ClusterPerRow<16>;
  constexpr int kArrays = kHasResidual ? 2 : 1;
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  using Rows = BulkStream<T, Group, Alignment::kUnaligned, kArrays>;
  using Row = typename Rows::Row;
  Group group;
  const void* const arrays[2] = {p.in, p.residual};
  Rows rows(p.shares, ring, group, p.rows, p.columns, reinterpret_cast<const void* const(&)[kArrays]>(arrays));
  std::uint64_t first = std::uint64_t{group.row()} * p.columns + rows.begin;
  const typename Row::Where place(static_cast<T*>(p.out) + first, rows.count, threadIdx.x);
  wait_for_predecessors();
  rows.start(group.row());
  const HeldColumns<Row> weight(rows.held(0), Columns<T>(p.weight, rows.begin, p.columns), place, 1);
  const HeldColumns<Row, kIsLayer> bias(rows.held(1), Columns<T>(p.bias, rows.begin, p.columns), place, 0);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), group.next()) {
    const T* at[kArrays];
    rows.wait(row, at);
    Row x;
    x.load_shared(at[0], place);
    if constexpr (kHasResidual) {
      Row added;
      added.load_shared(at[1], place);
      x.add(added, place);
      if (p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
    }
    const RowFacts facts = facts_of<kOp>(group, x, place, p);
    rows.next(row);
    x.stay_packed();
    x.store(static_cast<T*>(p.out) + first, place, [&](auto& values, std::uint64_t, int index) {
      normalize<kOp>(values, facts);
      apply_held<kIsLayer>(values, index, weight, bias);
    });
    first += std::uint64_t{group.rows()} * p.columns;
  }
#endif
}

// Persistent clusters: a row is in registers, the next one on its way to the L2 cache; weight and bias are in shared
// memory, as each thread needs them. All rows of a cluster begin alike between multiples of 16 bytes.
template <NormOp kOp, class T, Alignment kAlignment>
__global__ void __launch_bounds__(kHeldColumnThreads, 2) norm_with_held_columns(NormParams p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) uint4 columns[];
  using Group = ClusterPerRow<kHeldColumnThreads / 32>;
  using Row = Tile<T, kHeldColumnPacks, Group::kLanes, kAlignment>;
  constexpr bool kIsLayer = kOp == NormOp::kLayerNorm;
  Group group;
  const RowRun run(p.columns, group.blocks(), group.block(), Row::kSize);
  const T *const in = static_cast<const T*>(p.in), *const end = in + std::uint64_t{p.rows} * p.columns;
  std::uint64_t first = std::uint64_t{group.row()} * p.columns + run.begin;
  const std::uint64_t step = std::uint64_t{group.rows()} * p.columns;
  const typename Row::Where place(static_cast<T*>(p.out) + first, run.count, threadIdx.x);
  auto* const held = reinterpret_cast<typename Row::Pack*>(columns);
  wait_for_predecessors();
  const HeldColumns<Row, true, Row::kFewAtOnce> weight(held, Columns<T>(p.weight, run.begin, p.columns), place, 1);
  const HeldColumns<Row, kIsLayer, Row::kFewAtOnce> bias(held + Row::kPackCount * blockDim.x,
                                                         Columns<T>(p.bias, run.begin, p.columns), place, 0);
  for (std::uint64_t row = group.row(); row < p.rows; row += group.rows(), first += step, group.next()) {
    Row x;
    x.template load<Row::kFewAtOnce>(in + first, place, end);
    if (threadIdx.x == 0 && row + group.rows() < p.rows) prefetch_to_l2(in + first + step, run.count * sizeof(T));
    const RowFacts facts = facts_of<kOp>(group, x, place, p);
    x.stay_packed();
    x.store(static_cast<T*>(p.out) + first, place, [&](auto& values, std::uint64_t, int index) {
      normalize<kOp>(values, facts);
      apply_held<kIsLayer>(values, index, weight, bias);
    });
  }
#endif
}

// Rows in slices of groups of blocks, or in chunks.
template <NormOp kOp, bool kHasResidual, class Rows>
__global__ void __launch_bounds__(Rows::kThreads, Rows::kMinBlocks) norm_of_long_rows(NormParams p) {
  extern __shared__ __align__(128) uint4 landing[];
  constexpr int kArrays = kHasResidual ? 2 : 1;
  using T = typename Rows::Element;
  using Place = typename Rows::Place;
  using Work = typename Rows::Work;
  using Row = UnitRow<T, Place, kArrays>;
  const void* const arrays[2] = {p.in, p.residual};
  Rows rows(p.slices, p.rows, p.columns, p.workspace, landing, reinterpret_cast<const void* const(&)[kArrays]>(arrays),
            p.out);
  const SliceColumns<Rows, T> weight(rows, p.slices, p.weight, 0),
      bias(rows, p.slices, kOp == NormOp::kLayerNorm ? p.bias : nullptr, 1);
  __syncthreads();
  rows.run(
      [](const Place& place, const Work&, const auto&... arrays) { return part_of_units<kOp>(Row{arrays...}, place); },
      [&](const Place& place, const Work& work, const RowPart<kOp>& part, const auto&... arrays) {
        const Row x{arrays...};
        const std::uint64_t first = work.first;
        const RowFacts facts = facts_from(part, p);
#if __CUDA_ARCH__ >= 900
        if (kHasResidual && p.sum != nullptr) x.store_as_is(static_cast<T*>(p.sum) + first, place);
#endif
        const auto weights = weight.from(work.begin, place), biases = bias.from(work.begin, place);
        x.store(static_cast<T*>(p.out) + first, place, [&](auto& values, std::uint32_t, const auto& at) {
#if __CUDA_ARCH__ < 900
          // Elements come from the caller's arrays, one of which the sum may be: none is read after its sum is stored.
          if (kHasResidual && p.sum != nullptr) {
            UnitArray<T, Place>(static_cast<T*>(p.sum) + first, place).store(at, values);
          }
#endif
          float others[sizeof(values) / sizeof(float)];
          normalize<kOp>(values, facts);
          if (weight.is_there()) {
            weights.load(at, others);
            multiply(values, others);
          }
          if (bias.is_there()) {
            biases.load(at, others);
            add(values, others);
          }
        });
      });
}

template <auto kKernel, NormOp kOp, class T, std::uint32_t kThreads = kMaxThreads>
NormKernel with_host_body() {
  return make_kernel<kKernel, norm_on_host<kOp, T>, KernelResources{.registers = 64, .max_threads = kThreads}>();
}

template <NormOp kOp, bool kHasResidual, class Rows>
NormKernel of_long_rows() {
  constexpr auto kOnHost = Rows::kWrites ? norm_on_host<kOp, typename Rows::Element> : nothing_on_host<NormParams>;
  return make_kernel<norm_of_long_rows<kOp, kHasResidual, Rows>, kOnHost,
                     KernelResources{.registers = 64, .max_threads = Rows::kThreads}>();
}

template <NormOp kOp, bool kHasResidual, class T, Alignment kAlignment, class Group, int kPacks>
NormKernel in_registers() {
  constexpr std::uint32_t kThreads = std::max<std::uint32_t>(Group::kMaxThreads, kMaxThreads);
  return with_host_body<norm_in_registers<kOp, kHasResidual, T, Group, kPacks, kAlignment>, kOp, T, kThreads>();
}

template <NormOp kOp, bool kHasResidual, class T, Alignment kAlignment>
NormKernel of_regime(NormRegime regime) {
  constexpr bool kIsAligned = kAlignment == Alignment::kAligned, kIsHalf = sizeof(T) == 2;
  constexpr int kSize = kPackSize<T>, kPacks = kIsAligned ? 32 / kSize : 4, kArrays = kHasResidual ? 2 : 1;
  switch (regime) {
    case NormRegime::kFew4:
    case NormRegime::kFew8:
    case NormRegime::kLanes4:
    case NormRegime::kLanes16: break;  // see norm_few_kernel and norm_lanes_kernel
    case NormRegime::kWarp:
      if constexpr (!kIsAligned || (kIsHalf && !kHasResidual)) {
        return in_registers<kOp, kHasResidual, T, kAlignment, WarpPerRow, kPacks>();
      }
      break;
    case NormRegime::kClusterShort:
      return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 8 / kSize>();
    case NormRegime::kClusterMiddle:
      if constexpr (kIsAligned && !kIsHalf) {
        return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 16 / kSize>();
      }
      break;
    case NormRegime::kCluster: return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, kPacks>();
    case NormRegime::kClusterLong:
      if constexpr (kIsAligned && kIsHalf && !kHasResidual) {
        return in_registers<kOp, kHasResidual, T, kAlignment, ClusterPerRow<16>, 64 / kSize>();
      }
      break;
    case NormRegime::kHeldColumns:
      if constexpr (!kHasResidual) {
        return with_host_body<norm_with_held_columns<kOp, T, kAlignment>, kOp, T, kHeldColumnThreads>();
      }
      break;
    case NormRegime::kWideBlock:
      if constexpr (kIsAligned && kHasResidual) {
        return in_registers<kOp, true, T, kAlignment, ClusterPerRow<kMaxWideThreads / 32>, kWidePacks>();
      }
      break;
    case NormRegime::kBulkStream:
      if constexpr (kIsAligned && !kHasResidual) return with_host_body<norm_bulk_streamed<kOp, T>, kOp, T>();
      return with_host_body<norm_unaligned_bulk_streamed<kOp, kHasResidual, T>, kOp, T>();
    case NormRegime::kFindInChunks:
      return of_long_rows<kOp, kHasResidual, ChunkedRows<T, RowPart<kOp>, kArrays, ChunkPass::kFind>>();
    case NormRegime::kWriteChunks:
      return of_long_rows<kOp, kHasResidual, ChunkedRows<T, RowPart<kOp>, kArrays, ChunkPass::kWrite>>();
    case NormRegime::kSlices: return of_long_rows<kOp, kHasResidual, SlicedRows<T, RowPart<kOp>, kArrays>>();
  }
  return {};  // what no plan chooses
}

template <NormOp kOp, class T, Alignment kAlignment>
NormKernel of_residual(Residual residual, NormRegime regime) {
  return residual == Residual::kAdded ? of_regime<kOp, true, T, kAlignment>(regime)
                                      : of_regime<kOp, false, T, kAlignment>(regime);
}

}  // namespace

NormKernel norm_kernel(NormOp op, Residual residual, DType type, NormRegime regime, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return op == NormOp::kLayerNorm ? of_residual<NormOp::kLayerNorm, T, kAlignment>(residual, regime)
                                    : of_residual<NormOp::kRmsNorm, T, kAlignment>(residual, regime);
  });
}

}  // namespace cgrt::kernels
