// What all of sampling's kernels do with a row: read it, draw, and write its token.
#pragma once

#include <cmath>
#include <cstdint>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/philox.h"
#include "cgrt_kernels/common/random_state.cuh"
#include "cgrt_kernels/common/rank.cuh"
#include "cgrt_kernels/common/reduction.cuh"
#include "cgrt_kernels/sampling/kernels.h"

namespace cgrt::kernels::sampling {

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

// How a row's token is drawn. Keys are those of sampling_desc.h, times a temperature below 1, so that none overflows.
struct Draw {
  std::uint64_t seed, offset;
  float of_logit, of_noise;  // factors
};
__device__ __forceinline__ Draw draw_of(const SamplingParams& p, std::uint32_t row, float temperature) {
  const std::uint64_t offset = p.args.state->offset + row * sampling_draws_of_row(p.vocabulary);
  return {p.args.state->seed, offset, 1 / fmaxf(temperature, 1), fminf(temperature, 1)};
}
// For all threads of a block, at its end.
__device__ __forceinline__ void leave_state(const SamplingParams& p) {
  leave_state(p.args.state, p.args.state->offset, sampling_draws(p.rows, p.vocabulary));
}

// v is below 1, or a token of some probability could lose to one of none.
__device__ __forceinline__ float race_key(float logit, const Draw& draw, std::uint32_t number) {
  const float v = fminf((static_cast<float>(number) + 0.5f) * 0x1p-32f, 0x1.fffffep-1f);
  return logit * draw.of_logit - draw.of_noise * __logf(-log1pf(-v));
}

// The largest rank, and the first index that has it.
__device__ __forceinline__ std::uint64_t candidate(std::uint32_t rank, std::uint32_t index) {
  return std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(~index);
}
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
__device__ __forceinline__ std::uint64_t merge(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
__device__ __forceinline__ Found merge(const Found& a, const Found& b) {
  return {merge(a.best, b.best), merge(a.sum, b.sum)};
}

// What all threads of the block have, in each of them. reduce_lanes would not find merge and shuffle of integers, which
// are this file's.
template <class Value>
__device__ __forceinline__ Value reduce_block(Value value) {
  __shared__ __align__(16) unsigned char bytes[kSamplingFilteredBlock / 32 * sizeof(Value)];
  auto* const parts = reinterpret_cast<Value*>(bytes);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = merge(value, shuffle(value, mask));
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
      const float key = kIsDrawn ? race_key(values[i], draw, numbers[i / 4].of[i % 4]) : values[i];
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
  std::uint64_t best = 0;
  for (std::uint32_t i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    best = merge(best, candidate(rank_of(to_float(row[i])), i));
  }
  return reduce_block(best);
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

}  // namespace cgrt::kernels::sampling
