// Which logits of a row top-k and top-p keep, found by the blocks that share the row.
#pragma once

#include <cooperative_groups.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/sampling/row.cuh"

namespace cgrt::kernels::sampling {

constexpr float kLowest = -0x1.fffffep127f;  // of finite floats

// The blocks that share a row: a cluster. Each sees the shared memory of the others.
struct Cluster {
#if __CUDA_ARCH__ >= 900
  using Group = cooperative_groups::cluster_group;
  __device__ static std::uint32_t blocks() { return Group::num_blocks(); }
  __device__ static std::uint32_t block() { return Group::block_rank(); }
  __device__ static void sync() { Group::sync(); }
  template <class Value>
  __device__ static Value* in_block(Value* own, std::uint32_t block) {
    return Group::map_shared_rank(own, block);
  }
#else
  __device__ static std::uint32_t blocks() { return 1; }
  __device__ static std::uint32_t block() { return 0; }
  __device__ static void sync() { __syncthreads(); }
  template <class Value>
  __device__ static Value* in_block(Value* own, std::uint32_t) {
    return own;
  }
#endif
};

// Elements of a type in their order: the rank of the float without the bits that its type does not have.
template <class T>
struct Order {
  static constexpr int kShift = sizeof(T) == 4 ? 0 : std::is_same_v<T, __half> ? 13 : 16;
  __device__ static std::uint32_t rank(float value) { return rank_of(value) >> kShift; }
  __device__ static float value(std::uint32_t rank) {
    const std::uint32_t below = (rank << kShift) >> 31 != 0 ? 0 : (1u << kShift) - 1;
    return value_of(rank << kShift | below);
  }
};

// Logits: their weights together, and their number.
struct Tally {
  std::uint64_t mass;
  std::uint32_t count;
  __device__ std::uint64_t of(bool is_mass) const { return is_mass ? mass : count; }
};
__device__ __forceinline__ Tally operator+(const Tally& a, const Tally& b) {
  return {a.mass + b.mass, a.count + b.count};
}
// Of this lane and those below it.
__device__ __forceinline__ Tally scan_lanes(Tally tally) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Tally before{__shfl_up_sync(~0u, static_cast<unsigned long long>(tally.mass), distance),
                       __shfl_up_sync(~0u, tally.count, distance)};
    if (threadIdx.x % 32 >= static_cast<std::uint32_t>(distance)) tally = tally + before;
  }
  return tally;
}
__device__ __forceinline__ Tally from_lane(const Tally& tally, int lane) {
  return {__shfl_sync(~0u, static_cast<unsigned long long>(tally.mass), lane), __shfl_sync(~0u, tally.count, lane)};
}

// Logits in buckets, the largest first. 64-bit sums are two words, as shared memory adds no more at once.
struct Histogram {
  static constexpr std::uint32_t kSegment = 32, kBuckets = 32 * kSegment;
  std::uint32_t counts[kBuckets], low[kBuckets], high[kBuckets];
  Tally segments[32];

  __device__ Tally bucket(std::uint32_t i) const { return {std::uint64_t{high[i]} << 32 | low[i], counts[i]}; }
  // The bucket of each, or kNone; weights of 0 where no masses are needed.
  static constexpr std::uint32_t kNone = ~0u;
  template <int kSize>
  __device__ void add(const std::uint32_t (&buckets)[kSize], const std::uint32_t (&weights)[kSize], bool has_count) {
    std::uint32_t before[kSize];
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (buckets[i] == kNone) continue;
      if (has_count) atomicAdd(&counts[buckets[i]], 1u);
      if (weights[i] != 0) before[i] = atomicAdd(&low[buckets[i]], weights[i]);
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if (buckets[i] != kNone && weights[i] != 0 && before[i] + weights[i] < weights[i]) {
        atomicAdd(&high[buckets[i]], 1u);
      }
    }
  }
};

