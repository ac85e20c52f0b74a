#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rope/kernels.h"

namespace cgrt::kernels {
namespace {

// Where a token's keys and values belong; without a cache the sequence is 0.
struct Place {
  std::uint32_t position, sequence;
};
__host__ __device__ __forceinline__ Place place_of(const RopeParams& p, std::uint64_t token) {
  return {static_cast<std::uint32_t>(p.args.position[token]),
          p.args.sequence != nullptr ? static_cast<std::uint32_t>(p.args.sequence[token]) : 0};
}

// Where head 0 of a token's keys and values begins, in elements; kNowhere: they are not kept.
__host__ __device__ std::uint64_t kept_at(const RopeParams& p, std::uint64_t token, const Place& place) {
  if (p.args.sequence == nullptr) return token * p.cache.position_stride;
  const auto [position, sequence] = place;
  if (sequence >= p.cache.sequences || position >= p.cache.positions) return kNowhere;
  return offset_in(p.cache, block_of(p.cache, p.args.block_table, sequence, position), position);
}

// Where head `head` of a row of qkv goes; `kept`: where the token's keys and values begin.
template <class T>
__host__ __device__ T* target_of(const RopeParams& p, std::uint64_t token, std::uint32_t head, std::uint64_t kept) {
  if (head < p.heads) return static_cast<T*>(p.args.q) + (token * p.heads + head) * p.head_size;
  head -= p.heads;
  const bool is_key = head < p.kv_heads;
  return static_cast<T*>(is_key ? p.args.k : p.args.v) + kept +
         (is_key ? head : head - p.kv_heads) * p.cache.head_stride;
}

__host__ __device__ std::uint32_t heads_of_row(const RopeParams& p) { return p.heads + 2 * p.kv_heads; }
__host__ __device__ bool turns(const RopeParams& p, std::uint32_t head) { return head < p.heads + p.kv_heads; }

__host__ __device__ __forceinline__ void turn(float& a, float& b, float cosine, float sine) {
  const float before = a;
  a = before * cosine - b * sine;
  b = b * cosine + before * sine;
}

template <int kSize, class Pack>
__device__ __forceinline__ void add(const Pack& pack, float (&values)[kSize]) {
  float more[kSize];
  unpack(pack, more);
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] += more[i];
}

template <class Pack, int kSize, class T>
__device__ __forceinline__ void store(T* to, const float (&values)[kSize]) {
  Pack pack;
  pack_into(pack, values);
  *reinterpret_cast<Pack*>(to) = pack;
}

// Cosine and sine of the pairs of two packs, from `first` of the head's `count` pairs on. With kHalves packs have as
// many as elements, or none.
template <RopePairs kPairs, int kSize>
struct Angles {
  float2 of[kSize];

  __device__ __forceinline__ void load(const float2* row, std::uint32_t first, std::uint32_t count) {
    constexpr bool kIsWhole = kPairs == RopePairs::kHalves && kSize > 1;
    if (kIsWhole && first >= count) return;
#pragma unroll
    for (int i = 0; i < kSize; i += kIsWhole ? 2 : 1) {
      if constexpr (kIsWhole) {
        const float4 two = *reinterpret_cast<const float4*>(row + first + i);
        of[i] = make_float2(two.x, two.y), of[i + 1] = make_float2(two.z, two.w);
      } else {
        if (first + i < count) of[i] = row[first + i];
      }
    }
  }
  __device__ __forceinline__ void apply(std::uint32_t first, std::uint32_t count, float (&a)[kSize],
                                        float (&b)[kSize]) const {
    if (first >= count) return;
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      if constexpr (kPairs == RopePairs::kHalves || kSize == 1) {
        turn(a[i], b[i], of[i].x, of[i].y);
      } else if (first + i < count) {
        float(&pack)[kSize] = i < kSize / 2 ? a : b;
        turn(pack[2 * i % kSize], pack[2 * i % kSize + 1], of[i].x, of[i].y);
      }
    }
  }
};

