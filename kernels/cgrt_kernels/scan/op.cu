#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/async_copy.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/scan/look_back.cuh"
#include "cgrt_kernels/scan/op.h"
#include "cgrt_kernels/scan/op_reference.h"

namespace cgrt::kernels {
namespace {

constexpr int kPacks = kScanThreadBytes / 16;  // of a thread
constexpr int kMostWarps = kScanMostThreads / 32;
constexpr unsigned kAll = 0xffffffffu;

template <class T>
struct alignas(16) Plain {
  T value[kPackSize<T>];
};
template <class T>
__device__ __forceinline__ void unpack(const Plain<T>& pack, T (&values)[kPackSize<T>]) {
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) values[i] = pack.value[i];
}
template <class T>
__device__ __forceinline__ void pack_into(Plain<T>& pack, const T (&values)[kPackSize<T>]) {
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) pack.value[i] = values[i];
}

// What was computed from `pack` is computed again behind this, not kept in registers meanwhile: floats of
// 16-bit elements take twice as many.
template <class Pack>
__device__ __forceinline__ void forget_origin(Pack& pack) {
  auto& words = reinterpret_cast<uint4&>(pack);
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
}

// Signed integers are scanned as unsigned ones, which may wrap around.
template <class T>
struct ElementOf {
  using Sum = T;
  using Pack = Plain<T>;
};
template <>
struct ElementOf<__half> {
  using Sum = float;
  using Pack = Pairs<__half2>;
};
template <>
struct ElementOf<__nv_bfloat16> {
  using Sum = float;
  using Pack = Pairs<__nv_bfloat162>;
};

// Where a tile is: its first slot is element `at` of the arrays, and its row's elements are in the slots
// [low, high). Tiles begin at a multiple of 16 bytes: where a row does not, they begin before it.
struct Tile {
  std::int64_t at;
  std::uint32_t low, high;
  std::uint32_t row, index;  // the index is in the row
};

template <class T>
__device__ __forceinline__ std::uint32_t misaligned(const T* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
}

template <class T>
__device__ __forceinline__ Tile make_tile(const T* in, std::uint64_t columns, std::uint32_t row, std::uint32_t index,
                                          std::uint32_t width) {
  const std::uint32_t shift = misaligned(in + row * columns) / sizeof(T);
  const std::uint64_t first = std::uint64_t{index} * width, end = shift + columns;
  return {static_cast<std::int64_t>(row * columns + first) - shift, index == 0 ? shift : 0,
          static_cast<std::uint32_t>(first >= end          ? 0
                                     : end - first < width ? end - first
                                                           : width),
          row, index};
}

// Whether the pack at slot `slot` has elements of the row only.
template <class T>
__device__ __forceinline__ bool is_inside(std::uint32_t slot, std::uint32_t low, std::uint32_t high) {
  return slot >= low && slot + kPackSize<T> <= high;
}

// `from` is where the pack is; 0 for what is not of the row.
template <class T>
__device__ __forceinline__ void load_edge(void* pack, const T* from, std::uint32_t slot, std::uint32_t low,
                                          std::uint32_t high) {
  T elements[kPackSize<T>];
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) elements[i] = slot + i >= low && slot + i < high ? from[i] : T(0);
  memcpy(pack, elements, 16);
}
template <class T>
__device__ __forceinline__ void store_edge(T* to, const void* pack, std::uint32_t slot, std::uint32_t low,
                                           std::uint32_t high) {
  T elements[kPackSize<T>];
  memcpy(elements, pack, 16);
#pragma unroll
  for (int i = 0; i < kPackSize<T>; ++i) {
    if (slot + i >= low && slot + i < high) to[i] = elements[i];
  }
}

template <class T, class Sum = typename ElementOf<T>::Sum>
__device__ __forceinline__ Sum sum_of(const typename ElementOf<T>::Pack& pack) {
  Sum values[kPackSize<T>];
  unpack(pack, values);
#pragma unroll
  for (int i = 1; i < kPackSize<T>; ++i) values[i] += values[i - 1];
  return values[kPackSize<T> - 1];
}

