#include "cgrt_kernels/sampling/kernels.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/arrival.cuh"
#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/random_state.cuh"
#include "cgrt_kernels/common/rank.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/sampling/reference.h"

namespace cgrt::kernels {
namespace {

// The value that has the rank.
__device__ __forceinline__ float value_of(std::uint32_t rank) {
  return __uint_as_float((rank >> 31) != 0 ? rank & 0x7FFFFFFF : ~rank);
}

// Calls visit(index of the first, floats, how many) for the packs of [begin, end) of a row, shared by the block. A
// thread loads kInFlight of them at a time.
template <class T, Alignment kAlignment, int kInFlight, class Visit>
__device__ __forceinline__ void for_each_pack(const T* row, std::uint32_t begin, std::uint32_t end, Visit visit) {
  constexpr int kSize = kPackSize<T>;
  const std::uint32_t step = blockDim.x * kSize;
  float values[kSize];
  if constexpr (kAlignment == Alignment::kAligned) {
    using Pack = typename PackOf<T>::Type;
    for (std::uint32_t first = begin + threadIdx.x * kSize; first < end; first += kInFlight * step) {
      Pack packs[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (first + i * step < end) packs[i] = *reinterpret_cast<const Pack*>(row + first + i * step);
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (first + i * step >= end) break;
        unpack(packs[i], values);
        visit(first + i * step, values, kSize);
      }
    }
  } else {
    for (std::uint32_t first = begin + threadIdx.x * kSize; first < end; first += step) {
      const int count = end - first < kSize ? static_cast<int>(end - first) : kSize;
#pragma unroll
      for (int i = 0; i < kSize; ++i) values[i] = i < count ? to_float(row[first + i]) : 0.0f;
      visit(first, values, count);
    }
  }
}

__device__ __forceinline__ float temperature_of(const SamplingParams& p, std::uint32_t row) {
  return p.args.temperature == nullptr ? 1.0f : p.args.temperature[row];
}
__device__ __forceinline__ bool is_greedy(float temperature) { return !(temperature >= kSamplingMinTemperature); }

// How a row's token is drawn.
struct Draw {
  std::uint64_t seed, offset;
  float scale;  // 1 / temperature
};
__device__ __forceinline__ Draw draw_of(const SamplingParams& p, std::uint32_t row, float temperature) {
  const std::uint64_t offset = p.args.state->offset + row * sampling_draws_of_row(p.vocabulary);
  return {p.args.state->seed, offset, 1 / temperature};
}
// For all threads of a block, at its end.
__device__ __forceinline__ void leave_state(const SamplingParams& p) {
  leave_state(p.args.state, p.args.state->offset, sampling_draws(p.rows, p.vocabulary));
}

// v is below 1, or a token of some probability could lose to one of none.
__device__ __forceinline__ float race_key(float logit, float scale, std::uint32_t number) {
  const float v = fminf((static_cast<float>(number) + 0.5f) * 0x1p-32f, 0x1.fffffep-1f);
  return logit * scale - __logf(-log1pf(-v));
}

// The largest rank, and the first index that has it.
__device__ __forceinline__ std::uint64_t candidate(std::uint32_t rank, std::uint32_t index) {
  return std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(~index);
}
__device__ __forceinline__ std::uint32_t rank_in(std::uint64_t best) { return static_cast<std::uint32_t>(best >> 32); }
__device__ __forceinline__ std::uint32_t index_in(std::uint64_t best) { return ~static_cast<std::uint32_t>(best); }

struct Found {
  std::uint64_t best = 0;       // nothing
  MaxSum sum{-INFINITY, 0.0f};  // of the logits, where asked for
};
__device__ __forceinline__ std::uint64_t shuffle(std::uint64_t value, int mask) {
  return __shfl_xor_sync(~0u, static_cast<unsigned long long>(value), mask);
}
__device__ __forceinline__ Found shuffle(const Found& found, int mask) {
  return {shuffle(found.best, mask), shuffle(found.sum, mask)};
}
__device__ __forceinline__ Found merge(const Found& a, const Found& b) {
  return {a.best > b.best ? a.best : b.best, merge(a.sum, b.sum)};
}

// What all threads of the block have, in each of them.
template <class Value>
__device__ __forceinline__ Value reduce_block(Value value) {
  __shared__ __align__(16) unsigned char bytes[kSamplingFilteredBlock / 32 * sizeof(Value)];
  auto* const parts = reinterpret_cast<Value*>(bytes);
  value = reduce_lanes(value);
  __syncthreads();  // what was there before has been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (std::uint32_t i = 1; i < blockDim.x / 32; ++i) value = merge(value, parts[i]);
  return value;
}

template <int kSize>
__device__ __forceinline__ void add_to(MaxSum& sum, const float (&values)[kSize], int count) {
  float max = sum.max;
#pragma unroll
  for (int i = 0; i < kSize; ++i) max = i < count ? fmaxf(max, values[i]) : max;
  const float base = finite_or_zero(max);
  float more = sum.sum * exp_of(sum.max - base);
#pragma unroll
  for (int i = 0; i < kSize; ++i) more += i < count ? exp_of(values[i] - base) : 0.0f;
  sum = {max, more};
}

// A thread's share of [begin, end), of the logits that are not below `least`. Comparisons leave out what is -infinity
// or NaN, so that a row may seem to have nothing.
template <class T, Alignment kAlignment, bool kIsDrawn, int kInFlight>
__device__ __forceinline__ Found look_through(const T* row, std::uint32_t begin, std::uint32_t end, const Draw& draw,
                                              float least, bool has_sum) {
  float best = -INFINITY;
  std::uint32_t index = ~0u;
  Found found;
  for_each_pack<T, kAlignment, kInFlight>(row, begin, end, [&](std::uint32_t first, const auto& values, int count) {
    constexpr int kSize = kPackSize<T>;
    Random4 numbers[kSize / 4] = {};
    if constexpr (kIsDrawn) {
#pragma unroll
      for (int i = 0; i < kSize / 4; ++i) numbers[i] = random4(draw.seed, draw.offset + first / 4 + i);
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (i >= count || values[i] < least) continue;
      const float key = kIsDrawn ? race_key(values[i], draw.scale, numbers[i / 4].of[i % 4]) : values[i];
      if (key > best) best = key, index = first + i;
    }
    if (has_sum) add_to(found.sum, values, count);
  });
  if (index != ~0u) found.best = candidate(rank_of(best), index);
  return found;
}

// Of a row that seems to have nothing: the first token that is not NaN, or the first one. For all threads of a block.
template <class T>
__device__ __forceinline__ std::uint64_t first_number(const T* row, std::uint32_t vocabulary) {
  Found found;
  for (std::uint32_t i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    const std::uint64_t own = candidate(rank_of(to_float(row[i])), i);
    if (own > found.best) found.best = own;
  }
  return reduce_block(found).best;
}

// For one thread.
template <class T>
__device__ __forceinline__ void write_token(const SamplingParams& p, const T* logits, std::uint32_t row,
                                            const Found& found) {
  const std::uint32_t token = index_in(found.best);
  if (p.token_type == DType::kInt64) {
    static_cast<std::int64_t*>(p.args.token)[row] = token;
  } else {
    static_cast<std::int32_t*>(p.args.token)[row] = static_cast<std::int32_t>(token);
  }
  if (p.args.log_probability == nullptr) return;
  p.args.log_probability[row] = to_float(logits[token]) - found.sum.max - logf(found.sum.sum);
}

template <class T>
__device__ __forceinline__ const T* logits_of(const SamplingParams& p, std::uint32_t row) {
  return static_cast<const T*>(p.args.logits) + std::uint64_t{row} * p.vocabulary;
}

// Each block has a slice of a row; the one that comes last has the row's token.
template <class T, Alignment kAlignment, SamplingOp kOp>
__device__ __forceinline__ void sample_slice(const SamplingParams& p) {
  const std::uint32_t row = p.slices.quotient(blockIdx.x), slice = blockIdx.x - row * p.slices.value();
  if (row >= count_at(p.args.row_count, p.rows)) return;
  const T* const logits = logits_of<T>(p, row);
  const std::uint32_t begin = slice * p.slice, end = p.vocabulary - begin < p.slice ? p.vocabulary : begin + p.slice;
  const bool has_sum = p.args.log_probability != nullptr;
  const float temperature = temperature_of(p, row);
  Found found;
  if (kOp == SamplingOp::kGreedy || is_greedy(temperature)) {
    found = look_through<T, kAlignment, false, 4>(logits, begin, end, {}, -INFINITY, has_sum);
  } else {
    const Draw draw = draw_of(p, row, temperature);
    found = look_through<T, kAlignment, true, 2>(logits, begin, end, draw, -INFINITY, has_sum);
  }
  found = reduce_block(found);
  if (p.slices.value() > 1) {
    SamplingPart* const parts = p.parts + row * p.slices.value();
    if (threadIdx.x == 0) parts[slice] = {found.best, found.sum.max, found.sum.sum};
    if (!is_last_to_arrive(&p.counters[row], p.slices.value())) return;
    found = {};
    for (std::uint32_t i = threadIdx.x; i < p.slices.value(); i += kSamplingBlock) {
      const SamplingPart part = parts[i];
      found = merge(found, {part.best, {part.max, part.sum}});
    }
    found = reduce_block(found);
  }
  if (found.best == 0) found.best = first_number(logits, p.vocabulary);
  if (threadIdx.x == 0) write_token(p, logits, row, found);
}

template <class T, Alignment kAlignment, SamplingOp kOp>
__global__ void __launch_bounds__(kSamplingBlock, 3) sample(const __grid_constant__ SamplingParams p) {
  wait_for_predecessors();
  let_dependents_start();
  sample_slice<T, kAlignment, kOp>(p);
  if constexpr (kOp == SamplingOp::kRandom) leave_state(p);
}

// Of the logits from some rank on: their weights together, and their number; and the ranks on both sides of it.
struct Tally {
  std::uint64_t mass = 0;
  std::uint32_t count = 0;
  std::uint32_t up = ~0u, down = 0;  // the least of those from it on, the greatest of the others
};
__device__ __forceinline__ Tally shuffle(const Tally& tally, int mask) {
  return {shuffle(tally.mass, mask), __shfl_xor_sync(~0u, tally.count, mask), __shfl_xor_sync(~0u, tally.up, mask),
          __shfl_xor_sync(~0u, tally.down, mask)};
}
__device__ __forceinline__ Tally merge(const Tally& a, const Tally& b) {
  return {a.mass + b.mass, a.count + b.count, a.up < b.up ? a.up : b.up, a.down > b.down ? a.down : b.down};
}

constexpr std::uint32_t kCandidates = 4096;
// The logits of ranks [low, high], in no order; and what is above them.
struct Candidates {
  std::uint32_t size, low, high;
  std::uint64_t mass_above;
  std::uint32_t count_above;
  std::uint32_t ranks[kCandidates], tokens[kCandidates];
};

// Which logits of a row top-k and top-p keep, for all threads of a block. Weights are exp of what a logit is below the
// maximum, in units of 2^-31: sums of integers do not depend on their order.
template <class T, Alignment kAlignment>
class Filter {
 public:
  __device__ Filter(Candidates& list, const T* row, std::uint32_t vocabulary, float scale, std::uint32_t max_rank)
      : list_(list), row_(row), vocabulary_(vocabulary), scale_(scale), max_(value_of(max_rank)), max_rank_(max_rank) {}

