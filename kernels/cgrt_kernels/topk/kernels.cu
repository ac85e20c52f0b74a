#include "cgrt_kernels/topk/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/device_count.h"
#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/common/rank.cuh"

namespace cgrt::kernels {
namespace {

// Of kLanes threads side by side.
template <int kLanes = 32>
__device__ __forceinline__ float sum_of_lanes(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

// A token for kLanes threads, each with an expert: how many come before it says where it is chosen, if it is.
template <class T, int kLanes>
__global__ void __launch_bounds__(kTopkBlock) topk_of_few(const __grid_constant__ TopkParams p) {
  const std::uint32_t expert = threadIdx.x % kLanes;
  const std::uint64_t token = std::uint64_t{blockIdx.x} * (kTopkBlock / kLanes) + threadIdx.x / kLanes;
  wait_for_predecessors();
  let_dependents_start();
  const bool is_there = token < count_at(p.args.token_count, p.tokens) && expert < p.experts;
  const float logit = is_there ? to_float(static_cast<const T*>(p.args.logits)[token * p.experts + expert]) : 0;
  const std::uint32_t rank = is_there ? rank_of(logit) : 0;
  std::uint32_t before = 0;
#pragma unroll
  for (std::uint32_t mask = 1; mask < kLanes; ++mask) {
    const std::uint32_t other = __shfl_xor_sync(~0u, rank, mask);
    before += other > rank || (other == rank && (expert ^ mask) < expert) ? 1 : 0;
  }
  const bool is_chosen = is_there && before < p.k;
  const float max = sum_of_lanes<kLanes>(before == 0 ? logit : 0);
  const float weight = is_there ? expf(logit - max) : 0;
  float sum = sum_of_lanes<kLanes>(weight);
  const float chosen_sum = sum_of_lanes<kLanes>(is_chosen ? weight : 0);
  if (p.weights == TopkWeights::kNormalized && sum == sum) sum = chosen_sum;
  if (!is_chosen) return;
  p.args.weights[token * p.k + before] = weight / sum;
  p.args.chosen[token * p.k + before] = static_cast<std::int32_t>(expert);
}

// Lane i has the logits of experts i, i + 32, ...
template <class T, int kPerLane>
__global__ void __launch_bounds__(kTopkBlock) topk_softmax(const __grid_constant__ TopkParams p) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint64_t token = std::uint64_t{blockIdx.x} * (kTopkBlock / 32) + threadIdx.x / 32;
  wait_for_predecessors();
  let_dependents_start();
  if (token >= count_at(p.args.token_count, p.tokens)) return;
  const T* const row = static_cast<const T*>(p.args.logits) + token * p.experts;
  float logits[kPerLane];
  std::uint32_t ranks[kPerLane];  // 0: no expert, or chosen already
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const std::uint32_t expert = lane + i * 32;
    logits[i] = expert < p.experts ? to_float(row[expert]) : 0.0f;
    ranks[i] = expert < p.experts ? rank_of(logits[i]) : 0;
  }

  float max = 0, own = 0;  // the largest logit, and that of the expert that this lane writes
  std::uint32_t own_expert = 0;
  float sum = 0;  // of all that this lane has
  for (std::uint32_t round = 0; round < p.k; ++round) {
    std::uint32_t best = 0, expert = ~0u;
    float logit = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (ranks[i] > best) best = ranks[i], expert = lane + i * 32, logit = logits[i];
    }
    const std::uint32_t largest = __reduce_max_sync(~0u, best);
    const std::uint32_t first = __reduce_min_sync(~0u, best == largest ? expert : ~0u);
    logit = __shfl_sync(~0u, logit, first % 32);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (first == lane + i * 32) ranks[i] = 0;
    }
    if (round == 0) {
      max = logit;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        if (lane + i * 32 < p.experts) sum += expf(logits[i] - max);
      }
    }
    if (lane == round) own = logit, own_expert = first;
  }
  sum = sum_of_lanes(sum);
  const float weight = lane < p.k ? expf(own - max) : 0;
  const float chosen_sum = sum_of_lanes(weight);
  if (p.weights == TopkWeights::kNormalized && sum == sum) sum = chosen_sum;
  if (lane >= p.k) return;
  p.args.weights[token * p.k + lane] = weight / sum;
  p.args.chosen[token * p.k + lane] = static_cast<std::int32_t>(own_expert);
}

template <class T>
void topk_on_host(HostGrid, TopkParams p) {
  std::vector<std::int32_t> order(p.experts);
  std::vector<float> logits(p.experts);
  for (std::uint64_t token = 0, count = count_at(p.args.token_count, p.tokens); token < count; ++token) {
    const T* const row = static_cast<const T*>(p.args.logits) + token * p.experts;
    for (std::uint32_t i = 0; i < p.experts; ++i) order[i] = static_cast<std::int32_t>(i), logits[i] = to_float(row[i]);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return std::isnan(logits[b]) ? !std::isnan(logits[a]) : logits[a] > logits[b];
    });
    const float max = logits[order[0]];
    float sum = 0, chosen_sum = 0;
    for (std::uint32_t i = 0; i < p.experts; ++i) {
      const float weight = std::exp(logits[order[i]] - max);
      sum += weight;
      if (i < p.k) chosen_sum += weight;
    }
    if (p.weights == TopkWeights::kNormalized && !std::isnan(sum)) sum = chosen_sum;
    for (std::uint32_t i = 0; i < p.k; ++i) {
      p.args.weights[token * p.k + i] = std::exp(logits[order[i]] - max) / sum;
      p.args.chosen[token * p.k + i] = order[i];
    }
  }
}

}  // namespace

Kernel<TopkParams> topk_kernel(DType type, std::uint32_t experts) {
  return of_float_type(type, [=]<class T>() {
    constexpr auto on_host = topk_on_host<T>;
    const auto with = [=]<int kPerLane>() {
      return make_kernel<topk_softmax<T, kPerLane>, on_host,
                         KernelResources{.registers = kPerLane == 16 ? 72 : 40, .max_threads = kTopkBlock}>();
    };
    constexpr KernelResources kOfFew{.registers = 40, .max_threads = kTopkBlock};
    if (topk_lanes(experts) == 8) return make_kernel<topk_of_few<T, 8>, on_host, kOfFew>();
    if (topk_lanes(experts) == 16) return make_kernel<topk_of_few<T, 16>, on_host, kOfFew>();
    if (experts <= 32) return with.template operator()<1>();
    if (experts <= 64) return with.template operator()<2>();
    if (experts <= 128) return with.template operator()<4>();
    return experts <= 256 ? with.template operator()<8>() : with.template operator()<16>();
  });
}

}  // namespace cgrt::kernels
