#include "chain.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/memory/copy.h"

namespace {

constexpr std::int64_t kRotating = 4;

// Values in [1, 2), different in neighbouring elements.
std::uint32_t source_bits(std::size_t i) { return 0x3F800000u | ((static_cast<std::uint32_t>(i) * 2654435761u) >> 9); }

// Neither is a power of two, so every node rounds and leaves its mark; their product is near 1, so
// 10,000 of them stay in range.
float alpha_of(std::int64_t node) { return node % 2 == 0 ? 1.1f : 0.90909f; }

}  // namespace

absl::StatusOr<Chain> Chain::create(cgrt::DeviceRef device, cgrt::StreamRef stream, std::int64_t nodes,
                                    std::int64_t bytes) {
  const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(float);
  CGRT_ASSIGN_OR_RETURN(cgrt::kernels::ElementwisePlan plan,
                        cgrt::kernels::plan_elementwise(device, {cgrt::kernels::ElementwiseOp::kScale, count}));
  Chain chain(plan, nodes);
  for (std::int64_t i = 0; i < 1 + std::min(nodes, kRotating); ++i) {
    CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer buffer, cgrt::DeviceBuffer::create(device, count * sizeof(float)));
    chain.buffers_.push_back(std::move(buffer));
  }
  std::vector<std::uint32_t> source(count);
  for (std::size_t i = 0; i < count; ++i) source[i] = source_bits(i);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, chain.buffers_[0].data(), source.data(), count * sizeof(float)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return chain;
}

float* Chain::output_of(std::int64_t node) const {
  return buffers_[static_cast<std::size_t>(1 + node % kRotating)].as<float>();
}

absl::Status Chain::step(cgrt::LaunchTarget target) const {
  const float* input = buffers_[0].as<float>();
  for (std::int64_t node = 0; node < nodes_; ++node) {
    float* output = output_of(node);
    CGRT_RETURN_IF_ERROR(
        cgrt::kernels::launch_elementwise(target, plan_, {.out = output, .a = input, .alpha = alpha_of(node)}));
    input = output;
  }
  return absl::OkStatus();
}

absl::Status Chain::poison(cgrt::StreamRef stream) const {
  for (std::size_t i = 1; i < buffers_.size(); ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, buffers_[i].data(), 0xFFFFFFFFu, plan_.desc.count));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint32_t>> Chain::read_result(cgrt::StreamRef stream) const {
  std::vector<std::uint32_t> result(plan_.desc.count);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, result.data(), output_of(nodes_ - 1), result.size() * sizeof(float)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return result;
}

absl::Status Chain::check_on_host(const std::vector<std::uint32_t>& result) const {
  const std::size_t stride = std::max<std::size_t>(1, result.size() / 1024);
  for (std::size_t i = 0; i < result.size(); i += stride) {
    float expected = std::bit_cast<float>(source_bits(i));
    for (std::int64_t node = 0; node < nodes_; ++node) expected *= alpha_of(node);
    if (std::bit_cast<std::uint32_t>(expected) == result[i]) continue;
    return absl::DataLossError(
        absl::StrCat("element ", i, " is ", std::bit_cast<float>(result[i]), ", on the host ", expected));
  }
  return absl::OkStatus();
}
