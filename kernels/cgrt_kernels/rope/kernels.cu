#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/rope/kernels.h"

namespace cgrt::kernels {
namespace {

// Where head 0 of a token's keys and values begins, in elements; kNowhere: they are not kept.
__host__ __device__ std::uint64_t kept_at(const RopeParams& p, std::uint64_t token, std::uint32_t position) {
  if (!p.has_cache) return token * p.cache.position_stride;
  const auto sequence = static_cast<std::uint32_t>(p.args.sequence[token]);
  if (sequence >= p.cache.sequences || position >= p.cache.positions) return kNowhere;
  return offset_in(p.cache, block_of(p.cache, p.args.block_table, sequence, position), position);
}

// Where head `head` of a row of qkv goes; null: nowhere.
template <class T>
__host__ __device__ T* target_of(const RopeParams& p, std::uint64_t token, std::uint32_t position, std::uint32_t head) {
  if (head < p.heads) return static_cast<T*>(p.args.q) + (token * p.heads + head) * p.head_size;
  const std::uint64_t offset = kept_at(p, token, position);
  if (offset == kNowhere) return nullptr;
  head -= p.heads;
  const bool is_key = head < p.kv_heads;
  return static_cast<T*>(is_key ? p.args.k : p.args.v) + offset +
         (is_key ? head : head - p.kv_heads) * p.cache.head_stride;
}

__host__ __device__ std::uint32_t heads_of_row(const RopeParams& p) { return p.heads + 2 * p.kv_heads; }
__host__ __device__ bool turns(const RopeParams& p, std::uint32_t head) { return head < p.heads + p.kv_heads; }

__host__ __device__ __forceinline__ void turn(float& a, float& b, float cosine, float sine) {
  const float before = a;
  a = before * cosine - b * sine;
  b = b * cosine + before * sine;
}

template <class Pack, int kSize, class T>
__device__ __forceinline__ void add(const T* from, float (&values)[kSize]) {
  float more[kSize];
  unpack(*reinterpret_cast<const Pack*>(from), more);
#pragma unroll
  for (int i = 0; i < kSize; ++i) values[i] += more[i];
}

template <class Pack, int kSize, class T>
__device__ __forceinline__ void store(T* to, const float (&values)[kSize]) {
  Pack pack;
  pack_into(pack, values);
  *reinterpret_cast<Pack*>(to) = pack;
}

template <Alignment kAlignment, int kSize>
__device__ __forceinline__ void turn_halves(const float2* row, float (&a)[kSize], float (&b)[kSize]) {
  if constexpr (kAlignment == Alignment::kAligned) {
#pragma unroll
    for (int i = 0; i < kSize; i += 2) {
      const float4 angles = *reinterpret_cast<const float4*>(row + i);
      turn(a[i], b[i], angles.x, angles.y);
      turn(a[i + 1], b[i + 1], angles.z, angles.w);
    }
  } else {
    turn(a[0], b[0], row->x, row->y);
  }
}

// Pairs of neighbours in a pack, whose first element is `begin` of the head.
template <int kSize>
__device__ __forceinline__ void turn_neighbours(const float2* row, std::uint32_t begin, std::uint32_t rotary_size,
                                                float (&values)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; i += 2) {
    if (begin + i >= rotary_size) continue;
    const float2 angle = row[(begin + i) / 2];
    turn(values[i], values[i + 1], angle.x, angle.y);
  }
}

// Each thread has two packs of a head. With kHalves these are rotated together, as long as there are such; else they
// are neighbours, of which a head may lack the second.
template <class T, Alignment kAlignment, RopePairs kPairs>
__global__ void __launch_bounds__(kRopeBlock) rope(const __grid_constant__ RopeParams p) {
  using Pack = PackFor<T, kAlignment>;
  constexpr int kSize = kPackSizeFor<T, kAlignment>;
  const auto [token, item] = p.row_items.divide(std::uint64_t{blockIdx.x} * kRopeBlock + threadIdx.x);
  const std::uint32_t head = p.head_items.quotient(item);
  const std::uint32_t rotary_size = turns(p, head) ? p.rotary_size : 0;
  const std::uint32_t half = rotary_size / 2;
  std::uint32_t first = (item - head * p.head_items.value()) * kSize, second;
  bool is_in_halves = false;
  if constexpr (kPairs == RopePairs::kHalves) is_in_halves = first < half;
  if (is_in_halves) {
    second = first + half;
  } else {
    first = 2 * first, second = first + kSize;  // behind both halves: 2 half + 2 (first - half)
  }
  const bool has_second = second < p.head_size;
  wait_for_predecessors();
  let_dependents_start();
  if (token >= count_at(p.args.token_count, p.tokens)) return;

  // Before it is known where they go, which takes up to three reads, one after the other.
  const T* const from = static_cast<const T*>(p.args.qkv) + (token * heads_of_row(p) + head) * p.head_size;
  const Pack low = *reinterpret_cast<const Pack*>(from + first);
  const Pack high = has_second ? *reinterpret_cast<const Pack*>(from + second) : Pack{};
  const auto position = static_cast<std::uint32_t>(p.args.position[token]);
  if (position >= p.positions) return;
  T* const to = target_of<T>(p, token, position, head);
  if (to == nullptr) return;

  float a[kSize], b[kSize];
  unpack(low, a);
  unpack(high, b);
  if (p.args.bias != nullptr) {
    const T* const bias = static_cast<const T*>(p.args.bias) + std::uint64_t{head} * p.head_size;
    add<Pack>(bias + first, a);
    if (has_second) add<Pack>(bias + second, b);
  }
  const float2* const row =
      reinterpret_cast<const float2*>(p.args.table) + std::uint64_t{position} * (p.rotary_size / 2);
  if constexpr (kPairs == RopePairs::kHalves) {
    if (is_in_halves) turn_halves<kAlignment>(row + first, a, b);
  } else if constexpr (kSize == 1) {
    if (second < rotary_size) {
      const float2 angle = row[first / 2];
      turn(a[0], b[0], angle.x, angle.y);
    }
  } else {
    turn_neighbours(row, first, rotary_size, a);
    turn_neighbours(row, second, rotary_size, b);
  }
  store<Pack>(to + first, a);
  if (has_second) store<Pack>(to + second, b);
}

template <class T, RopePairs kPairs>
void rope_on_host(HostGrid, RopeParams p) {
  const std::uint32_t half = p.rotary_size / 2;
  std::vector<float> values(p.head_size);
  for (std::uint64_t token = 0, count = count_at(p.args.token_count, p.tokens); token < count; ++token) {
    const auto position = static_cast<std::uint32_t>(p.args.position[token]);
    if (position >= p.positions) continue;
    for (std::uint32_t head = 0; head < heads_of_row(p); ++head) {
      T* const to = target_of<T>(p, token, position, head);
      if (to == nullptr) continue;
      const T* const from = static_cast<const T*>(p.args.qkv) + (token * heads_of_row(p) + head) * p.head_size;
      for (std::uint32_t i = 0; i < p.head_size; ++i) values[i] = to_float(from[i]);
      if (const auto* const bias = static_cast<const T*>(p.args.bias); bias != nullptr) {
        for (std::uint32_t i = 0; i < p.head_size; ++i) values[i] += to_float(bias[head * p.head_size + i]);
      }
      const float* const row = p.args.table + std::uint64_t{position} * p.rotary_size;
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
                       KernelResources{.registers = 40, .max_threads = kRopeBlock}>();
  });
}

}  // namespace

Kernel<RopeParams> rope_kernel(DType type, RopePairs pairs, Alignment alignment) {
  return pairs == RopePairs::kNeighbours ? of_pairs<RopePairs::kNeighbours>(type, alignment)
                                         : of_pairs<RopePairs::kHalves>(type, alignment);
}

}  // namespace cgrt::kernels
