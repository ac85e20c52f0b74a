// How what a RebindState takes gets to its executable, or to one of its variants.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/exec/variants.h"

namespace cgrt::internal {

using driver::NodeWord;

RebindState::RebindState() = default;
RebindState::RebindState(RebindState&&) noexcept = default;
RebindState::~RebindState() = default;

absl::Status RebindState::set(std::uint32_t node, const CUgraphNodeParams& params, CUgraphExec exec) const {
  CUgraphNodeParams copy = params;
  const absl::Status status = driver::to_status(driver::api().GraphExecNodeSetParams(exec, nodes_[node].handle, &copy),
                                                "cuGraphExecNodeSetParams");
  if (status.ok()) return status;
  const bool has_operands = params.type == CU_GRAPH_NODE_TYPE_MEMCPY || params.type == CU_GRAPH_NODE_TYPE_MEMSET;
  return driver::annotate(
      status, absl::StrCat("Node ", node, " (", describe(nodes_[node]), ")",
                           has_operands ? ". Its operands must be in live memory, of the device or the host as before, "
                                          "and large enough; in two or three dimensions its size stays as it was"
                                        : ""));
}

absl::Status RebindState::set_enabled(std::uint32_t node, bool is_enabled, CUgraphExec exec) const {
  const absl::Status status = driver::to_status(
      driver::api().GraphNodeSetEnabled(exec, nodes_[node].handle, is_enabled ? 1 : 0), "cuGraphNodeSetEnabled");
  if (status.ok()) return status;
  return driver::annotate(status, absl::StrCat("Node ", node, " (", describe(nodes_[node]), ")"));
}

std::vector<RebindState::HostKernel> RebindState::find_host_kernels(const Change& change) const {
  std::vector<HostKernel> kernels = unsettled_;
  if (ABSL_PREDICT_TRUE(set_by_host_.empty())) return kernels;
  for (const auto& [word, value] : change.words) {
    if (!words_[word].is_set_by_host) continue;
    const auto behind =
        std::upper_bound(set_by_host_.begin(), set_by_host_.end(), word,
                         [&](std::uint32_t one, std::uint32_t node) { return one < nodes_[node].first_word; });
    const std::uint32_t node = *std::prev(behind);
    auto known = std::find_if(kernels.begin(), kernels.end(), [&](const HostKernel& one) { return one.node == node; });
    if (known == kernels.end()) known = kernels.insert(known, {.node = node});
    (places_[word].kind == NodeWord::Kind::kEnabled ? known->is_switched : known->is_set) = true;
  }
  return kernels;
}

absl::Status RebindState::set_kernel(const HostKernel& kernel, CUgraphExec exec) const {
  const Node& node = nodes_[kernel.node];
  if (kernel.is_set) {
    const std::vector<Parameter>& parameters = function_of(node).parameters;
    std::vector<unsigned char> bytes(parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes);
    std::vector<void*> arguments;
    arguments.reserve(parameters.size());
    for (const Parameter& parameter : parameters) arguments.push_back(&bytes[parameter.offset]);
    for (std::uint32_t i = node.first_word + kArgumentWords; i < node.first_word + node.word_count; ++i) {
      std::memcpy(&bytes[places_[i].offset], &values_[i], places_[i].bytes);
    }
    const std::uint64_t grid = values_[node.first_word + kGridWord];
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = node.function;
    params.kernel.gridDimX = static_cast<unsigned>(grid);
    params.kernel.gridDimY = static_cast<unsigned>(grid >> 32 & 0xffff);
    params.kernel.gridDimZ = static_cast<unsigned>(grid >> 48);
    params.kernel.blockDimX = node.block.x;
    params.kernel.blockDimY = node.block.y;
    params.kernel.blockDimZ = node.block.z;
    params.kernel.sharedMemBytes = node.shared_bytes;
    params.kernel.kernelParams = arguments.data();
    // Driver 580 crashes when it is given a CUfunction on a thread that has no current context.
    CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(node.context));
    CGRT_RETURN_IF_ERROR(set(kernel.node, params, exec));
  }
  return kernel.is_switched ? set_enabled(kernel.node, is_enabled(node), exec) : absl::OkStatus();
}