// Each thread has two packs of a head. With kHalves these are rotated together, as long as there are such; else they
// are neighbours, of which a head may lack the second.
template <class T, Alignment kAlignment, RopePairs kPairs>
__global__ void __launch_bounds__(kRopeBlock, kRopeBlocks) rope(const __grid_constant__ RopeParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  const auto [wide_token, item] = p.row_items.divide(std::uint64_t{blockIdx.x} * kRopeBlock + threadIdx.x);
  const std::uint32_t head = p.head_items.quotient(item);
  const std::uint32_t pairs = turns(p, head) ? p.rotary_size / 2 : 0;
  const std::uint32_t first_pair = (item - head * p.head_items.value()) * kSize;
  const bool is_in_halves = kPairs == RopePairs::kHalves && first_pair < pairs;
  // Behind both halves: 2 pairs + 2 (first_pair - pairs).
  const std::uint32_t first = is_in_halves ? first_pair : 2 * first_pair;
  const std::uint32_t distance = is_in_halves ? pairs : kSize;
  const bool has_second = first + distance < p.head_size;
  wait_for_predecessors();
  let_dependents_start();
  if (wide_token >= p.tokens) return;

  // All is asked for as early as its address is known: the place beside the count, and the page and the table, which
  // hang on the place, last.
  const auto token = static_cast<std::uint32_t>(wide_token);
  const Place place = place_of(p, token);
  if (token >= count_at(p.args.token_count, p.tokens)) return;
  const T* const from =
      static_cast<const T*>(p.args.qkv) + (std::uint64_t{token} * heads_of_row(p) + head) * p.head_size + first;
  const Pack low = *reinterpret_cast<const Pack*>(from);
  const Pack high = has_second ? *reinterpret_cast<const Pack*>(from + distance) : Pack{};
  Pack low_bias{}, high_bias{};
  if (p.args.bias != nullptr) {
    const T* const bias = static_cast<const T*>(p.args.bias) + std::uint64_t{head} * p.head_size + first;
    low_bias = *reinterpret_cast<const Pack*>(bias);
    if (has_second) high_bias = *reinterpret_cast<const Pack*>(bias + distance);
  }
  const std::uint64_t kept = head < p.heads ? 0 : kept_at(p, token, place);
  T* const to = target_of<T>(p, token, head, kept) + first;
  const bool is_written = place.position < p.positions && kept != kNowhere;
  Angles<kPairs, kSize> angles;
  const std::uint64_t row = std::uint64_t{min(place.position, p.positions - 1)} * (p.rotary_size / 2);
  angles.load(reinterpret_cast<const float2*>(p.args.table) + row, first_pair, pairs);
  if (!is_written) return;

  float a[kSize], b[kSize];
  unpack(low, a);
  unpack(high, b);
  if (p.args.bias != nullptr) {
    add(low_bias, a);
    add(high_bias, b);
  }
  angles.apply(first_pair, pairs, a, b);
  store<Pack>(to, a);
  if (has_second) store<Pack>(to + distance, b);
}

template <class T, RopePairs kPairs>
void rope_on_host(HostGrid, RopeParams p) {
  const std::uint32_t half = p.rotary_size / 2;
  std::vector<float> values(p.head_size);
  for (std::uint64_t token = 0, count = count_at(p.args.token_count, p.tokens); token < count; ++token) {
    const Place place = place_of(p, token);
    if (place.position >= p.positions) continue;
    const std::uint64_t kept = kept_at(p, token, place);
    for (std::uint32_t head = 0; head < heads_of_row(p); ++head) {
      if (head >= p.heads && kept == kNowhere) continue;
      T* const to = target_of<T>(p, token, head, kept);
      const T* const from = static_cast<const T*>(p.args.qkv) + (token * heads_of_row(p) + head) * p.head_size;
      for (std::uint32_t i = 0; i < p.head_size; ++i) values[i] = to_float(from[i]);
      if (const auto* const bias = static_cast<const T*>(p.args.bias); bias != nullptr) {
        for (std::uint32_t i = 0; i < p.head_size; ++i) values[i] += to_float(bias[head * p.head_size + i]);
      }
      const float* const row = p.args.table + std::uint64_t{place.position} * p.rotary_size;
      for (std::uint32_t i = 0; turns(p, head) && i < half; ++i) {
        const bool is_halves = kPairs == RopePairs::kHalves;
        turn(values[is_halves ? i : 2 * i], values[is_halves ? i + half : 2 * i + 1], row[2 * i], row[2 * i + 1]);
      }
      for (std::uint32_t i = 0; i < p.head_size; ++i) to[i] = from_float<T>(values[i]);
    }
  }
}

template <RopePairs kPairs>
Kernel<RopeParams> of_pairs(DType type, Alignment alignment) {
  return of_float_type(type, alignment, [=]<class T, Alignment kAlignment>() {
    return make_kernel<rope<T, kAlignment, kPairs>, rope_on_host<T, kPairs>,
                       KernelResources{.registers = 56, .max_threads = kRopeBlock}>();
  });
}

}  // namespace

Kernel<RopeParams> rope_kernel(DType type, RopePairs pairs, Alignment alignment) {
  return pairs == RopePairs::kNeighbours ? of_pairs<RopePairs::kNeighbours>(type, alignment)
                                         : of_pairs<RopePairs::kHalves>(type, alignment);
}

}  // namespace cgrt::kernels