// The results of a pack, where all elements before it sum up to `before`.
template <class T>
__device__ __forceinline__ typename ElementOf<T>::Pack scan_pack(const typename ElementOf<T>::Pack& pack,
                                                                 typename ElementOf<T>::Sum before, bool is_exclusive) {
  typename ElementOf<T>::Sum values[kPackSize<T>];
  unpack(pack, values);
#pragma unroll
  for (int i = 1; i < kPackSize<T>; ++i) values[i] += values[i - 1];
  if (is_exclusive) {
#pragma unroll
    for (int i = kPackSize<T> - 1; i > 0; --i) values[i] = values[i - 1];
    values[0] = {};
  }
#pragma unroll
  for (auto& value : values) value += before;
  typename ElementOf<T>::Pack result;
  pack_into(result, values);
  return result;
}

// A warp's packs in their order: pack 0 of each lane, pack 1 of each, ... Each pack's sum becomes that of all
// packs before it; returns the sum of all.
template <class Sum, int kCount>
__device__ __forceinline__ Sum scan_warp(Sum (&sums)[kCount]) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const Sum before = __shfl_up_sync(kAll, sums[k], distance);
      if (lane >= distance) sums[k] += before;
    }
  }
  Sum total{};
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const Sum of_all_lanes = __shfl_sync(kAll, sums[k], 31);
    const Sum before = __shfl_up_sync(kAll, sums[k], 1);
    sums[k] = lane == 0 ? total : total + before;
    total += of_all_lanes;
  }
  return total;
}

template <class Sum>
struct SumsOfBlock {
  Sum before_warp, all;
};
template <class Sum>
__device__ __forceinline__ SumsOfBlock<Sum> scan_block(const Sum* of_warps) {
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  Sum sum = lane < warps ? of_warps[lane] : Sum{};
#pragma unroll
  for (int distance = 1; distance < kMostWarps; distance *= 2) {
    const Sum before = __shfl_up_sync(kAll, sum, distance);
    if (lane >= distance) sum += before;
  }
  const Sum before = __shfl_sync(kAll, sum, warp - 1);
  return {warp == 0 ? Sum{} : before, __shfl_sync(kAll, sum, warps - 1)};
}

template <ScanRegime kRegime>
constexpr int kMostThreads = kRegime == ScanRegime::kTiles ? kScanTileThreads : kScanMostThreads;
// As many as registers allow: while some blocks wait for sums, others read and write.
template <class T, ScanRegime kRegime>
constexpr int kBlocksPerSm = kRegime != ScanRegime::kTiles             ? 2
                             : sizeof(typename ElementOf<T>::Sum) == 4 ? 5
                                                                       : 4;