absl::Status RebindState::take(Change&& change, CUgraphExec exec) {
  if (ABSL_PREDICT_FALSE(variants_ != nullptr)) return take_in_variant(std::move(change));
  if (change.used.has_value()) CGRT_RETURN_IF_ERROR(resources_.prepare(context_, *change.used, change.over));
  const std::vector<HostKernel> kernels = find_host_kernels(change);
  std::size_t set_count = 0, enabled_count = 0;
  const auto swap_words = [&](auto begin, auto end) {
    for (auto at = begin; at != end; ++at) std::swap(values_[at->first], at->second);
  };
  swap_words(change.words.begin(), change.words.end());
  absl::Cleanup undo = [&] {
    swap_words(change.words.rbegin(), change.words.rend());  // one word may stand there twice
    for (std::size_t i = 0; i < set_count; ++i) {
      const auto& [node, params] = change.params[i];
      OwnedParams& was = params_[nodes_[node].params];
      if (!set(node, was.params, exec).ok()) was = params;  // its memory may be gone: the node has the new ones
    }
    for (std::size_t i = 0; i < enabled_count; ++i) {
      const auto& [node, is_enabled] = change.enabled[i];
      if (!set_enabled(node, !is_enabled, exec).ok()) enabled_[nodes_[node].params] = is_enabled;
    }
    unsettled_.clear();
    for (const HostKernel& kernel : kernels) {
      if (!set_kernel(kernel, exec).ok()) unsettled_.push_back(kernel);
    }
  };
  for (const auto& [node, params] : change.params) {
    CGRT_RETURN_IF_ERROR(set(node, params.params, exec));
    ++set_count;
  }
  for (const auto& [node, is_enabled] : change.enabled) {
    CGRT_RETURN_IF_ERROR(set_enabled(node, is_enabled, exec));
    ++enabled_count;
  }
  for (const HostKernel& kernel : kernels) CGRT_RETURN_IF_ERROR(set_kernel(kernel, exec));
  std::move(undo).Cancel();
  unsettled_.clear();
  for (const auto& [node, params] : change.params) params_[nodes_[node].params] = params;
  for (const auto& [node, is_enabled] : change.enabled) enabled_[nodes_[node].params] = is_enabled;
  for (const auto& [word, was] : change.words) {
    if (!words_[word].is_set_by_host) patches_.set(word, values_[word]);
  }
  if (change.used.has_value()) resources_.replace(*std::move(change.used));
  return absl::OkStatus();
}

absl::Status RebindState::take_in_variant(Change&& change) {
  if (change.used.has_value()) CGRT_RETURN_IF_ERROR(resources_.prepare(context_, *change.used, change.over));
  const auto swap_all = [&] {
    for (auto& [word, value] : change.words) std::swap(values_[word], value);
    for (auto& [node, params] : change.params) std::swap(params_[nodes_[node].params], params);
    for (auto& [node, is_enabled] : change.enabled) {
      const bool was = enabled_[nodes_[node].params];
      enabled_[nodes_[node].params] = std::exchange(is_enabled, was);
    }
  };
  swap_all();
  if (absl::Status status = variants_->take(*this); !status.ok()) {
    std::reverse(change.words.begin(), change.words.end());  // what stands there twice
    std::reverse(change.params.begin(), change.params.end());
    std::reverse(change.enabled.begin(), change.enabled.end());
    swap_all();
    return status;
  }
  if (change.used.has_value()) resources_.replace(*std::move(change.used));
  return absl::OkStatus();
}

absl::Status RebindState::begin(CUgraphExec exec) {
  if (variants_ == nullptr) CGRT_RETURN_IF_ERROR(patches_.disable(exec));
  return take(std::move(at_first_), exec);
}

absl::StatusOr<CUgraphExec> RebindState::before_launch(CUgraphExec exec, StreamRef stream) {
  if (ABSL_PREDICT_FALSE(variants_ != nullptr)) return variants_->before_launch(stream);
  CGRT_RETURN_IF_ERROR(patches_.before_launch(exec, stream));
  return exec;
}

absl::Status RebindState::after_launch(StreamRef stream) {
  CGRT_RETURN_IF_ERROR(variants_ != nullptr ? variants_->after_launch(stream) : patches_.after_launch(stream));
  return resources_.launched(stream);
}

absl::Status RebindState::upload(CUgraphExec exec, StreamRef stream) {
  if (variants_ != nullptr) return variants_->upload(stream);
  return driver::to_status(driver::api().GraphUpload(exec, stream.get()), "cuGraphUpload");
}

CUgraphExec RebindState::current(CUgraphExec exec) const { return variants_ != nullptr ? variants_->current() : exec; }

CUgraphExec RebindState::release(CUgraphExec exec) {
  if (variants_ != nullptr) return variants_->release();
  patches_.disable(exec).IgnoreError();
  return exec;
}

void RebindState::finish() {
  if (variants_ == nullptr) patches_.finish();
}

}  // namespace cgrt::internal
