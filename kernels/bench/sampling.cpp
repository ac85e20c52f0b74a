#include "cgrt_kernels/sampling/sampling.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <memory>
#include <random>

#include "cgrt/base/status_macros.h"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

using kernels::DType;
using kernels::RandomState;
using kernels::SamplingDesc;
using kernels::SamplingOp;
using kernels::SamplingPlan;

// Normally distributed, as logits are; they repeat after a million.
absl::StatusOr<DeviceBuffer> make_logits(StreamRef stream, DType type, std::uint64_t count, std::uint32_t seed) {
  constexpr std::uint64_t kPeriod = 1000003;
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<unsigned char> numbers(kPeriod * size_of(type));
  for (std::uint64_t i = 0; i < kPeriod; ++i) {
    const float number = normal(engine);
    switch (type) {
      case DType::kFloat16: reinterpret_cast<__half*>(numbers.data())[i] = __float2half(number); break;
      case DType::kBFloat16: reinterpret_cast<__nv_bfloat16*>(numbers.data())[i] = __float2bfloat16(number); break;
      default: reinterpret_cast<float*>(numbers.data())[i] = number; break;
    }
  }
  const std::uint64_t bytes = count * size_of(type);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, bytes));
  for (std::uint64_t at = 0; at < bytes; at += numbers.size()) {
    const std::size_t part = std::min<std::uint64_t>(numbers.size(), bytes - at);
    CGRT_RETURN_IF_ERROR(copy(stream, buffer.as<unsigned char>() + at, numbers.data(), part));
  }
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

template <class T>
absl::StatusOr<DeviceBuffer> make_filled(StreamRef stream, std::uint64_t count, T value) {
  const std::vector<T> values(count, value);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(kDevice, count * sizeof(T)));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), values.data(), count * sizeof(T)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return buffer;
}

struct Set {
  DeviceBuffer token, logits, top_k, top_p, state, row_count, workspace;
};

}  // namespace

// rows, vocabulary; of sample_filtered top_k, 0 for all, and top_p in hundredths; count: the rows on the device of a
// plan for `rows`
absl::StatusOr<Work> make_sampling(const Case& test) {
  SamplingDesc desc{.type = test.type};
  if (test.kernel == "sample_random") {
    desc.op = SamplingOp::kRandom;
  } else if (test.kernel == "sample_filtered") {
    desc.op = SamplingOp::kFiltered;
  } else if (test.kernel != "sample_greedy") {
    return absl::NotFoundError("");
  }
  CGRT_ASSIGN_OR_RETURN(desc.rows, test.size("rows"));
  CGRT_ASSIGN_OR_RETURN(desc.vocabulary, test.size("vocabulary"));
  const auto top_k = static_cast<std::int32_t>(test.size_or("top_k", 0));
  const float top_p = static_cast<float>(test.size_or("top_p", 100)) / 100;
  CGRT_ASSIGN_OR_RETURN(const SamplingPlan plan, plan_sampling(kDevice, desc));
  const std::uint64_t rows = std::min(test.size_or("count", desc.rows), desc.rows), count = rows * desc.vocabulary;
  const bool has_count = test.sizes.contains("count");
  const auto make = [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer token, DeviceBuffer::create(kDevice, desc.rows * 4));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer logits, make_logits(stream, desc.type, count, seed));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer k, make_filled(stream, desc.rows, top_k));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer p, make_filled(stream, desc.rows, top_p));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer state, make_filled(stream, 1, RandomState{.seed = seed}));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer row_count, make_filled(stream, 1, static_cast<std::int32_t>(rows)));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(stream, plan.workspace_bytes));
    const auto set = std::make_shared<Set>(Set{std::move(token), std::move(logits), std::move(k), std::move(p),
                                               std::move(state), std::move(row_count), std::move(workspace)});
    return [=](LaunchTarget target) {
      return launch_sampling(target, plan,
                             {.token = set->token.data(),
                              .logits = set->logits.data(),
                              .top_k = set->top_k.as<std::int32_t>(),
                              .top_p = set->top_p.as<float>(),
                              .state = set->state.as<RandomState>(),
                              .row_count = has_count ? set->row_count.as<std::int32_t>() : nullptr,
                              .workspace = workspace_in(set->workspace)});
    };
  };
  return Work{count * size_of(desc.type), make};
}

}  // namespace cgrt::bench