// Each thread holds kPacks packs, a warp a contiguous piece, a block a tile. Tiles are taken in the order of
// tickets, so that all tiles before one of this launch are being worked on; the tiles of one place in all
// rows come before those of the next place, which find their predecessors done.
template <class T, ScanRegime kRegime>
__global__ void __launch_bounds__(kMostThreads<kRegime>, kBlocksPerSm<T, kRegime>)
    scan_tiles(void* out, const void* in, std::uint64_t columns, std::uint32_t rows, std::uint32_t tiles,
               bool is_exclusive, void* workspace) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  wait_for_predecessors();

  std::uint32_t row = blockIdx.x, index = 0, tag = 0;
  if constexpr (kRegime == ScanRegime::kWarp) {
    row = blockIdx.x * warps + warp;
    if (row >= rows) return;
  }
  if constexpr (kRegime == ScanRegime::kTiles) {
    __shared__ std::uint64_t drawn;
    if (threadIdx.x == 0) {
      drawn = draw_ticket(workspace);
      reset_if_last(workspace, drawn, gridDim.x - 1);
    }
    __syncthreads();
    tag = tag_of(drawn);
    index = static_cast<std::uint32_t>(drawn) / rows;
    row = static_cast<std::uint32_t>(drawn) - index * rows;
  }

  const T* const x = static_cast<const T*>(in);
  const std::uint32_t width = (kRegime == ScanRegime::kWarp ? 1 : warps) * (32 * kPacks * kPack);
  const Tile tile = make_tile(x, columns, row, index, width);
  const std::uint32_t begin = ((kRegime == ScanRegime::kWarp ? 0 : warp) * kPacks * 32 + lane) * kPack;
  const T* const from = x + tile.at;
  T* const to = static_cast<T*>(out) + tile.at;
  const bool has_edges = tile.low != 0 || tile.high % kPack != 0;

  Pack packs[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const std::uint32_t slot = begin + k * 32 * kPack;
    packs[k] = Pack{};
    if (is_inside<T>(slot, tile.low, tile.high)) packs[k] = *reinterpret_cast<const Pack*>(from + slot);
  }
  if (has_edges) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::uint32_t slot = begin + k * 32 * kPack;
      if (!is_inside<T>(slot, tile.low, tile.high)) load_edge(&packs[k], from + slot, slot, tile.low, tile.high);
    }
  }

  Sum before_packs[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) before_packs[k] = sum_of<T>(packs[k]);
  const Sum total = scan_warp(before_packs);

  Sum before_warp{};
  if constexpr (kRegime != ScanRegime::kWarp) {
    __shared__ Sum totals[kMostWarps];
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    const SumsOfBlock<Sum> sums = scan_block(totals);
    before_warp = sums.before_warp;
    if constexpr (kRegime == ScanRegime::kTiles) {
      __shared__ Sum before_tile[kLookBackParts];
      if (warp < kLookBackParts) {
        const PublishedSums<Sum> published(workspace, rows, row, tiles);
        if (threadIdx.x == 0) publish(published.of_tiles + index, sums.all, tag);
        const Sum before = look_back(static_cast<LookBack>(warp), published, index, tag);
        if (lane == 0) before_tile[warp] = before;
      }
      __syncthreads();
      before_warp = (before_tile[0] + before_tile[1]) + before_warp;
    }
  }
  let_dependents_start();

  const bool is_packed = misaligned(to) == 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const std::uint32_t slot = begin + k * 32 * kPack;
    const Sum before = before_warp + before_packs[k];
    forget_origin(packs[k]);
    const Pack result = scan_pack<T>(packs[k], before, is_exclusive);
    if (is_packed && is_inside<T>(slot, tile.low, tile.high)) {
      *reinterpret_cast<Pack*>(to + slot) = result;
    } else {
      store_edge(to + slot, &result, slot, tile.low, tile.high);
    }
  }
}

