// The largest of each row with their softmax: lanes that are full and not, equal logits, and NaN.
#include "cgrt_kernels/topk/topk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/topk/reference.h"
#include "kernels/draw.h"
#include "kernels/support.h"

namespace cgrt::testing {
namespace {

using kernels::DType;
using kernels::size_of;
using kernels::TopkArgs;
using kernels::TopkDesc;
using kernels::TopkPlan;
using kernels::TopkWeights;

// Some rows have few different logits, some experts that are masked, all of them masked, or NaN.
Bytes logits_of(const TopkDesc& desc) {
  Bytes bytes = random_elements(desc.type, desc.tokens * desc.experts, 0, 3, 1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (std::uint64_t token = 0; token < desc.tokens; ++token) {
    for (std::uint64_t expert = 0; expert < desc.experts; ++expert) {
      unsigned char* const at = &bytes[(token * desc.experts + expert) * size_of(desc.type)];
      const double logit = read_element(desc.type, at);
      const bool is_some = expert % 3 == token % 2;
      switch (token % 12) {
        case 1: write_element(desc.type, at, std::round(logit)); break;
        case 3: write_element(desc.type, at, expert % 2 == 0 ? 0.0 : -0.0); break;
        case 5: write_element(desc.type, at, is_some ? -kInfinity : logit); break;
        case 7: write_element(desc.type, at, -kInfinity); break;
        case 9: write_element(desc.type, at, is_some ? std::nan("") : logit); break;
        case 11: write_element(desc.type, at, expert == desc.experts / 2 ? kInfinity : logit); break;
        default: break;
      }
    }
  }
  return bytes;
}

constexpr std::int32_t kNoCount = -1000;

absl::Status check(const TopkDesc& desc, std::size_t shift, std::int32_t token_count) {
  CGRT_ASSIGN_OR_RETURN(const TopkPlan plan, kernels::plan_topk(kDevice, desc));
  const Bytes logits = logits_of(desc);
  CGRT_ASSIGN_OR_RETURN(Trial trial, Trial::create());
  const std::uint64_t count = desc.tokens * desc.k;
  CGRT_ASSIGN_OR_RETURN(void* const weights, trial.output(Bytes(count * 4, 0x5A), shift * 4));
  CGRT_ASSIGN_OR_RETURN(void* const chosen, trial.output(Bytes(count * 4, 0x5A), shift * 4));
  TopkArgs args{static_cast<float*>(weights), static_cast<std::int32_t*>(chosen)};
  CGRT_ASSIGN_OR_RETURN(args.logits, trial.input(logits, shift * size_of(desc.type)));
  if (token_count != kNoCount) {
    Bytes bytes(sizeof(token_count));
    std::memcpy(bytes.data(), &token_count, sizeof(token_count));
    CGRT_ASSIGN_OR_RETURN(void* const data, trial.input(bytes));
    args.token_count = static_cast<const std::int32_t*>(data);
  }
  CGRT_RETURN_IF_ERROR(trial.run([&](LaunchTarget target) { return kernels::launch_topk(target, plan, args); }));

  const Bytes found_weights = trial.found(weights), found_chosen = trial.found(chosen);
  for (std::uint64_t token = 0; token < desc.tokens; ++token) {
    const std::vector<double> row = to_doubles(desc.type, logits, token * desc.experts, desc.experts);
    const auto expected = kernels::topk_reference(row, desc.k, desc.weights);
    const bool is_there = token_count == kNoCount || static_cast<std::int64_t>(token) < token_count;
    for (std::uint64_t i = 0; i < desc.k; ++i) {
      const std::size_t at = (token * desc.k + i) * 4;
      std::int32_t expert = 0;
      std::memcpy(&expert, &found_chosen[at], sizeof(expert));
      const double weight = read_element(DType::kFloat32, &found_weights[at]);
      const auto& [want, want_weight] = expected[i];
      if (!is_there && expert == 0x5A5A5A5A) continue;
      const bool is_close =
          std::isnan(want_weight) ? std::isnan(weight) : std::abs(weight - want_weight) <= 4e-6 * want_weight + 1e-37;
      if (is_there && expert == want && is_close) continue;
      return absl::InternalError(absl::StrCat("token ", token, ", choice ", i, ": expected expert ", want, " of ",
                                              want_weight, ", found ", expert, " of ", weight));
    }
  }
  return absl::OkStatus();
}

void check_refusals(Report& report) {
  const auto refuses = [&](const char* text, const TopkDesc& desc) {
    report.check(absl::StrCat("topk refuses: ", text), refused(kernels::plan_topk(kDevice, desc).status(), text));
  };
  refuses("topk: tokens is 0; it can be 1 to 2147483647", {.experts = 8, .k = 2});
  refuses("experts is 513; it can be 1 to 512", {.tokens = 1, .experts = 513, .k = 2});
  refuses("k is 9; it can be 1 to 8", {.tokens = 1, .experts = 8, .k = 9});
  refuses("k is 33; it can be 1 to 32", {.tokens = 1, .experts = 64, .k = 33});
  refuses("k is 0", {.tokens = 1, .experts = 64});
  refuses("int64", {.type = DType::kInt64, .tokens = 1, .experts = 64, .k = 2});

  const absl::StatusOr<TopkPlan> plan = kernels::plan_topk(kDevice, {.tokens = 1, .experts = 4, .k = 2});
  const absl::StatusOr<Trial> trial = Trial::create();
  if (!plan.ok() || !trial.ok()) return report.check("topk plans", absl::InternalError("no plan or no stream"));
  alignas(16) static unsigned char memory[16];
  auto* const weights = reinterpret_cast<float*>(memory);
  auto* const numbers = reinterpret_cast<std::int32_t*>(memory);
  auto* const odd = reinterpret_cast<std::int32_t*>(memory + 2);
  const auto refuses_args = [&](const char* text, const TopkArgs& args) {
    report.check(absl::StrCat("topk refuses: ", text),
                 refused(kernels::launch_topk(trial->stream(), *plan, args), text));
  };
  refuses_args("weights is null", {nullptr, numbers, memory});
  refuses_args("chosen (0x", {weights, odd, memory});
  refuses_args("logits is null", {weights, numbers, nullptr});
  refuses_args("token_count (0x", {weights, numbers, memory, odd});
}

}  // namespace

void check_topk(Report& report) {
  check_refusals(report);
  std::vector<std::uint64_t> tokens{1, 25};
  if (!report.is_simulated()) tokens.insert(tokens.end(), {64, 257, 16384});
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const std::uint64_t experts :
         {1, 2, 5, 8, 9, 15, 16, 17, 31, 32, 33, 60, 64, 65, 128, 129, 160, 256, 257, 384, 511, 512}) {
      for (const std::uint64_t k : {1, 2, 6, 8, 32}) {
        if (k > experts) continue;
        for (const TopkWeights weights : {TopkWeights::kOfAll, TopkWeights::kNormalized}) {
          for (const std::uint64_t count : tokens) {
            const TopkDesc desc{type, count, experts, k, weights};
            const std::string name =
                absl::StrCat("topk ", to_string(type), " ", k, " of ", experts, ", ",
                             weights == TopkWeights::kOfAll ? "of all" : "normalized", ", ", count, " tokens");
            report.check(name, check(desc, 0, kNoCount));
            if (k == 2) report.check(name + ", unaligned", check(desc, 1, kNoCount));
            if (k == 8) report.check(name + ", half", check(desc, 0, static_cast<std::int32_t>(count / 2)));
          }
        }
      }
    }
  }
  for (const std::int32_t count : {-1, 0, 26}) {  // none, none, and more than there can be
    report.check(absl::StrCat("topk of ", count, " tokens"), check({.tokens = 25, .experts = 8, .k = 2}, 0, count));
  }
}

void draw_topk(Draw& draw, Report& report) {
  TopkDesc desc{.type = draw.float_type(), .tokens = draw.size(20000), .experts = draw.size(512)};
  Draw::shrink(draw.max_elements(4), {&desc.tokens, &desc.experts});
  desc.k = draw.size(std::min<std::uint64_t>(desc.experts, 32));
  desc.weights = draw.of({TopkWeights::kOfAll, TopkWeights::kNormalized});
  const std::size_t shift = draw.shift();
  const std::int32_t count = draw.one_in(3) ? draw.count_of(desc.tokens) : kNoCount;
  report.check(absl::StrCat("topk ", to_string(desc.type), " ", desc.k, " of ", desc.experts, ", ", desc.tokens,
                            " tokens, shifted by ", shift, ", count ", count),
               check(desc, shift, count));
}

}  // namespace cgrt::testing
