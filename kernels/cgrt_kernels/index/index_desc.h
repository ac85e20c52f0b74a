// Rows of a matrix picked or added to by index: what can be asked for. Plain: no Abseil. The functions
// that plan and launch are in index.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/divisor.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// The matrix has `rows` rows of `columns`, there are `count` indices (of rows of indices for
// kScatterAdd). An index below 0 or not below `rows` is not an error: its row is picked as zeros, and
// not added.
enum class IndexOp : std::uint8_t {
  kSelect,      // out[i, :] = in[index[i], :]
  kAdd,         // out[index[i], :] += alpha * in[i, :]
  kScatterAdd,  // out[index[i, j], j] += alpha * in[i, j]
};
constexpr const char* to_string(IndexOp op) {
  switch (op) {
    case IndexOp::kSelect: return "index_select";
    case IndexOp::kAdd: return "index_add";
    case IndexOp::kScatterAdd: return "scatter_add";
  }
  return "unknown";
}

// In which order what falls on one element is added. Always in float, and rounded to the type once.
enum class SumOrder : std::uint8_t {
  kAny,    // atomics where they are faster: the last bits differ from run to run
  kFixed,  // the same bits in every run
};

struct IndexDesc {
  IndexOp op = IndexOp::kSelect;
  DType type = DType::kFloat32;      // or float16, bfloat16
  DType index_type = DType::kInt64;  // or int32
  std::uint64_t rows = 0, columns = 0, count = 0;
  SumOrder order = SumOrder::kAny;
};

// Device addresses of contiguous arrays that do not overlap; `out` is added to in place.
struct IndexArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* index = nullptr;
  float alpha = 1;
  Workspace workspace = {};
};

enum class IndexRoute : std::uint8_t {
  kSelect,
  kFew,      // up to 32 indices: whoever has the first of equal ones adds for all of them
  kAtomic,   // a pack of the row by one instruction where the device has it; 16-bit types in the workspace
  kScatter,  // element by element, likewise
  kSorted,   // indices sorted, then equal ones summed up
};

// What the kernels of all routes but kSorted are told.
struct IndexShape {
  std::uint32_t rows = 0, count = 0;
  std::uint32_t items = 0;   // packs, or elements, of the rows that the indices name
  Divisor packs;             // of a row
  bool is_long = false;      // int64 indices
  bool is_streamed = false;  // kSelect: what is written is more than the L2 cache keeps
};

// out, in, index, alpha, shape
using IndexKernel = Kernel<void*, const void*, const void*, float, IndexShape>;

// Of kAtomic and kScatter of 16-bit types: a float for each element of the result, in the workspace, to which they add.
using ClearSumsKernel = Kernel<float*, std::uint64_t>;                    // sums, how many
using AddSumsKernel = Kernel<void*, const float*, float, std::uint64_t>;  // out, sums, alpha, how many

inline constexpr std::uint32_t kIndexBlock = 256;
inline constexpr std::uint32_t kIndexItems = 2;  // of a thread, in flight at once
inline constexpr std::uint32_t kSelectItems = 4;
inline constexpr std::uint32_t kMaxFew = 32;

// `pack_bytes`: 16, or the type's size; kSelect: also those between. `out` of kAtomic and kScatter are floats.
IndexKernel index_kernel(IndexRoute route, DType type, std::uint32_t pack_bytes);
ClearSumsKernel clear_sums_kernel();
AddSumsKernel add_sums_kernel(DType type, bool is_packed);

// A pass of a stable radix sort: pairs of key (x) and position (y), those of equal digits in the order
// in which they were. A block has a tile of them.
inline constexpr std::uint32_t kTile = 4096, kMaxDigits = 256;

// In device memory: what only the indices say.
struct SumCounters {
  std::uint32_t pairs;   // those whose index is a row
  std::uint32_t owners;  // chunks that begin a run of equal keys too long for themselves
};

enum class SortSource : std::uint8_t { kInt32, kInt64, kPairs };

struct SortShape {
  std::uint32_t count = 0;  // of indices: where the source is pairs, device memory says how many
  std::uint32_t rows = 0;   // indices that are not below are left out
  Divisor columns;          // the key of the index at (i, j) is index * columns + j
  std::uint32_t tiles = 0;
  std::uint32_t shift = 0, bits = 0;  // of the digit in the key
  SortSource source = SortSource::kPairs;
};

// Counts of each digit in each tile: [digit][tile]
using CountDigitsKernel = Kernel<std::uint32_t*, const void*, const SumCounters*, SortShape>;  // counts, from, counters
// For each digit the counts become those of the tiles before; their totals
using ScanDigitsKernel = Kernel<std::uint32_t*, std::uint32_t*, std::uint32_t>;  // counts, totals, tiles
// to, from, counts, totals, counters (both set when the source is indices), shape
using MovePairsKernel =
    Kernel<uint2*, const void*, const std::uint32_t*, const std::uint32_t*, SumCounters*, SortShape>;

CountDigitsKernel count_digits_kernel();
ScanDigitsKernel scan_digits_kernel();
MovePairsKernel move_pairs_kernel();

// Sorted pairs are summed up in chunks of the same number of pairs, so that one index that has most of
// the rows keeps all multiprocessors busy.
struct SumShape {
  std::uint32_t columns = 1;
  std::uint32_t chunk = 0, chunks = 0;  // pairs of a chunk; chunks at most
  std::uint32_t lane_bits = 0;          // 2^that threads side by side, up to 32, each with a pack
  Divisor slices;                       // of that many packs (sums) or 32 columns (joins) of a row
};

// out, in, partials, owners (in no order), pairs, counters, alpha, shape
using SumKernel = Kernel<void*, const void*, float*, std::uint32_t*, const uint2*, SumCounters*, float, SumShape>;

inline constexpr std::uint32_t kJoinBlock = 1024;

SumKernel sum_pairs_kernel(DType type, bool is_packed);
SumKernel join_partials_kernel(DType type);

// What a chunk does with the equal keys at its two ends, the same for the kernels and the host. Equal
// keys belong to the chunk in which they begin. It also takes those in the next chunk; if they go on
// beyond, each chunk leaves its part as a partial sum (row 2 * chunk for the beginning, the next for the
// end), and another kernel joins them.
struct ChunkEnds {
  enum class Begin : std::uint8_t { kOwn, kSkipped, kPartial };
  enum class End : std::uint8_t { kHere, kInNext, kPartial };
  std::uint32_t first, last;  // pairs of the chunk: [first, last)
  std::uint32_t first_key, last_key;
  Begin begin;
  End end;

  // The chunk is not empty.
  __host__ __device__ ChunkEnds(const uint2* pairs, std::uint32_t count, std::uint32_t chunk, std::uint32_t index)
      : first(index * chunk),
        last(count - first < chunk ? count : first + chunk),
        first_key(pairs[first].x),
        last_key(pairs[last - 1].x),
        begin(Begin::kOwn),
        end(End::kHere) {
    const bool goes_on = last < count && pairs[last].x == last_key;
    if (first > 0 && pairs[first - 1].x == first_key) {
      const bool is_older = first > chunk && pairs[first - chunk - 1].x == first_key;
      const bool fills = goes_on && first_key == last_key;
      begin = is_older || fills ? Begin::kPartial : Begin::kSkipped;
      if (fills) return;
    }
    if (!goes_on) return;
    end = count - last > chunk && pairs[last + chunk].x == last_key ? End::kPartial : End::kInNext;
  }
};

}  // namespace cgrt::kernels