// For so many tiles that blocks stay, one on each multiprocessor, and take one after the other: when a block
// looks back from a tile, that tile's sum was published a tile earlier, so that all find what they wait for.
//
//   a block's tile    n               n + 1                n + 2                n + 3
//   meanwhile         looks back,     is summed, its sum   is being copied to   its ticket
//                     is stored       is published         shared memory        is drawn
//
// Threads read what they copied themselves: a barrier is needed for sums and tickets only.
template <class T>
__global__ void __launch_bounds__(kScanMostThreads, 1)
    scan_stream(void* out, const void* in, std::uint64_t columns, std::uint32_t rows, std::uint32_t tiles,
                bool is_exclusive, void* workspace) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>, kStages = kScanStreamStages, kPacksOfTile = kScanStreamThreadBytes / 16;
  constexpr int kRemembered = 8;  // tiles: kStages, and 2 that the slowest warps may still look at
  constexpr std::uint32_t kNone = ~0u;
  static_assert(kRemembered >= kStages + 2);
  extern __shared__ uint4 ring[];  // of stages; in each the packs of a thread are 32 apart
  __shared__ Tile remembered[kRemembered];
  __shared__ Sum totals[2][kMostWarps], before_tiles[2][kLookBackParts];
  __shared__ std::uint32_t shared_tag;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t packs_of_stage = blockDim.x * kPacksOfTile, width = packs_of_stage * kPack;
  const std::uint32_t first_pack = warp * kPacksOfTile * 32 + lane, begin = first_pack * kPack;
  const T* const x = static_cast<const T*>(in);
  wait_for_predecessors();

  const auto tile_of = [&](std::uint32_t n) -> Tile& { return remembered[n % kRemembered]; };
  const auto remember = [&](std::uint32_t n, std::uint64_t ticket) {
    const auto number = static_cast<std::uint32_t>(ticket);
    reset_if_last(workspace, ticket, tiles * rows + kStages * gridDim.x - 1);  // each block draws kStages in vain
    const std::uint32_t index = number / rows, row = number - index * rows;
    if (index < tiles) {
      tile_of(n) = make_tile(x, columns, row, index, width);
    } else {
      tile_of(n).index = kNone;
    }
  };
  const auto copy = [&](std::uint32_t n, std::uint32_t stage) {
    const Tile& tile = tile_of(n);
    if (tile.index != kNone) {
      const std::uint32_t low = tile.low, high = tile.high;
      const T* const from = x + tile.at + begin;
      uint4* const packs = ring + stage * packs_of_stage + first_pack;
      if (low == 0 && high == width) {
#pragma unroll
        for (int k = 0; k < kPacksOfTile; ++k) copy_asynchronously(packs + k * 32, from + k * 32 * kPack);
      } else {
#pragma unroll 1
        for (int k = 0; k < kPacksOfTile; ++k) {
          const std::uint32_t slot = begin + k * 32 * kPack;
          if (is_inside<T>(slot, low, high)) {
            copy_asynchronously(packs + k * 32, from + k * 32 * kPack);
          } else {
            load_edge(packs + k * 32, from + k * 32 * kPack, slot, low, high);
          }
        }
      }
    }
    end_copy_group();
  };
  const auto pack_at = [&](std::uint32_t stage, int k) {
    return *reinterpret_cast<const Pack*>(ring + stage * packs_of_stage + first_pack + k * 32);
  };
  // Until the packs of the stage have landed, kStages - 2 copies after it.
  const auto sum_packs = [&](std::uint32_t stage, Sum(&before_packs)[kPacksOfTile], Sum(&of_warps)[kMostWarps]) {
    wait_for_copies<kStages - 2>();
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) before_packs[k] = sum_of<T>(pack_at(stage, k));
    const Sum total = scan_warp(before_packs);
    if (lane == 0) of_warps[warp] = total;
  };
  const auto publish_sum = [&](std::uint32_t n, Sum sum, std::uint32_t tag) {
    const Tile& tile = tile_of(n);
    if (tile.index == kNone) return;
    publish(PublishedSums<Sum>(workspace, rows, tile.row, tiles).of_tiles + tile.index, sum, tag);
  };
  const auto store = [&](std::uint32_t n, std::uint32_t stage, const Sum(&before_packs)[kPacksOfTile], Sum before) {
    const Tile& tile = tile_of(n);
    const std::uint32_t low = tile.low, high = tile.high;
    T* const to = static_cast<T*>(out) + tile.at + begin;
    const bool is_packed = misaligned(to) == 0, is_whole = is_packed && low == 0 && high == width;
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) {
      const std::uint32_t slot = begin + k * 32 * kPack;
      const Pack result = scan_pack<T>(pack_at(stage, k), before + before_packs[k], is_exclusive);
      if (is_whole || (is_packed && is_inside<T>(slot, low, high))) {
        *reinterpret_cast<Pack*>(to + k * 32 * kPack) = result;
      } else {
        store_edge(to + k * 32 * kPack, &result, slot, low, high);
      }
    }
  };

  // A ticket is drawn when the one before has arrived: two at once would be neighbours, and the next block
  // would wait for both of this one's tiles.
  std::uint64_t ticket = 0;
#pragma unroll 1
  for (std::uint32_t n = 0; n < kStages - 1; ++n) {
    if (threadIdx.x == 0) {
      ticket = draw_ticket(workspace);
      shared_tag = tag_of(ticket);
      remember(n, ticket);
    }
    __syncthreads();
    copy(n, n);
  }
  const std::uint32_t tag = shared_tag;
  if (threadIdx.x == 0) ticket = draw_ticket(workspace);
  Sum before_packs[kPacksOfTile];
  sum_packs(0, before_packs, totals[1]);
  if (threadIdx.x == 0) remember(kStages - 1, ticket);
  __syncthreads();
  SumsOfBlock<Sum> sums = scan_block(totals[1]);
  if (threadIdx.x == 0) publish_sum(0, sums.all, tag);

  std::uint32_t stage = 0;
