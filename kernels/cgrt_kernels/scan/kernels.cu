#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/scan/kernels.h"
#include "cgrt_kernels/scan/look_back.cuh"
#include "cgrt_kernels/scan/reference.h"
#include "cgrt_kernels/scan/rows.cuh"
#include "cgrt_kernels/scan/stream.cuh"
#include "cgrt_kernels/scan/tile.cuh"

namespace cgrt::kernels {
namespace {

template <ScanRegime kRegime>
constexpr int kPacksOf = kRegime == ScanRegime::kFew ? 1 : kScanThreadBytes / 16;  // of a thread

template <ScanRegime kRegime>
constexpr int kMaxThreads = kRegime == ScanRegime::kTiles ? kScanTileThreads : kScanMaxThreads;
// As many as registers allow: while some blocks wait for sums, others read and write.
template <class T, ScanRegime kRegime>
constexpr int kBlocksPerSm = kRegime != ScanRegime::kTiles             ? 2
                             : sizeof(typename ElementOf<T>::Sum) == 4 ? 5
                                                                       : 4;

// Each thread holds one pack or four, a warp a contiguous piece, a block a tile. Tiles are taken in the order of
// tickets, so that all tiles before one of this launch are being worked on; the tiles of one place in all
// rows come before those of the next place, which find their predecessors done.
template <class T, ScanRegime kRegime>
__global__ void __launch_bounds__(kMaxThreads<kRegime>, kBlocksPerSm<T, kRegime>)
    scan_tiles(const __grid_constant__ ScanParams p) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>, kPacks = kPacksOf<kRegime>;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  wait_for_predecessors();

  std::uint32_t row = blockIdx.x, index = 0, tag = 0;
  __shared__ std::uint64_t drawn;
  if constexpr (kRegime == ScanRegime::kTiles) {
    if (threadIdx.x == 0) drawn = draw_ticket(p.header);
    __syncthreads();
    tag = tag_of(drawn);
    index = static_cast<std::uint32_t>(drawn) / p.rows;
    row = static_cast<std::uint32_t>(drawn) - index * p.rows;
  }

  const T* const x = static_cast<const T*>(p.in);
  const std::uint32_t width = warps * (32 * kPacks * kPack);
  const Tile tile = make_tile(x, p.columns, row, index, width);
  const std::uint32_t begin = (warp * kPacks * 32 + lane) * kPack;
  const T* const from = x + tile.at;
  T* const to = static_cast<T*>(p.out) + tile.at;
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

  SumsOfBlock<Sum> sums{};
  if (kRegime != ScanRegime::kFew || warps > 1) {
    __shared__ Sum totals[kScanMaxWarps];
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    sums = scan_block(totals);
  }
  Sum before_warp = sums.before_warp;
  if constexpr (kRegime == ScanRegime::kTiles) {
    __shared__ Sum before_tile[kLookBackParts];
    if (warp < kLookBackParts) {
      const PublishedSums<Sum> published(p.header->tagged, p.rows, row, p.tiles);
      if (threadIdx.x == 0) {
        publish(published.of_tile(index), sums.all, tag);
        end_if_last(p.header, drawn, gridDim.x - 1, p.tagged);  // behind all that others wait for
      }
      const Sum before = look_back(static_cast<LookBack>(warp), published, index, tag);
      if (lane == 0) before_tile[warp] = before;
    }
    __syncthreads();
    before_warp = (before_tile[0] + before_tile[1]) + before_warp;
  }
  let_dependents_start();

  const bool is_packed = misaligned(to) == 0;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const std::uint32_t slot = begin + k * 32 * kPack;
    const Sum before = before_warp + before_packs[k];
    forget_origin(packs[k]);
    const Pack result = scan_pack<T>(packs[k], before, p.is_exclusive);
    if (is_packed && is_inside<T>(slot, tile.low, tile.high)) {
      *reinterpret_cast<Pack*>(to + slot) = result;
    } else {
      store_edge(to + slot, &result, slot, tile.low, tile.high);
    }
  }
}

// Scratch memory for more published sums than a workspace's header has room for.
__global__ void __launch_bounds__(kClearBlock) clear_words(std::uint64_t* words, std::uint64_t count) {
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * kClearBlock + threadIdx.x) * 2;
  let_dependents_start();
  wait_for_predecessors();
  if (first < count) *reinterpret_cast<uint4*>(words + first) = {0, 0, 0, 0};
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
void scan_on_host(HostGrid, ScanParams p) {
  using Element = HostElement<T>;
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    const T* const x = static_cast<const T*>(p.in) + row * p.columns;
    T* const y = static_cast<T*>(p.out) + row * p.columns;
    scan_reference<typename Element::Sum>(
        p.is_exclusive ? ScanKind::kExclusive : ScanKind::kInclusive, p.columns,
        [&](std::uint64_t i) { return Element::read(x[i]); },
        [&](std::uint64_t i, typename Element::Sum sum) { y[i] = Element::write(sum); });
  }
}

void clear_on_host(HostGrid, std::uint64_t* words, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) words[i] = 0;
}

template <class T>
ScanKernel of_regime(ScanRegime regime) {
  constexpr KernelResources kResources{.registers = 64, .static_shared_bytes = 256, .max_threads = kScanMaxThreads};
  constexpr KernelResources kOfRows{.registers = 64, .max_threads = kScanRowsThreads};
  constexpr KernelResources kOfStream{.registers = 128, .static_shared_bytes = 640, .max_threads = kScanMaxThreads};
  switch (regime) {
    case ScanRegime::kOnePack: return make_kernel<scan_rows<T, 1>, scan_on_host<T>, kOfRows>();
    case ScanRegime::kTwoPacks: return make_kernel<scan_rows<T, 2>, scan_on_host<T>, kOfRows>();
    case ScanRegime::kFourPacks: return make_kernel<scan_rows<T, 4>, scan_on_host<T>, kOfRows>();
    case ScanRegime::kBlock: return make_kernel<scan_tiles<T, ScanRegime::kBlock>, scan_on_host<T>, kResources>();
    case ScanRegime::kFew: return make_kernel<scan_tiles<T, ScanRegime::kFew>, scan_on_host<T>, kResources>();
    case ScanRegime::kTiles: return make_kernel<scan_tiles<T, ScanRegime::kTiles>, scan_on_host<T>, kResources>();
    case ScanRegime::kStream: break;
  }
  return make_kernel<scan_stream<T>, scan_on_host<T>, kOfStream>();
}

}  // namespace

ClearWordsKernel clear_words_kernel() {
  return make_kernel<clear_words, clear_on_host, KernelResources{.registers = 32, .max_threads = kClearBlock}>();
}

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
