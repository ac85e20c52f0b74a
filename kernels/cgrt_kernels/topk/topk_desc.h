// The largest of each row with their softmax, as a mixture of experts routes its tokens: what can be asked for. Plain:
// no Abseil. The functions that plan and launch are in topk.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// What the weights of a token add up to.
enum class TopkWeights : std::uint8_t {
  kOfAll,       // softmax over all experts, of which k are kept: less than 1
  kNormalized,  // softmax over the k chosen: 1
};

inline constexpr std::uint32_t kTopkMaxExperts = 512, kTopkMaxChosen = 32;

// Of each token the k experts with the largest logits, largest first; of equal ones the first. NaN comes last, and
// makes all weights of its token NaN. Computed in float.
struct TopkDesc {
  DType type = DType::kFloat32;  // of the logits; or float16, bfloat16
  std::uint64_t tokens = 0;      // at most
  std::uint64_t experts = 0;     // at most kTopkMaxExperts
  std::uint64_t k = 0;           // at most `experts` and kTopkMaxChosen
  TopkWeights weights = TopkWeights::kNormalized;
};

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements.
struct TopkArgs {
  float* weights = nullptr;                   // [tokens, k]
  std::int32_t* chosen = nullptr;             // [tokens, k]: numbers of experts
  const void* logits = nullptr;               // [tokens, experts]
  const std::int32_t* token_count = nullptr;  // how many tokens there are, clamped to 0 and `tokens`; null: all
};

}  // namespace cgrt::kernels
