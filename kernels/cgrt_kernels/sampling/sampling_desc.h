// One token of each row of logits: what can be asked for. Plain: no Abseil. The functions that plan and launch are in
// sampling.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/random_state.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

enum class SamplingOp : std::uint8_t {
  kGreedy,    // the token with the largest logit; of equal ones the first
  kRandom,    // drawn from softmax(logits / temperature)
  kFiltered,  // the same, of the tokens that top-k and then top-p keep
};
constexpr const char* to_string(SamplingOp op) {
  switch (op) {
    case SamplingOp::kGreedy: return "greedy sampling";
    case SamplingOp::kRandom: return "sampling";
    case SamplingOp::kFiltered: return "filtered sampling";
  }
  return "unknown";
}

// Below it a temperature counts as 0: the row's token is the greedy one.
inline constexpr float kSamplingMinTemperature = 1e-5f;

// Top-k keeps the k largest logits, and all that equal the last of them. Top-p keeps, of those, the fewest of the
// largest whose share of the probability of all that top-k keeps is at least p, and all that equal the last of them;
// for it probabilities are rounded to multiples of 2^-31 of the largest. One of those kept is drawn, with its
// probability among them: the one with the largest logit / temperature - log(-log1p(-v)), v uniform from 0 to 1 (an
// exponential race). Number i of a row from the state's offset on is token i's, and each row has a multiple of 4
// numbers. Computed in float: of nearly equal logits the first is drawn too often at temperatures below some 10^-6 of
// them.
//
// NaN is less than all other logits and has the probability 0. A row that has nothing but NaN gives token 0. But a
// log_probability is NaN where any logit of its row is, or all are -infinity.
struct SamplingDesc {
  SamplingOp op = SamplingOp::kGreedy;
  DType type = DType::kFloat32;      // of the logits; or float16, bfloat16
  DType token_type = DType::kInt32;  // or int64
  std::uint64_t rows = 0;            // at most
  std::uint64_t vocabulary = 0;      // logits of a row
};

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements. What has an element
// for each row is read on the device, so that rows may differ.
struct SamplingArgs {
  void* token = nullptr;                // [rows]
  float* log_probability = nullptr;     // [rows]: log_softmax(logits)[token], without temperature; null: none
  const void* logits = nullptr;         // [rows, vocabulary]
  const float* temperature = nullptr;   // [rows]; null: 1. Not for kGreedy
  const std::int32_t* top_k = nullptr;  // [rows], for kFiltered; null, 0 and less, vocabulary and more: all
  const float* top_p = nullptr;         // [rows], for kFiltered; null, NaN, 1 and more: all; 0 and less: the largest
  RandomState* state = nullptr;         // not for kGreedy
  const std::int32_t* row_count = nullptr;  // how many of the rows there are, clamped to 0 and `rows`; null: all
  Workspace workspace = {};                 // SamplingPlan::workspace_bytes
};

}  // namespace cgrt::kernels