// Of a row: the largest logit, and a bound such that `count` logits at least are not below it.
struct Seen {
  float max, bound;
  std::uint32_t count;
};
__device__ __forceinline__ Seen shuffle(const Seen& seen, int mask) {
  return {kernels::shuffle(seen.max, mask), kernels::shuffle(seen.bound, mask), __shfl_xor_sync(~0u, seen.count, mask)};
}
__device__ __forceinline__ Seen merge(const Seen& a, const Seen& b) {
  return {fmaxf(a.max, b.max), fminf(a.bound, b.bound), a.count + b.count};
}

// The bucket where a threshold is, what is above it, and in it.
struct Crossing {
  Tally above, within;
  std::uint64_t target;
  std::uint32_t low, high;  // the ranks of the bucket
  bool is_found;            // or all together are too few
};

struct Entry {
  float logit;
  std::uint32_t token;
};

struct FilterMemory {
  static constexpr std::uint32_t kEntries = 2560;

  Histogram first, finer;
  union {
    Histogram other_finer;
    Entry entries[kEntries];  // a part for each block
  };
  std::uint32_t size, sizes[kSamplingMaxCluster];  // of this block's part and of all, or more
  Seen seen;
  Crossing crossing;
  std::uint64_t best[kSamplingMaxCluster];
  MaxSum sums[kSamplingMaxCluster];
};

// Which logits of a row top-k and top-p keep, for all threads of a cluster that has the row. Weights are exp of what a
// logit is below the maximum, in units of 2^-31: sums of integers do not depend on their order. Nothing is sorted: a
// histogram tells in which bucket of logits the threshold is, and finer ones, where in the bucket.
template <class T, Alignment kAlignment>
class Filter {
 public:
  __device__ Filter(FilterMemory& memory, const SamplingParams& p, std::uint32_t row)
      : memory_(memory), p_(p), row_(row) {}

  // This thread's maximum, -infinity where it has none.
  __device__ float load() {
    const T* const row = logits_of<T>(p_, row_);
    const std::uint32_t begin = this->begin(), end = this->end();
    float max = -INFINITY;
    if (p_.is_resident == 0) {
      for_each_pack<T, kAlignment, 4>(row, begin, end, [&](std::uint32_t, const auto& values, int count) {
#pragma unroll
        for (int i = 0; i < kPackSize<T>; ++i) max = i < count ? fmaxf(max, values[i]) : max;
      });
      return max;
    }
    using Pack = PackFor<T, kAlignment>;
    constexpr int kSize = kPackSizeFor<T, kAlignment>, kInFlight = 4;
    const std::uint32_t step = kSize * blockDim.x;
    for (std::uint32_t first = begin + threadIdx.x * kSize; first < end; first += kInFlight * step) {
      Pack packs[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (first + i * step < end) packs[i] = *reinterpret_cast<const Pack*>(row + first + i * step);
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (first + i * step >= end) break;
        *reinterpret_cast<Pack*>(resident() + (first + i * step - begin)) = packs[i];
        float values[kSize];
        unpack(packs[i], values);
#pragma unroll
        for (const float value : values) max = fmaxf(max, value);
      }
    }
    return max;
  }

  // visit(index of the first, floats, how many) for each pack of the block's slice, or for each entry of the list.
  template <class Visit>
  __device__ __forceinline__ void for_each(Visit visit) const {
    if (!is_listed_) return for_each_in_row(visit);
    for_each_entry([&](const Entry& entry) {
      const float values[1] = {entry.logit};
      visit(entry.token, values, 1);
    });
  }
  template <class Visit>
  __device__ __forceinline__ void for_each_in_row(Visit visit) const {
    const std::uint32_t begin = this->begin(), end = this->end();
    if (p_.is_resident == 0) return for_each_pack<T, kAlignment, 1>(logits_of<T>(p_, row_), begin, end, visit);
    constexpr int kSize = kPackSize<T>;
    float values[kSize];
    for (std::uint32_t first = begin + threadIdx.x * kSize; first < end; first += kSize * blockDim.x) {
      unpack(*reinterpret_cast<const typename PackOf<T>::Type*>(resident() + (first - begin)), values);
      visit(first, values, kAlignment == Alignment::kAligned || end - first >= kSize ? kSize : end - first);
    }
  }