  // The least rank that is kept. `own`: the largest rank that this thread has seen.
  __device__ std::uint32_t least_rank(std::uint32_t own, std::uint32_t top_k, float top_p) {
    const bool has_k = top_k < vocabulary_;
    // As many threads have seen a rank of at least `low` as it takes, so there are at least as many logits.
    std::uint32_t low = seen_by(has_k ? top_k : kGuess, own), high = max_rank_;
    Tally from_low = list_from(low, high, {}, !has_k), above;
    if (has_k) low = search(top_k, false, low, high, from_low.count, above);
    if (!(top_p < 1)) return low;
    std::uint64_t mass = from_low.mass;  // of all that top-k keeps
    from_low = tally(low, low, high);
    if (has_k) mass = from_low.mass;
    const double share = ceil(static_cast<double>(top_p) * static_cast<double>(mass));
    const std::uint64_t target = share < 1 ? 1 : static_cast<std::uint64_t>(share);
    if (from_low.mass < target) high = low - 1, low = 1, above = from_low, from_low.count = vocabulary_;
    return search(target, true, low, high, from_low.count, above);
  }

  // A thread's share of those from rank `least` on that are drawn from.
  __device__ Found race(std::uint32_t least, const Draw& draw) const {
    if (!has_listed(least, max_rank_)) {
      return look_through<T, kAlignment, true, 1>(row_, 0, vocabulary_, draw, least == 1 ? -INFINITY : value_of(least),
                                                  false);
    }
    Found found;
    for (std::uint32_t i = threadIdx.x; i < list_.size; i += blockDim.x) {
      if (list_.ranks[i] < least) continue;
      const std::uint32_t token = list_.tokens[i];
      const std::uint32_t number = random4(draw.seed, draw.offset + token / 4).of[token % 4];
      const std::uint32_t rank = rank_of(race_key(value_of(list_.ranks[i]), draw.scale, number));
      const std::uint64_t own = candidate(rank, token);
      if (own > found.best) found.best = own;
    }
    return found;
  }

