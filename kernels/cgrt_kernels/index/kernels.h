// What index's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/index/index_desc.h"

namespace cgrt::kernels {

enum class IndexRegime : std::uint8_t {
  kSelect,
  kFew,      // up to kMaxFew indices, where atomics may not or do not pay: who has the first of equal ones adds for all
  kGrouped,  // likewise up to kMaxGrouped indices, which blocks group
  kAtomic,   // a pack of the row by one instruction where the device has it; 16-bit types in the workspace
  kMerged,   // likewise, of what a block has of one row at once
  kScatter,  // element by element, likewise
  kSorted,   // indices sorted, then equal ones summed up
};
inline constexpr std::uint32_t kMaxFew = 32, kMaxGrouped = 1024;

inline constexpr std::uint32_t kIndexBlock = 256;
inline constexpr std::uint32_t kFewItems = 2, kSelectItems = 4;  // of a thread, in flight at once

// Of all regimes but kGrouped, kMerged and kSorted. `out` of kAtomic and kScatter are floats.
struct IndexParams {
  void* out;
  const void *in, *index;
  float alpha;
  std::uint32_t rows, count;
  std::uint32_t items;  // packs, or elements, of the rows that the indices name
  Divisor packs;        // of a row
  bool is_long;         // int64 indices
  bool is_streamed;     // kSelect: what is written is more than the L2 cache keeps
};
using IndexKernel = Kernel<IndexParams>;

IndexKernel select_kernel(std::uint32_t pack_bytes, std::uint32_t items);  // 16, 8, 4 or 2; 1 or kSelectItems
IndexKernel add_kernel(IndexRegime regime, DType type, Alignment alignment);

// Of kAtomic, kMerged and kScatter of 16-bit types: a float for each element of the result, in the workspace, to which
// they add.
struct AddSumsParams {
  void* out;
  const float* sums;
  float alpha;
  std::uint64_t count;
};
using ClearSumsKernel = Kernel<float*, std::uint64_t>;  // sums, how many
using AddSumsKernel = Kernel<AddSumsParams>;

ClearSumsKernel clear_sums_kernel();
AddSumsKernel add_sums_kernel(DType type, Alignment alignment);

// Where few indices name many rows, their sums are: a row's stand where one of the indices that name it does, its
// owner. Rows that no index names have no owner, and their words no value.
struct OwnedSumsParams {
  void* out;
  const void* in;
  float* sums;            // a row for each index
  std::uint32_t* owners;  // of each row
  const void* index;
  float alpha;
  std::uint32_t rows, count;
  // Packs of `sums`: of 4 where they are cleared, where they become part of `out` as its alignment says. Where they are
  // added to, one column of a few indices.
  std::uint32_t items;
  Divisor packs;  // of a row
  bool is_long;
};
using OwnedSumsKernel = Kernel<OwnedSumsParams>;

// Of a thread that adds to sums: indices, of which those of one row are one sum.
inline constexpr std::uint32_t kOwnedLines = 8;

OwnedSumsKernel clear_owned_kernel();                                   // and finds the owners
OwnedSumsKernel add_to_owners_kernel(DType type, std::uint32_t lines);  // 1 or kOwnedLines
OwnedSumsKernel add_owned_kernel(DType type, Alignment alignment);

// In device memory: what only the indices say.
struct SumCounters {
  std::uint32_t pairs;   // those whose index is a row
  std::uint32_t owners;  // chunks that begin a run of equal keys too long for themselves
};

// A pass of a stable radix sort: pairs of key (x) and position (y), those of equal digits in the order in which they
// were. A block has a tile of them: fewer where pairs are few, so that more blocks wait for them.
inline constexpr std::uint32_t kShortTile = 2048, kLongTile = 4096, kMaxDigits = 256;

enum class SortSource : std::uint8_t { kInt32, kInt64, kPairs };

struct IndexSortParams {
  uint2* to;
  const void* from;
  std::uint32_t* counts;  // of each digit in each tile, [digit][tile]; then those in the tiles before
  std::uint32_t* totals;  // of each digit
  SumCounters* counters;  // set when the source is indices
  std::uint32_t count;    // of indices: where the source is pairs, `counters` say how many
  std::uint32_t rows;     // indices that are not below are left out
  Divisor columns;        // the key of the index at (i, j) is index * columns + j
  std::uint32_t tiles;
  std::uint32_t shift, bits;  // of the digit in the key
  SortSource source;
  std::uint32_t passes, rounds;  // of a sort by one cluster
};
using SortKernel = Kernel<IndexSortParams>;

SortKernel count_digits_kernel(std::uint32_t tile);  // a block for each tile, kShortTile or kLongTile
SortKernel scan_digits_kernel();                     // a block for each digit
SortKernel move_pairs_kernel(std::uint32_t tile);    // a block for each tile

// All passes in one kernel, by a cluster whose blocks keep the pairs in shared memory. A warp looks at 32 of its pairs
// in a round. Reads no `tiles`, `counts` and `totals`.
inline constexpr std::uint32_t kClusterSortBlock = 1024, kMaxClusterRounds = 8, kMaxClusterBits = 10;
inline constexpr std::uint32_t kMaxClusterBlocks = 8;  // that every device with clusters has
constexpr std::uint32_t cluster_sort_bytes(std::uint32_t rounds, std::uint32_t bits) {
  constexpr std::uint32_t kWarps = kClusterSortBlock / 32, kWord = sizeof(std::uint32_t);
  constexpr std::uint32_t kBytesOfDigit = kWarps * sizeof(std::uint16_t) + 3 * kWord;
  return rounds * kClusterSortBlock * 4 * kWord + kWarps * 2 * kWord + (kBytesOfDigit << bits);
}

SortKernel sort_in_cluster_kernel();

// Sorted pairs are summed up in chunks of the same number of pairs, so that one index that has most of the rows keeps
// all multiprocessors busy.
struct IndexSumParams {
  void* out;
  const void* in;
  float* partials;
  std::uint32_t* owners;  // in no order
  const uint2* pairs;
  SumCounters* counters;
  float alpha;
  std::uint32_t columns;
  std::uint32_t chunk, chunks;  // pairs of a chunk; the chunks of all indices
  std::uint32_t lane_bits;      // 2^that threads side by side, up to 32, each with a pack
  Divisor slices;               // of that many packs (sums) or 32 columns (joins) of a row
};
using SumKernel = Kernel<IndexSumParams>;

inline constexpr std::uint32_t kJoinBlock = 1024;

// What a thread has of a row: so many bytes side by side, an element, or elements that are spread, so that rows may
// begin anywhere: of 4 * 32 columns that 32 threads share, thread i has columns i, i + 32, i + 64 and i + 96.
enum class SumPack : std::uint8_t { kBytes16, kBytes8, kBytes4, kElement, kSpread };
inline constexpr std::uint32_t kSpreadSize = 4;

SumKernel sum_pairs_kernel(DType type, SumPack pack);
SumKernel join_partials_kernel(DType type);

// Of kGrouped.
inline constexpr std::uint32_t kGroupedBlock = 512;
struct GroupedParams {
  void* out;
  const void *in, *index;
  float alpha;
  std::uint32_t rows, count, columns;
  std::uint32_t lane_bits;  // 2^that lanes side by side, each with a pack
  Divisor slices;           // of that many packs of a row, each for a warp
  bool is_long;
};
using GroupedKernel = Kernel<GroupedParams>;

GroupedKernel add_grouped_kernel(DType type, SumPack pack);

// Of kMerged.
inline constexpr std::uint32_t kMaxMergedWindow = 1024;
struct MergedParams {
  float* out;
  const void *in, *index;
  float alpha;
  std::uint32_t rows, count, columns;
  std::uint32_t window;      // indices of a block: 2^i * kIndexBlock, kMaxMergedWindow at most
  std::uint32_t hash_shift;  // 32 - log2(2 * window): the top bits of a hash are its slot
  std::uint32_t lane_bits;   // 2^that threads side by side, up to 32, each with a pack
  Divisor slices;            // of that many packs of a row, each for a block
  bool is_long;
};
using MergedKernel = Kernel<MergedParams>;

MergedKernel add_merged_kernel(DType type, SumPack pack);  // but kElement

}  // namespace cgrt::kernels
