#include <cstdint>
#include <cstring>

#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
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

// Sums of tiles on their way from block to block: each 4 bytes in a word with the launch's tag, so that
// a word says itself whether it is of this launch. Nothing else has to be visible with it.
template <class Sum>
constexpr int kWords = sizeof(Sum) / 4;

__device__ __forceinline__ std::uint64_t load_word(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

template <class Sum>
__device__ __forceinline__ void publish(std::uint64_t* sums, std::uint32_t index, Sum sum, std::uint32_t tag) {
  std::uint32_t part[kWords<Sum>];
  memcpy(part, &sum, sizeof(Sum));
#pragma unroll
  for (int w = 0; w < kWords<Sum>; ++w) {
    const std::uint64_t word = std::uint64_t{tag} << 32 | part[w];
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(sums + std::uint64_t{index} * kWords<Sum> + w), "l"(word)
                 : "memory");
  }
}

// The sum of sums[first, first + count), at most kScanRadix, once all are there. For a warp; added in an
// order that depends on `count` only.
template <class Sum>
__device__ __forceinline__ Sum sum_published(const std::uint64_t* sums, std::uint32_t first, std::uint32_t count,
                                             std::uint32_t tag) {
  constexpr int kEach = kScanRadix / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint64_t words[kEach][kWords<Sum>];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    // Behind the end: there already, and 0.
    for (auto& word : words[i]) word = std::uint64_t{i * 32 + lane < count ? ~tag : tag} << 32;
  }
  bool is_missing;
  do {
    is_missing = false;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int w = 0; w < kWords<Sum>; ++w) {
        if (words[i][w] >> 32 != tag) {
          words[i][w] = load_word(sums + (std::uint64_t{first} + i * 32 + lane) * kWords<Sum> + w);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (const std::uint64_t word : words[i]) is_missing |= word >> 32 != tag;
    }
  } while (__any_sync(kAll, is_missing));
  Sum sum{};
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    std::uint32_t part[kWords<Sum>];
#pragma unroll
    for (int w = 0; w < kWords<Sum>; ++w) part[w] = static_cast<std::uint32_t>(words[i][w]);
    Sum one;
    memcpy(&one, part, sizeof(Sum));
    sum += one;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  return sum;
}