 private:
  static constexpr std::uint32_t kGuess = 256;  // of candidates, where there is no top-k

  __device__ std::uint32_t weight_of(float logit) const {
    return logit == max_ ? 1u << 31 : __float2uint_rn(exp_of((logit - max_) * scale_) * 0x1p31f);
  }
  __device__ void add(Tally& tally, std::uint32_t rank, std::uint32_t middle) const {
    if (rank >= middle) {
      tally.mass += weight_of(value_of(rank)), ++tally.count;
      if (rank < tally.up) tally.up = rank;
    } else if (rank > tally.down) {
      tally.down = rank;
    }
  }
  __device__ bool has_listed(std::uint32_t low, std::uint32_t high) const {
    return list_.low <= low && high <= list_.high;
  }

  // A rank that at least `wanted` threads have seen or passed; the least where there are not so many.
  __device__ std::uint32_t seen_by(std::uint32_t wanted, std::uint32_t own) const {
    std::uint32_t low = 1, high = max_rank_;
    if (static_cast<std::uint32_t>(__syncthreads_count(own >= low)) < wanted) return low;
    while (low < high) {
      const std::uint32_t middle = low + (high - low + 1) / 2;
      const auto count = static_cast<std::uint32_t>(__syncthreads_count(own >= middle));
      if (count < wanted) {
        high = middle - 1;
      } else {
        low = middle;
        if (count <= wanted + wanted / 4) break;
      }
    }
    return low;
  }