  template <class Visit>
  __device__ __forceinline__ void for_each_entry(Visit visit) const {
    const std::uint32_t parts = Cluster::blocks(), size = parts * longest_part();
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
      const std::uint32_t part = i % parts, place = i / parts;
      if (place < memory_.sizes[part]) visit(memory_.entries[part * (FilterMemory::kEntries / parts) + place]);
    }
  }

  // Of the row: `max` is this thread's. Where threads are enough, `wanted` logits at least are from `seen.bound` on.
  __device__ Seen join(float max, std::uint32_t wanted) const {
    // As many of each warp: the greatest of its threads' maxima.
    const std::uint32_t of_warp = min((wanted - 1) / warps() + 1, 32u);
    std::uint32_t left = rank_of(max);
    Seen seen{-INFINITY, INFINITY, 0};
    for (std::uint32_t i = 0; i < of_warp; ++i) {
      const std::uint32_t rank = __reduce_max_sync(~0u, left);
      if (rank <= rank_of(-INFINITY)) break;
      seen.bound = value_of(rank);
      if (i == 0) seen.max = seen.bound;
      if (threadIdx.x % 32 == 0) ++seen.count;
      const int first = __ffs(static_cast<int>(__ballot_sync(~0u, left == rank))) - 1;
      if (threadIdx.x % 32 == static_cast<std::uint32_t>(first)) left = 0;
    }
    seen = reduce_block(seen);
    if (threadIdx.x == 0) memory_.seen = seen;
    sync();
    const std::uint32_t lane = threadIdx.x % 32;
    seen = {-INFINITY, INFINITY, 0};
    if (lane < blocks()) seen = *Cluster::in_block(&memory_.seen, lane);
    return reduce_lanes(seen);
  }

  // Lists the logits from `seen.bound` on, where they are few and enough. Then the first block of the cluster goes on
  // alone. True or false for all of them.
  __device__ bool list(const Seen& seen, std::uint32_t top_k) {
    if (seen.count < top_k || 3 * seen.count / 2 + 6 * warps() > FilterMemory::kEntries / 8 * 7) return false;
    const std::uint32_t room = FilterMemory::kEntries / blocks(), block = Cluster::block();
    if (threadIdx.x == 0) memory_.size = 0;
    __syncthreads();
    for_each_in_row([&](std::uint32_t first, const auto& values, int count) {
#pragma unroll
      for (int i = 0; i < kPackSize<T>; ++i) {
        if (i >= count || !(values[i] >= seen.bound)) continue;
        const std::uint32_t place = atomicAdd(&memory_.size, 1u);
        if (place < room) memory_.entries[place] = {values[i], first + i};
      }
    });
    __syncthreads();
    const std::uint32_t size = memory_.size;
    if (threadIdx.x < blocks()) Cluster::in_block(memory_.sizes, threadIdx.x)[block] = size;
    if (block > 0 && size <= room) {
      Entry* const there = Cluster::in_block(memory_.entries, 0) + block * room;
      for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) there[i] = memory_.entries[i];
    }
    sync();
    is_listed_ = longest_part() <= room;
    return is_listed_;
  }

  // The least logit that is kept, of a row whose largest is above -infinity.
  __device__ float least(const Seen& seen, float scale, std::uint32_t top_k, float top_p, bool has_k) {
    const bool has_p = top_p < 1;
    max_ = seen.max, scale_ = scale;
    // So many logits are not below `seen.bound`.
    const bool is_enough = has_k && seen.count >= top_k;
    bound_ = is_enough ? seen.bound : kLowest;
    // Logits that are 21.6 * temperature below the maximum weigh nothing. Without a bound the distance is a guess: what
    // is farther away has a bucket together, whatever it is.
    const float distance = has_k ? (is_enough ? 1.0f : 2.0f) * (max_ - seen.bound) : 21.6f / scale;
    factor_ = (Histogram::kBuckets - 1) / distance;
    clear(memory_.first);
    __syncthreads();
    for_each([&](std::uint32_t, const auto& values, int count) {
      constexpr int kSize = sizeof(values) / sizeof(float), kAtOnce = kSize < 4 ? kSize : 4;
#pragma unroll
      for (int first = 0; first < kSize; first += kAtOnce) {
        std::uint32_t buckets[kAtOnce], weights[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const float value = values[first + i];
          const bool is_in = first + i < count && value >= bound_;
          weights[i] = has_p && is_in ? weight_of(value) : 0;
          buckets[i] = is_in && (has_k || weights[i] != 0) ? bucket_of(value) : Histogram::kNone;
        }
        memory_.first.add(buckets, weights, has_k);
      }
    });
    sum_segments(memory_.first);
    std::uint64_t mass = 0;  // of all that top-k keeps; 0: of all
    float least = kLowest;
    if (has_k) {
      find_first(top_k, false, 1);
      if (memory_.crossing.is_found) {
        least = refine(false, has_p, true);
        mass = memory_.crossing.above.mass + memory_.crossing.within.mass;
      }
    }
    if (!has_p) return least;
    find_first(mass, true, top_p);
    return fmaxf(least, refine(true, true, has_k));
  }

  // This thread's share of those not below `least`, one of which is drawn.
  __device__ std::uint64_t race(float least, const Draw& draw) const {
    if (is_listed_) {
      std::uint64_t best = 0;
      for_each_entry([&](const Entry& entry) {
        if (entry.logit < least) return;
        const Random4 numbers = random4(draw.seed, draw.offset + entry.token / 4);
        const std::uint32_t two[2] = {entry.token % 2 == 0 ? numbers.of[0] : numbers.of[1],
                                      entry.token % 2 == 0 ? numbers.of[2] : numbers.of[3]};
        const float key = key_of(entry.logit, draw, entry.token % 4 < 2 ? two[0] : two[1]);
        const std::uint64_t own = candidate(rank_of(key), entry.token);
        if (own > best) best = own;
      });
      return best;
    }
    float best = -INFINITY;
    std::uint32_t index = ~0u;
    for_each_in_row([&](std::uint32_t first, const auto& values, int count) {
#pragma unroll
      for (int quad = 0; quad < kPackSize<T>; quad += 4) {
        bool is_kept[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) is_kept[i] = quad + i < count && values[quad + i] >= least;
        if (!(is_kept[0] || is_kept[1] || is_kept[2] || is_kept[3])) continue;
        const Random4 numbers = random4(draw.seed, draw.offset + (first + quad) / 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (!is_kept[i]) continue;
          const float key = key_of(values[quad + i], draw, numbers.of[i]);
          if (key > best) best = key, index = first + quad + i;
        }
      }
    });
    return index == ~0u ? 0 : candidate(rank_of(best), index);
  }
  __device__ std::uint64_t largest() const {
    std::uint64_t best = 0;
    for_each_in_row([&](std::uint32_t first, const auto& values, int count) {
#pragma unroll
      for (int i = 0; i < kPackSize<T>; ++i) {
        if (i >= count) continue;
        const std::uint64_t own = candidate(rank_of(values[i]), first + i);
        if (own > best) best = own;
      }
    });
    return best;
  }
  __device__ MaxSum sum(float max) const {
    const float base = finite_or_zero(max);
    MaxSum sum{max, 0.0f};
    for_each_in_row([&](std::uint32_t, const auto& values, int count) {
#pragma unroll
      for (int i = 0; i < kPackSize<T>; ++i) sum.sum += i < count ? exp_of(values[i] - base) : 0.0f;
    });
    return sum;
  }

 private:
  // The block's slice.
  __device__ std::uint32_t begin() const { return min(Cluster::block() * p_.slice, p_.vocabulary); }
  __device__ std::uint32_t end() const { return min(begin() + p_.slice, p_.vocabulary); }
  __device__ std::uint32_t warps() const { return blocks() * blockDim.x / 32; }
  __device__ std::uint32_t blocks() const { return is_listed_ ? 1 : Cluster::blocks(); }
  __device__ std::uint32_t longest_part() const {
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < Cluster::blocks(); ++i) longest = max(longest, memory_.sizes[i]);
    return longest;
  }
  __device__ void sync() const {
    if (blocks() == 1) {
      __syncthreads();
    } else {
      Cluster::sync();
    }
  }
  // More than that of no token.
  __device__ static float key_of(float logit, const Draw& draw, std::uint32_t number) {
    return fmaxf(race_key(logit, draw, number), kLowest);
  }
  __device__ static T* resident() {
    extern __shared__ __align__(16) unsigned char slice[];
    return reinterpret_cast<T*>(slice);
  }
  __device__ static void clear(Histogram& histogram) {
    for (std::uint32_t i = threadIdx.x; i < Histogram::kBuckets; i += blockDim.x) {
      histogram.counts[i] = histogram.low[i] = histogram.high[i] = 0;
    }
  }
  __device__ std::uint32_t weight_of(float logit) const {
    return logit == max_ ? 1u << 31 : __float2uint_rn(exp_of((logit - max_) * scale_) * 0x1p31f);
  }
  // Never less for a smaller logit.
  __device__ std::uint32_t bucket_of(float logit) const {
    return min(__float2uint_rn((max_ - logit) * factor_), Histogram::kBuckets - 1);
  }

  // When all threads of the block have added what they have: makes the histogram visible to the cluster.
  __device__ void sum_segments(Histogram& histogram) {
    __syncthreads();
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint32_t i = threadIdx.x / 32; i < 32; i += blockDim.x / 32) {
      const Tally sum = scan_lanes(histogram.bucket(i * Histogram::kSegment + lane));
      if (lane == 31) histogram.segments[i] = sum;
    }
    sync();
  }

  // For a warp: the bucket with which `above` and what the histograms of all blocks have, the largest first, reach the
  // target. 0: becomes that share of all mass.
  struct Place {
    Tally above, within;
    std::uint32_t bucket;
    bool is_found;
  };
  __device__ Place find(Histogram& histogram, const Tally& above, std::uint64_t& target, bool is_mass,
                        float share) const {
    const std::uint32_t lane = threadIdx.x % 32;
    Place place{above, {}, 0, true};
#pragma unroll 1
    for (int level = 0; level < 2; ++level) {
      const bool is_of_segments = level == 0;
      Tally own{};
#pragma unroll 4
      for (std::uint32_t block = 0; block < blocks(); ++block) {
        Histogram& there = *Cluster::in_block(&histogram, block);
        own = own + (is_of_segments ? there.segments[lane] : there.bucket(place.bucket + lane));
      }
      const Tally up_to = scan_lanes(own);
      if (target == 0) target = share_of(from_lane(up_to, 31).mass, share);
      const std::uint32_t reached = __ballot_sync(~0u, (place.above + up_to).of(is_mass) >= target);
      if (reached == 0) return {{}, {}, 0, false};
      const int first = __ffs(static_cast<int>(reached)) - 1;
      if (first > 0) place.above = place.above + from_lane(up_to, first - 1);
      place.within = from_lane(own, first);
      place.bucket = (place.bucket + static_cast<std::uint32_t>(first)) * (is_of_segments ? Histogram::kSegment : 1);
    }
    return place;
  }
  __device__ static std::uint64_t share_of(std::uint64_t sum, float share) {
    const double part = ceil(static_cast<double>(share) * static_cast<double>(sum));
    return part >= 1 ? static_cast<std::uint64_t>(part) : 1;
  }

  // Leaves the crossing of the first histogram. The target is `sum`, or that share of it where it is a mass; 0 stands
  // for the mass of all.
  __device__ void find_first(std::uint64_t sum, bool is_mass, float share) {
    __syncthreads();
    if (threadIdx.x < 32) {
      std::uint64_t target = sum;
      if (is_mass && sum > 0) target = share_of(sum, share);
      const Place place = find(memory_.first, {}, target, is_mass, share);
      // Half a warp looks for the least rank in the bucket, the other half for that in the bucket above.
      const std::uint32_t half = threadIdx.x / 16, lane = threadIdx.x % 16;
      std::uint32_t low = Order<T>::rank(bound_), high = Order<T>::rank(max_);
      const bool has_above = place.bucket >= half;
      if (!has_above) low = high = high + 1;
      while (__any_sync(~0u, low < high)) {
        const std::uint32_t step = (high - low) / 15 + 1, rank = low < high ? min(low + lane * step, high) : high;
        const bool is_in = !has_above || bucket_of(Order<T>::value(rank)) <= place.bucket - half;
        const std::uint32_t reached = __ballot_sync(~0u, is_in) >> 16 * half & 0xFFFF;
        const auto first = static_cast<std::uint32_t>(__ffs(static_cast<int>(reached)) - 1);
        if (low < high) {
          const std::uint32_t next = min(low + first * step, high);
          if (first > 0) low += (first - 1) * step + 1;
          high = next;
        }
      }
      const std::uint32_t end = __shfl_sync(~0u, low, 16);
      if (threadIdx.x == 0) memory_.crossing = {place.above, place.within, target, low, end - 1, place.is_found};
    }
    __syncthreads();
  }

  // The threshold in the crossing's bucket. `are_counted`: all logits of the bucket are.
  __device__ float refine(bool is_mass, bool has_mass, bool are_counted) {
    for (;; are_counted = true) {
      const Crossing& crossing = memory_.crossing;
      const std::uint32_t low = crossing.low, high = crossing.high;
      const bool is_one = are_counted && crossing.within.count == 1;
      const bool is_whole = !is_mass && crossing.above.count + crossing.within.count == crossing.target;
      if (low == high || is_one || is_whole) return Order<T>::value(low);
      const int width = 32 - __clz(static_cast<int>(high - low)), shift = max(width - 10, 0);
      // Others may still read the last one.
      Histogram& histogram = is_listed_ || turn_++ % 2 == 0 ? memory_.finer : memory_.other_finer;
      clear(histogram);
      __syncthreads();
      const float low_value = Order<T>::value(low), high_value = Order<T>::value(high);
      for_each([&](std::uint32_t, const auto& values, int count) {
        constexpr int kSize = sizeof(values) / sizeof(float);
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          if (i >= count || !(values[i] >= low_value && values[i] <= high_value)) continue;
          const std::uint32_t below = high - Order<T>::rank(values[i]);
          if (below > high - low) continue;  // a zero, where the bucket ends with -0
          const std::uint32_t buckets[1] = {below >> shift};
          const std::uint32_t weights[1] = {has_mass ? weight_of(values[i]) : 0};
          histogram.add(buckets, weights, true);
        }
      });
      sum_segments(histogram);
      if (threadIdx.x < 32) {
        std::uint64_t target = crossing.target;
        const Place place = find(histogram, crossing.above, target, is_mass, 1);
        const std::uint32_t end = high - (place.bucket << shift), span = (1u << shift) - 1;
        const Crossing finer{place.above, place.within, target, max(end, low + span) - span, end, true};
        if (threadIdx.x == 0) memory_.crossing = finer;
      }
      __syncthreads();
    }
  }

  FilterMemory& memory_;
  const SamplingParams& p_;
  std::uint32_t row_;
  bool is_listed_ = false;  // this block alone goes on, with the list
  float max_ = 0, scale_ = 0, bound_ = 0, factor_ = 0;
  std::uint32_t turn_ = 0;
};

}  // namespace cgrt::kernels::sampling