#pragma unroll 1
  for (std::uint32_t n = 0; tile_of(n).index != kNone; ++n) {
    const std::uint32_t next = stage == kStages - 1 ? 0 : stage + 1;
    copy(n + kStages - 1, stage == 0 ? kStages - 1 : stage - 1);
    if (threadIdx.x == 0) ticket = draw_ticket(workspace);
    Sum before_next_packs[kPacksOfTile];
    sum_packs(next, before_next_packs, totals[n % 2]);
    // The last warps: the first thread draws and remembers.
    if (const std::uint32_t part = blockDim.x / 32 - 1 - warp; part < kLookBackParts) {
      const PublishedSums<Sum> published(workspace, rows, tile_of(n).row, tiles);
      const Sum before = look_back(static_cast<LookBack>(part), published, tile_of(n).index, tag);
      if (lane == 0) before_tiles[n % 2][part] = before;
    }
    if (threadIdx.x == 0) remember(n + kStages, ticket);
    __syncthreads();
    const SumsOfBlock<Sum> next_sums = scan_block(totals[n % 2]);
    if (threadIdx.x == 0) publish_sum(n + 1, next_sums.all, tag);
    const Sum(&before_tile)[kLookBackParts] = before_tiles[n % 2];
    store(n, stage, before_packs, (before_tile[0] + before_tile[1]) + sums.before_warp);
#pragma unroll
    for (int k = 0; k < kPacksOfTile; ++k) before_packs[k] = before_next_packs[k];
    sums = next_sums;
    stage = next;
  }
}

// Floats are summed in double.
template <class T>
struct HostElement {
  using Sum = T;
  static Sum read(T value) { return value; }
  static T write(Sum sum) { return sum; }
};
template <class T>
struct HostFloat {
  using Sum = double;
  static Sum read(T value) { return static_cast<double>(to_float(value)); }
  static T write(Sum sum) { return from_float<T>(static_cast<float>(sum)); }
};
template <>
struct HostElement<float> : HostFloat<float> {};
template <>
struct HostElement<__half> : HostFloat<__half> {};
template <>
struct HostElement<__nv_bfloat16> : HostFloat<__nv_bfloat16> {};

template <class T>
void scan_on_host(HostGrid, void* out, const void* in, std::uint64_t columns, std::uint32_t rows, std::uint32_t,
                  bool is_exclusive, void*) {
  using Element = HostElement<T>;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const T* const x = static_cast<const T*>(in) + row * columns;
    T* const y = static_cast<T*>(out) + row * columns;
    scan_reference<typename Element::Sum>(
        is_exclusive ? ScanKind::kExclusive : ScanKind::kInclusive, columns,
        [&](std::uint64_t i) { return Element::read(x[i]); },
        [&](std::uint64_t i, typename Element::Sum sum) { y[i] = Element::write(sum); });
  }
}

template <class T>
ScanKernel of_regime(ScanRegime regime) {
  constexpr KernelResources kResources{.registers = 64, .static_shared_bytes = 256, .max_threads = kScanMostThreads};
  constexpr KernelResources kOfStream{.registers = 128, .static_shared_bytes = 640, .max_threads = kScanMostThreads};
  switch (regime) {
    case ScanRegime::kWarp: return make_kernel<scan_tiles<T, ScanRegime::kWarp>, scan_on_host<T>, kResources>();
    case ScanRegime::kBlock: return make_kernel<scan_tiles<T, ScanRegime::kBlock>, scan_on_host<T>, kResources>();
    case ScanRegime::kTiles: return make_kernel<scan_tiles<T, ScanRegime::kTiles>, scan_on_host<T>, kResources>();
    case ScanRegime::kStream: break;
  }
  return make_kernel<scan_stream<T>, scan_on_host<T>, kOfStream>();
}

}  // namespace

ScanKernel scan_kernel(DType type, ScanRegime regime) {
  switch (type) {
    case DType::kFloat32: return of_regime<float>(regime);
    case DType::kFloat16: return of_regime<__half>(regime);
    case DType::kBFloat16: return of_regime<__nv_bfloat16>(regime);
    case DType::kFloat64: return of_regime<double>(regime);
    case DType::kInt32: return of_regime<std::uint32_t>(regime);
    case DType::kInt64: break;
  }
  return of_regime<std::uint64_t>(regime);
}

}  // namespace cgrt::kernels