  // Lists the logits of ranks [low, high], if there is room for them; those above are `above`. Their number is that
  // from `low` on, and the mass, where it is asked for, that of all logits of the row.
  __device__ Tally list_from(std::uint32_t low, std::uint32_t high, const Tally& above, bool has_mass) {
    __syncthreads();
    if (threadIdx.x == 0) list_.size = 0;
    __syncthreads();
    const float low_value = value_of(low);
    Tally own;
    for_each_pack<T, kAlignment, 4>(row_, 0, vocabulary_, [&](std::uint32_t first, const auto& values, int count) {
#pragma unroll
      for (int i = 0; i < kPackSize<T>; ++i) {
        if (i >= count) continue;
        if (has_mass) own.mass += weight_of(values[i]);
        if (values[i] < low_value) continue;  // or NaN, which has the rank 1
        const std::uint32_t rank = rank_of(values[i]);
        if (rank < low) continue;
        ++own.count;
        if (rank > high) continue;
        const std::uint32_t place = atomicAdd(&list_.size, 1u);
        if (place < kCandidates) list_.ranks[place] = rank, list_.tokens[place] = first + i;
      }
    });
    own = reduce_block(own);
    if (threadIdx.x == 0) {
      const bool is_whole = list_.size <= kCandidates;
      list_.low = is_whole ? low : ~0u, list_.high = is_whole ? high : 0;
      list_.mass_above = above.mass, list_.count_above = above.count;
    }
    __syncthreads();
    return own;
  }

  // Of those from `middle` on, which is in [low, high]: of the row, or of the list where that has these ranks.
  __device__ Tally tally(std::uint32_t low, std::uint32_t middle, std::uint32_t high) const {
    Tally own;
    if (!has_listed(low, high)) {
      for_each_pack<T, kAlignment, 2>(row_, 0, vocabulary_, [&](std::uint32_t, const auto& values, int count) {
#pragma unroll
        for (int i = 0; i < kPackSize<T>; ++i) {
          if (i < count) add(own, rank_of(values[i]), middle);
        }
      });
      return reduce_block(own);
    }
    for (std::uint32_t i = threadIdx.x; i < list_.size; i += blockDim.x) add(own, list_.ranks[i], middle);
    own = reduce_block(own);
    own.mass += list_.mass_above, own.count += list_.count_above;
    return own;
  }

  // The greatest rank in [low, high] from which on logits have `target` together, as those from `low` on do, which are
  // `count` at most, and `above` those behind `high` do not.
  __device__ std::uint32_t search(std::uint64_t target, bool is_of_mass, std::uint32_t low, std::uint32_t high,
                                  std::uint32_t count, Tally above) {
    while (low < high) {
      if (!has_listed(low, high) && count - above.count <= kCandidates) list_from(low, high, above, false);
      const std::uint32_t middle = low + (high - low + 1) / 2;
      const Tally found = tally(low, middle, high);
      const std::uint64_t sum = is_of_mass ? found.mass : found.count;
      if (sum >= target) {
        low = found.up, count = found.count;
        if (sum == target) break;
      } else {
        high = found.down, above = found;
      }
    }
    return low;
  }

