// What scan's plans and device code have in common. Internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/workspace_desc.h"
#include "cgrt_kernels/scan/scan_desc.h"

namespace cgrt::kernels {

// Who scans a row.
enum class ScanRegime : std::uint8_t {
  kOnePack,    // some lanes of a warp, or all, with a pack of 16 bytes each
  kTwoPacks,   // a warp, each lane with two packs
  kFourPacks,  // with four
  kBlock,      // a block
  kFew,        // a block of threads with a pack each, where rows are few: less for each thread to do, and to fetch
  kTiles,      // blocks that take a tile each and look back at the tiles before
  kStream,     // a block or two for each multiprocessor, which take tile after tile and look back
};

inline constexpr std::uint32_t kAllTagged = ~0u;

struct ScanParams {
  void* out;
  const void* in;
  std::uint64_t columns;
  std::uint32_t rows;
  std::uint32_t tiles;      // of a row
  std::uint32_t lane_bits;  // kOnePack to kFourPacks: the binary logarithm of a row's lanes
  bool is_exclusive;
  // Where blocks share rows: the workspace's header, and how many of its tagged words are published sums; or scratch
  // memory like its beginning, but as long as it takes, and kAllTagged.
  WorkspaceHeader* header;
  std::uint32_t tagged;
};
using ScanKernel = Kernel<ScanParams>;

// That scratch memory, how many words.
using ClearWordsKernel = Kernel<std::uint64_t*, std::uint64_t>;
inline constexpr std::uint32_t kClearBlock = 256;

// The shape of the kernels, for plans: each thread holds 64 bytes of elements at once.
inline constexpr std::uint32_t kScanThreadBytes = 64;
inline constexpr std::uint32_t kScanRowsThreads = 128;  // of a block whose warps have rows of their own
inline constexpr std::uint32_t kScanRowsBlocks = 7;     // of these, at least, on a multiprocessor
inline constexpr std::uint32_t kScanMaxThreads = 512;   // of a block that has rows of its own, or is persistent
inline constexpr std::uint32_t kScanTileThreads = 256;  // of a block that takes a tile, at most
// Persistent blocks: bytes of a tile that a thread has, and tiles for which there is shared memory.
inline constexpr std::uint32_t kScanStreamThreadBytes = 128;
inline constexpr std::uint32_t kScanStreamStages = 3;
// A sum is published for each tile, and for each kScanRadix tiles of a row but the first.
inline constexpr std::uint32_t kScanRadix = 128;
// A word for each 4 bytes of a sum.
__host__ __device__ constexpr std::uint64_t scan_words(std::uint32_t rows, std::uint32_t tiles,
                                                       std::size_t bytes_of_sum) {
  return std::uint64_t{rows} * (tiles + (tiles - 1) / kScanRadix) * (bytes_of_sum / 4);
}

ScanKernel scan_kernel(DType type, ScanRegime regime);
ClearWordsKernel clear_words_kernel();

}  // namespace cgrt::kernels