// What the tiles before this one in its row sum up to. The tile's number in base kScanRadix has three
// digits; for each there is a warp that adds the sums of the tiles, groups of tiles and groups of groups
// that the digit counts. A tile says its own sum before it waits, the last tile of a group says the
// group's: nobody waits for a chain of tiles, however many there are, and the order of additions is fixed.
template <class Sum>
__device__ __forceinline__ Sum look_back(std::uint64_t* sums, std::uint32_t rows, std::uint32_t row,
                                         std::uint32_t tiles, std::uint32_t tile, std::uint32_t tag, Sum own) {
  __shared__ Sum before[3];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t groups = (tiles + kScanRadix - 1) / kScanRadix;
  std::uint64_t* const of_tiles = sums + std::uint64_t{row} * tiles * kWords<Sum>;
  std::uint64_t* const of_groups = sums + (std::uint64_t{rows} * tiles + std::uint64_t{row} * groups) * kWords<Sum>;
  std::uint64_t* const of_groups_of_groups =
      sums + (std::uint64_t{rows} * (tiles + groups) + std::uint64_t{row} * ((groups + kScanRadix - 1) / kScanRadix)) *
                 kWords<Sum>;
  const std::uint32_t group = tile / kScanRadix;
  const bool ends_group = tile % kScanRadix == kScanRadix - 1;
  if (threadIdx.x == 0) publish(of_tiles, tile, own, tag);
  if (warp < 3) {
    const std::uint64_t* const level = warp == 0 ? of_tiles : warp == 1 ? of_groups : of_groups_of_groups;
    const std::uint32_t end = warp == 0 ? tile : warp == 1 ? group : group / kScanRadix;
    const std::uint32_t count = end % kScanRadix;
    const Sum sum = count == 0 ? Sum{} : sum_published<Sum>(level, end - count, count, tag);
    if (lane == 0) {
      before[warp] = sum;
      if (warp == 0 && ends_group) publish(of_groups, group, sum + own, tag);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && ends_group && group % kScanRadix == kScanRadix - 1) {
    publish(of_groups_of_groups, group / kScanRadix, before[1] + (before[0] + own), tag);
  }
  return (before[2] + before[1]) + before[0];
}

template <ScanRegime kRegime>
constexpr int kMostThreads = kRegime == ScanRegime::kTiles ? kScanTileThreads : kScanMostThreads;
// As many as registers allow: while some blocks wait for sums, others read and write.
template <class T, ScanRegime kRegime>
constexpr int kBlocksPerSm = kRegime != ScanRegime::kTiles             ? 2
                             : sizeof(typename ElementOf<T>::Sum) == 4 ? 5
                                                                       : 4;

// Each thread holds kPacks packs, a warp a contiguous piece, a block a tile. Tiles begin at a multiple of
// 16 bytes: where a row does not, they begin `shift` elements before it. Tiles are taken in the order of
// tickets, so that all tiles before one of this launch are being worked on; the tiles of one place in all
// rows come before those of the next place, which find their predecessors done. The last ticket sets the
// counter back and the tag of the next launch, since by then every block has both.
template <class T, ScanRegime kRegime>
__global__ void __launch_bounds__(kMostThreads<kRegime>, kBlocksPerSm<T, kRegime>)
    scan_tiles(void* out, const void* in, std::uint64_t columns, std::uint32_t rows, std::uint32_t tiles,
               bool is_exclusive, void* workspace) {
  using Sum = typename ElementOf<T>::Sum;
  using Pack = typename ElementOf<T>::Pack;
  constexpr int kPack = kPackSize<T>;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  wait_for_predecessors();

  std::uint32_t row = blockIdx.x, tile = 0, tag = 0;
  if constexpr (kRegime == ScanRegime::kWarp) {
    row = blockIdx.x * warps + warp;
    if (row >= rows) return;
  }
  if constexpr (kRegime == ScanRegime::kTiles) {
    __shared__ unsigned long long taken;
    if (threadIdx.x == 0) {
      auto* const counter = static_cast<unsigned long long*>(workspace);
      taken = atomicAdd(counter, 1ull);
      if (static_cast<std::uint32_t>(taken) == gridDim.x - 1) *counter = ((taken >> 32) + 1) << 32;
    }
    __syncthreads();
    tag = static_cast<std::uint32_t>(taken >> 32) + 1;
    tile = static_cast<std::uint32_t>(taken) / rows;
    row = static_cast<std::uint32_t>(taken) - tile * rows;
  }

  const T* const x = static_cast<const T*>(in) + row * columns;
  T* const y = static_cast<T*>(out) + row * columns;
  const auto misaligned = [](const T* pointer) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer) % 16);
  };
  const std::uint32_t shift = misaligned(x) / sizeof(T);
  const bool is_packed = misaligned(x) == misaligned(y);
  const std::uint32_t width = (kRegime == ScanRegime::kWarp ? 1 : warps) * (32 * kPacks * kPack);
  const std::uint64_t first = std::uint64_t{tile} * width, end = shift + columns;
  // This row's elements in the tile are at [low, high).
  const std::uint32_t low = tile == 0 ? shift : 0;
  const std::uint32_t high = first >= end ? 0 : end - first < width ? end - first : width;
  const T* const from = x + first - shift;
  T* const to = y + first - shift;
  const std::uint32_t begin = ((kRegime == ScanRegime::kWarp ? 0 : warp) * kPacks * 32 + lane) * kPack;
  const auto is_inside = [&](std::uint32_t at) { return at >= low && at + kPack <= high; };
  const bool has_edges = low != 0 || high % kPack != 0;

  Pack packs[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const std::uint32_t at = begin + k * 32 * kPack;
    packs[k] = Pack{};
    if (is_inside(at)) packs[k] = *reinterpret_cast<const Pack*>(from + at);
  }
  if (has_edges) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const std::uint32_t at = begin + k * 32 * kPack;
      if (is_inside(at)) continue;
      T elements[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i) elements[i] = at + i >= low && at + i < high ? from[at + i] : T(0);
      memcpy(&packs[k], elements, 16);
    }
  }

  Sum offsets[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    Sum values[kPack];
    unpack(packs[k], values);
#pragma unroll
    for (int i = 1; i < kPack; ++i) values[i] += values[i - 1];
    offsets[k] = values[kPack - 1];
  }
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const Sum before = __shfl_up_sync(kAll, offsets[k], distance);
      if (lane >= distance) offsets[k] += before;
    }
  }
  Sum total{};
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const Sum of_pack = __shfl_sync(kAll, offsets[k], 31);
    const Sum before = __shfl_up_sync(kAll, offsets[k], 1);
    offsets[k] = lane == 0 ? total : total + before;
    total += of_pack;
  }

  Sum prefix{};
  if constexpr (kRegime != ScanRegime::kWarp) {
    __shared__ Sum totals[kMostWarps];
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    Sum sum = lane < warps ? totals[lane] : Sum{};
#pragma unroll
    for (int distance = 1; distance < kMostWarps; distance *= 2) {
      const Sum before = __shfl_up_sync(kAll, sum, distance);
      if (lane >= distance) sum += before;
    }
    const Sum before = __shfl_sync(kAll, sum, warp - 1);
    if (warp != 0) prefix = before;
    if constexpr (kRegime == ScanRegime::kTiles) {
      const Sum own = __shfl_sync(kAll, sum, warps - 1);
      auto* const sums = reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(workspace) + kScanHeaderBytes);
      prefix = look_back(sums, rows, row, tiles, tile, tag, own) + prefix;
    }
  }
  let_dependents_start();

#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const std::uint32_t at = begin + k * 32 * kPack;
    const Sum before = prefix + offsets[k];
    forget_origin(packs[k]);
    Sum values[kPack];
    unpack(packs[k], values);
#pragma unroll
    for (int i = 1; i < kPack; ++i) values[i] += values[i - 1];
    if (is_exclusive) {
#pragma unroll
      for (int i = kPack - 1; i > 0; --i) values[i] = values[i - 1];
      values[0] = Sum{};
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) values[i] += before;
    Pack result;
    pack_into(result, values);
    if (is_packed && is_inside(at)) {
      *reinterpret_cast<Pack*>(to + at) = result;
    } else {
      T elements[kPack];
      memcpy(elements, &result, 16);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (at + i >= low && at + i < high) to[at + i] = elements[i];
      }
    }
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
  switch (regime) {
    case ScanRegime::kWarp: return make_kernel<scan_tiles<T, ScanRegime::kWarp>, scan_on_host<T>, kResources>();
    case ScanRegime::kBlock: return make_kernel<scan_tiles<T, ScanRegime::kBlock>, scan_on_host<T>, kResources>();
    case ScanRegime::kTiles: break;
  }
  return make_kernel<scan_tiles<T, ScanRegime::kTiles>, scan_on_host<T>, kResources>();
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