  Candidates& list_;
  const T* row_;
  std::uint32_t vocabulary_;
  float scale_, max_;
  std::uint32_t max_rank_;
};

// A block has a row.
template <class T, Alignment kAlignment>
__device__ __forceinline__ void sample_row(const SamplingParams& p) {
  __shared__ Candidates list;
  const std::uint32_t row = blockIdx.x;
  if (row >= count_at(p.args.row_count, p.rows)) return;
  const T* const logits = logits_of<T>(p, row);
  if (threadIdx.x == 0) list.low = ~0u, list.high = 0;  // nothing is listed
  const Found own =
      look_through<T, kAlignment, false, 4>(logits, 0, p.vocabulary, {}, -INFINITY, p.args.log_probability != nullptr);
  Found found = reduce_block(own);
  const float temperature = temperature_of(p, row);
  if (found.best == 0) {
    found.best = first_number(logits, p.vocabulary);
  } else if (!is_greedy(temperature)) {
    const std::int32_t given = p.args.top_k == nullptr ? 0 : p.args.top_k[row];
    const std::uint32_t top_k = given <= 0 ? p.vocabulary : static_cast<std::uint32_t>(given);
    const float top_p = p.args.top_p == nullptr ? 1.0f : p.args.top_p[row];
    const bool keeps_all = top_k >= p.vocabulary && !(top_p < 1);
    Filter<T, kAlignment> filter(list, logits, p.vocabulary, 1 / temperature, rank_in(found.best));
    const std::uint32_t least = keeps_all ? 1 : filter.least_rank(rank_in(own.best), top_k, top_p);
    const std::uint64_t drawn = reduce_block(filter.race(least, draw_of(p, row, temperature))).best;
    if (drawn != 0) found.best = drawn;
  }
  if (threadIdx.x == 0) write_token(p, logits, row, found);
}

template <class T, Alignment kAlignment>
__global__ void __launch_bounds__(kSamplingFilteredBlock) sample_filtered(const __grid_constant__ SamplingParams p) {
  wait_for_predecessors();
  let_dependents_start();
  sample_row<T, kAlignment>(p);
  leave_state(p);
}

template <class T>
void sampling_on_host(HostGrid, SamplingParams p) {
  const bool is_greedy = p.op == SamplingOp::kGreedy;
  const RandomState state = is_greedy ? RandomState{} : *p.args.state;
  std::vector<double> logits(p.vocabulary);
  for (std::uint64_t row = 0, count = count_at(p.args.row_count, p.rows); row < count; ++row) {
    const T* const from = static_cast<const T*>(p.args.logits) + row * p.vocabulary;
    for (std::uint32_t i = 0; i < p.vocabulary; ++i) logits[i] = static_cast<double>(to_float(from[i]));
    SamplingRule rule{.temperature = is_greedy ? 0.0f : 1.0f};
    if (p.args.temperature != nullptr) rule.temperature = p.args.temperature[row];
    if (p.args.top_k != nullptr) rule.top_k = p.args.top_k[row];
    if (p.args.top_p != nullptr) rule.top_p = static_cast<double>(p.args.top_p[row]);
    const std::size_t token =
        sampling_reference(logits, rule, state.seed, state.offset + row * sampling_draws_of_row(p.vocabulary));
    if (p.token_type == DType::kInt64) {
      static_cast<std::int64_t*>(p.args.token)[row] = static_cast<std::int64_t>(token);
    } else {
      static_cast<std::int32_t*>(p.args.token)[row] = static_cast<std::int32_t>(token);
    }
    if (p.args.log_probability != nullptr) {
      p.args.log_probability[row] = static_cast<float>(log_probability_reference(logits, token));
    }
  }
  if (!is_greedy) p.args.state->offset += sampling_draws(p.rows, p.vocabulary);
}

}  // namespace

Kernel<SamplingParams> sampling_kernel(SamplingOp op, DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    constexpr KernelResources kResources{.registers = 80, .max_threads = kSamplingBlock};
    constexpr KernelResources kFilteredResources{.registers = 80, .max_threads = kSamplingFilteredBlock};
    constexpr auto kGreedy = SamplingOp::kGreedy, kRandom = SamplingOp::kRandom;
    switch (op) {
      case kGreedy: return make_kernel<sample<T, kAlignment, kGreedy>, sampling_on_host<T>, kResources>();
      case kRandom: return make_kernel<sample<T, kAlignment, kRandom>, sampling_on_host<T>, kResources>();
      case SamplingOp::kFiltered: break;
    }
    return make_kernel<sample_filtered<T, kAlignment>, sampling_on_host<T>, kFilteredResources>();
  });
}

}  // namespace cgrt::kernels
