// Rows summed up by sorted keys, without atomics on them: chunks of pairs first, then what chunks share.
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/index/kernels.h"
#include "cgrt_kernels/index/row_packs.cuh"

namespace cgrt::kernels {
namespace {

// What a chunk does with the equal keys at its two ends, the same for the kernels and the host. Equal keys belong to
// the chunk in which they begin. It also takes those in the next chunk; if they go on beyond, each chunk leaves its
// part as a partial sum (row 2 * chunk for the beginning, the next for the end), and another kernel joins them.
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

using Begin = ChunkEnds::Begin;
using End = ChunkEnds::End;

constexpr std::uint32_t kJoinAhead = 8;    // partial sums, likewise
constexpr std::uint32_t kMaxForWarp = 64;  // partial sums that one warp joins; more are for its block
constexpr std::uint32_t kJoinWarps = kJoinBlock / 32;

// On its way to the L2 cache, without a register.
__device__ __forceinline__ void prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

// Threads side by side take a chunk, each with a pack of the columns. The row of the output is fetched
// when its first summand is. Where few rows repeat, these fetches wait one for the other: all begin before the first.
template <class T, class Pack>
__global__ void __launch_bounds__(kIndexBlock, 3) sum_pairs(IndexSumParams p) {
  constexpr bool kIsSpread = kIsSpreadPack<T, Pack>;
  constexpr std::uint32_t kCount = sizeof(Pack) / sizeof(T);
  constexpr std::uint32_t kAhead = sizeof(Pack) == 16 || kIsSpread ? 4 : 8;  // rows of a thread in flight
  const std::uint32_t chunks = p.slices.quotient(blockIdx.x);                // of earlier blocks, in blocks
  const std::uint32_t slice = blockIdx.x - chunks * p.slices.value();
  const std::uint32_t chunk = (chunks * kIndexBlock + threadIdx.x) >> p.lane_bits;
  const std::uint32_t lanes = 1u << p.lane_bits, lane = threadIdx.x & (lanes - 1);
  const std::uint32_t column = slice * lanes * kCount + (kIsSpread ? lane : lane * kCount);
  const auto* const from = static_cast<const T*>(p.in) + column;
  auto* const to = static_cast<T*>(p.out) + column;
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t count = p.counters->pairs;
  if (column >= p.columns || chunk >= p.chunks || chunk * p.chunk >= count) return;
  const ChunkEnds ends(p.pairs, count, p.chunk, chunk);
  const auto row_of = [&](auto* array, std::uint32_t row) { return array + std::uint64_t{row} * p.columns; };
  const auto for_elements = [&](auto each) { for_spread(column, lanes, p.columns, each); };
  const auto load = [&](Pack& pack, const T* row) { load_pack(pack, row, column, lanes, p.columns); };
  const auto store = [&](T* row, const Pack& pack) { store_pack(row, pack, column, lanes, p.columns); };

  std::uint32_t key = ends.first_key;
  Pack held;
  load(held, row_of(to, key));
  float sums[kCount] = {};
  const auto leave_partial = [&](std::uint32_t which) {
    float* const left = row_of(p.partials + column, 2 * chunk + which);
    if constexpr (kIsSpread) {
      for_elements([&](std::uint32_t k, std::uint32_t at) { left[at] = sums[k]; });
    } else if constexpr (kCount % 4 == 0) {
#pragma unroll
      for (std::uint32_t k = 0; k < kCount; k += 4) {
        *reinterpret_cast<float4*>(left + k) = {sums[k], sums[k + 1], sums[k + 2], sums[k + 3]};
      }
    } else if constexpr (kCount == 2) {
      *reinterpret_cast<float2*>(left) = {sums[0], sums[1]};
    } else {
      *left = sums[0];
    }
  };
  const auto finish = [&] {
    if (key == ends.first_key && ends.begin != Begin::kOwn) {
      if (ends.begin == Begin::kPartial) leave_partial(0);
      return;
    }
    float values[kCount];
    unpack(held, values);
#pragma unroll
    for (std::uint32_t k = 0; k < kCount; ++k) values[k] += p.alpha * sums[k];
    pack_into(held, values);
    store(row_of(to, key), held);
  };

  // The threads of a chunk fetch all that they have of a row.
  const std::uint32_t ahead = kIsSpread ? min(lane * (kCount - 1), p.columns - 1 - column) : 0;
  uint2 next[kAhead];
#pragma unroll
  for (std::uint32_t i = 0; i < kAhead; ++i) next[i] = p.pairs[min(ends.first + i, count - 1)];
  for (std::uint32_t at = ends.first;; at += kAhead) {
    uint2 pair[kAhead];
    Pack pack[kAhead];
    bool is_mine[kAhead];
#pragma unroll
    for (std::uint32_t i = 0; i < kAhead; ++i) {
      pair[i] = next[i];
      is_mine[i] = at + i < ends.last ? ends.begin != Begin::kSkipped || pair[i].x != ends.first_key
                                      : ends.end == End::kInNext && at + i < count && pair[i].x == ends.last_key;
      if (!is_mine[i]) continue;
      load(pack[i], row_of(from, pair[i].y));
      if (pair[i].x != (i == 0 ? key : pair[i == 0 ? 0 : i - 1].x)) prefetch(row_of(to, pair[i].x) + ahead);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAhead; ++i) next[i] = p.pairs[min(at + kAhead + i, count - 1)];
#pragma unroll
    for (std::uint32_t i = 0; i < kAhead; ++i) {
      if (!is_mine[i]) continue;
      if (pair[i].x != key) {
        finish();
        key = pair[i].x;
        load(held, row_of(to, key));
#pragma unroll
        for (float& sum : sums) sum = 0;
      }
      float values[kCount];
      unpack(pack[i], values);
#pragma unroll
      for (std::uint32_t k = 0; k < kCount; ++k) sums[k] += values[k];
    }
    if (at + kAhead >= ends.last && !(ends.end == End::kInNext && is_mine[kAhead - 1])) break;
  }
  if (ends.end != End::kPartial) return finish();
  leave_partial(1);
  if (column == 0) p.owners[atomicAdd(&p.counters->owners, 1u)] = chunk;
}

// A warp's search for the last chunk that begins with `key`. `chunk` is one of them.
__device__ __forceinline__ std::uint32_t last_with(const uint2* pairs, std::uint32_t count,
                                                   std::uint32_t pairs_of_chunk, std::uint32_t chunk,
                                                   std::uint32_t key) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t end = (count - 1) / pairs_of_chunk + 1;
  while (end - chunk > 1) {
    const std::uint32_t step = (end - chunk - 1) / 32 + 1, probe = chunk + (lane + 1) * step;
    const bool has_key = probe < end && pairs[probe * pairs_of_chunk].x == key;
    chunk += static_cast<std::uint32_t>(__popc(__ballot_sync(~0u, has_key))) * step;
    end = min(end, chunk + step);
  }
  return chunk;
}

// In order, from `begin` on: that at the end of the first chunk, and then those at the beginning of the
// next ones.
__device__ __forceinline__ float sum_partials(const float* partials, std::uint64_t columns, std::uint32_t chunk,
                                              std::uint32_t begin, std::uint32_t end) {
  float sum = 0;
  for (std::uint32_t first = begin; first < end; first += kJoinAhead) {
    float values[kJoinAhead];
#pragma unroll
    for (std::uint32_t i = 0; i < kJoinAhead; ++i) {
      const std::uint32_t at = first + i;
      values[i] = at < end ? partials[(2 * (chunk + at) + (at == 0 ? 1 : 0)) * columns] : 0;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kJoinAhead; ++i) sum += values[i];
  }
  return sum;
}

// A warp takes 32 columns of a run of equal keys that several chunks share. It leaves long runs to all
// warps of its block, each with a stretch of it.
template <class T>
__global__ void __launch_bounds__(kJoinBlock) join_partials(IndexSumParams p) {
  __shared__ std::uint32_t terms_of[kJoinWarps], chunk_of[kJoinWarps], column_of[kJoinWarps];
  __shared__ float stretches[kJoinWarps][32];
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  let_dependents_start();
  wait_for_predecessors();
  const std::uint32_t count = p.counters->pairs, slices = p.slices.value();
  const std::uint32_t items = p.counters->owners * slices;  // fewer than elements that are added
  const auto place = [&](std::uint32_t key, std::uint32_t column) {
    return static_cast<T*>(p.out) + std::uint64_t{key} * p.columns + column;
  };
  for (std::uint32_t first = blockIdx.x; first < items; first += gridDim.x * kJoinWarps) {
    const std::uint32_t item = first + warp * gridDim.x;
    std::uint32_t terms = 0, chunk = 0, column = 0;
    if (item < items) {
      const std::uint32_t owner = p.slices.quotient(item);
      chunk = p.owners[owner];
      column = (item - owner * slices) * 32;
      // Most runs end in one of the next 32 chunks.
      const std::uint32_t first_pair = (chunk + 1 + lane) * p.chunk;
      const std::uint32_t other = p.pairs[min(first_pair, count - 1)].x, key = __shfl_sync(~0u, other, 0);
      const std::uint32_t equal = __ballot_sync(~0u, first_pair < count && other == key);
      terms = 1 + (equal != ~0u ? __popc(equal) : last_with(p.pairs, count, p.chunk, chunk + 32, key) - chunk);
      if (terms <= kMaxForWarp && column + lane < p.columns) {
        T* const to = place(key, column + lane);
        const float held = to_float(*to);
        const float sum = sum_partials(p.partials + column + lane, p.columns, chunk, 0, terms);
        *to = from_float<T>(held + p.alpha * sum);
      }
    }
    if (lane == 0) terms_of[warp] = terms, chunk_of[warp] = chunk, column_of[warp] = column;
    if (__syncthreads_or(terms > kMaxForWarp ? 1 : 0) == 0) continue;
    for (std::uint32_t w = 0; w < kJoinWarps; ++w) {
      if (terms_of[w] <= kMaxForWarp) continue;
      const std::uint32_t at = column_of[w] + lane, share = (terms_of[w] - 1) / kJoinWarps + 1;
      const std::uint32_t begin = min(warp * share, terms_of[w]), end = min(begin + share, terms_of[w]);
      stretches[warp][lane] = at < p.columns ? sum_partials(p.partials + at, p.columns, chunk_of[w], begin, end) : 0;
      __syncthreads();
      if (warp == 0 && at < p.columns) {
        float sum = 0;
        for (std::uint32_t stretch = 0; stretch < kJoinWarps; ++stretch) sum += stretches[stretch][lane];
        T* const to = place(p.pairs[(chunk_of[w] + 1) * p.chunk].x, at);
        *to = from_float<T>(to_float(*to) + p.alpha * sum);
      }
      __syncthreads();
    }
    __syncthreads();
  }
}

template <class T>
void add_on_host(const IndexSumParams& p, std::uint64_t at, double sum) {
  T& element = static_cast<T*>(p.out)[at];
  element =
      from_float<T>(static_cast<float>(static_cast<double>(to_float(element)) + static_cast<double>(p.alpha) * sum));
}

template <class T>
void sum_on_host(HostGrid, IndexSumParams p) {
  const std::uint32_t count = p.counters->pairs;
  const std::uint64_t columns = p.columns;
  for (std::uint32_t chunk = 0; chunk < p.chunks && chunk * p.chunk < count; ++chunk) {
    const ChunkEnds ends(p.pairs, count, p.chunk, chunk);
    if (ends.end == End::kPartial) p.owners[p.counters->owners++] = chunk;
    std::uint32_t at = ends.first;
    const auto is_mine = [&] {
      return at < ends.last || (ends.end == End::kInNext && at < count && p.pairs[at].x == ends.last_key);
    };
    while (is_mine()) {
      const std::uint32_t key = p.pairs[at].x;
      std::vector<double> sums(columns);
      for (; is_mine() && p.pairs[at].x == key; ++at) {
        for (std::uint64_t j = 0; j < columns; ++j) {
          sums[j] += static_cast<double>(to_float(static_cast<const T*>(p.in)[p.pairs[at].y * columns + j]));
        }
      }
      const bool is_begin = key == ends.first_key && ends.begin != Begin::kOwn;
      if (is_begin && ends.begin == Begin::kSkipped) continue;
      const bool is_partial = is_begin || (ends.end == End::kPartial && key == ends.last_key);
      for (std::uint64_t j = 0; j < columns; ++j) {
        if (is_partial) {
          p.partials[(2 * chunk + (is_begin ? 0 : 1)) * columns + j] = static_cast<float>(sums[j]);
        } else {
          add_on_host<T>(p, key * columns + j, sums[j]);
        }
      }
    }
  }
}

template <class T>
void join_on_host(HostGrid, IndexSumParams p) {
  const std::uint64_t columns = p.columns;
  for (std::uint32_t i = 0; i < p.counters->owners; ++i) {
    const std::uint32_t key = p.pairs[(p.owners[i] + 1) * p.chunk].x;
    for (std::uint64_t j = 0; j < columns; ++j) {
      double sum = static_cast<double>(p.partials[(2 * p.owners[i] + 1) * columns + j]);
      for (std::uint32_t chunk = p.owners[i] + 1;
           chunk * p.chunk < p.counters->pairs && p.pairs[chunk * p.chunk].x == key; ++chunk) {
        sum += static_cast<double>(p.partials[2 * chunk * columns + j]);
      }
      add_on_host<T>(p, key * columns + j, sum);
    }
  }
}

}  // namespace

SumKernel sum_pairs_kernel(DType type, SumPack pack) {
  return of_row_pack(type, pack, [=]<class T, class Pack>() {
    return make_kernel<sum_pairs<T, Pack>, sum_on_host<T>,
                       KernelResources{.registers = 64, .max_threads = kIndexBlock}>();
  });
}

SumKernel join_partials_kernel(DType type) {
  return of_float_type(type, [=]<class T>() {
    return make_kernel<join_partials<T>, join_on_host<T>,
                       KernelResources{.registers = 32, .static_shared_bytes = 4480, .max_threads = kJoinBlock}>();
  });
}

}  // namespace cgrt::kernels
