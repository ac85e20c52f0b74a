#include "cgrt/exec/patches.h"

#include <algorithm>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/launch_resources.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"
#include "cgrt/stream/keep.h"

namespace cgrt::internal {
namespace {

using driver::NodeWord;

template <std::size_t kCapacity, class Use>
absl::Status with_launch(PatchList<kMaxPatches>& list, Use use) {
  void* arguments[] = {&list};
  return use(KernelLaunch{patch_kernel<kCapacity>().identity(),
                          Dim3(std::max(1u, (list.count + kPatchesPerBlock - 1) / kPatchesPerBlock)), Dim3(kPatchBlock),
                          0, arguments});
}

// The launch of the patch kernel for lists of that length.
template <class Use>
absl::Status with_launch_of(PatchList<kMaxPatches>& list, Use use) {
  constexpr const auto& kCapacities = kPatchCapacities;
  return list.count <= kCapacities[0]   ? with_launch<kCapacities[0]>(list, use)
         : list.count <= kCapacities[1] ? with_launch<kCapacities[1]>(list, use)
         : list.count <= kCapacities[2] ? with_launch<kCapacities[2]>(list, use)
         : list.count <= kCapacities[3] ? with_launch<kCapacities[3]>(list, use)
                                        : with_launch<kCapacities[4]>(list, use);
}

}  // namespace

absl::Status Patches::add_to(GraphState& graph, const std::vector<NodeWord>& words) {
  context_ = graph.context;
  places_.resize(words.size());
  const auto count = static_cast<std::size_t>(
      std::count_if(words.begin(), words.end(), [](const NodeWord& word) { return word.node != nullptr; }));
  if (count == 0) return absl::OkStatus();
  const std::size_t bytes = words.size() * sizeof(NodeWord);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(context_, bytes));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(context_));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), words.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  words_ = std::make_shared<DeviceBuffer>(std::move(buffer));
  CGRT_ASSIGN_OR_RETURN(last_taken_, Event::create(context_));
  return add_nodes(graph, (count + kMaxPatches - 1) / kMaxPatches);
}

absl::Status Patches::add_nodes(GraphState& graph, std::size_t count) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph.handle));
  std::vector<CUgraphNode>& patches = graph.patch_nodes;
  auto none = std::make_unique<PendingList>();
  while (patches.size() < count) {
    CGRT_RETURN_IF_ERROR(with_launch_of(*none, [&](const KernelLaunch& launch) -> absl::Status {
      absl::InlinedVector<Dependency, 1> before;
      if (!patches.empty()) before.push_back(Dependency(NodeRef(patches.back())));
      CGRT_ASSIGN_OR_RETURN(const KernelNode node, add_kernel(graph, before, launch));
      patches.push_back(node.get());
      return absl::OkStatus();
    }));
  }
  const auto is_patch = [&](CUgraphNode node) {
    return std::find(patches.begin(), patches.end(), node) != patches.end();
  };
  for (CUgraphNode node : nodes) {
    Edges before;
    CGRT_RETURN_IF_ERROR(add_edges_to(node, before));
    const bool is_first = std::all_of(before.from.begin(), before.from.end(), is_patch);
    const bool is_behind = std::find(before.from.begin(), before.from.end(), patches.back()) != before.from.end();
    if (is_first && !is_behind && !is_patch(node)) {
      CGRT_RETURN_IF_ERROR(add_edge(graph, NodeRef(patches.back()), node));
    }
  }
  for (CUgraphNode node : patches) nodes_.push_back({node});
  return absl::OkStatus();
}

void Patches::set(std::uint32_t word, std::uint64_t value) {
  std::uint32_t& place = places_[word];
  if (place >= pending_count_ || pending(place).word != word) {
    place = static_cast<std::uint32_t>(pending_count_++);
    if (place / kMaxPatches == pending_.size()) pending_.push_back(std::make_unique<PendingList>());
  }
  pending(place) = {word, static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  is_ready_ = is_sent_ = false;
}

absl::Status Patches::set_list(CUgraphExec exec, std::size_t i) {
  PendingList& list = *pending_[i];
  list.words = words_->as<const NodeWord>();
  list.count = static_cast<std::uint32_t>(std::min(pending_count_ - i * kMaxPatches, kMaxPatches));
  return with_launch_of(list, [&](const KernelLaunch& launch) -> absl::Status {
    KernelNodeParams params;
    CGRT_RETURN_IF_ERROR(set_kernel_params(params, context_, launch));
    return driver::to_status(driver::api().GraphExecKernelNodeSetParams(exec, nodes_[i].handle, &params.driver),
                             "cuGraphExecKernelNodeSetParams");
  });
}

// CUDA wants that of an executable before its nodes are changed; a launch that changes its own is too late.
absl::Status Patches::upload(CUgraphExec exec, StreamRef stream) {
  CGRT_ASSIGN_OR_RETURN(const bool is_capturing, stream.is_capturing());
  if (is_capturing) return absl::OkStatus();  // which takes no launch either
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphUpload(exec, stream.get()), "cuGraphUpload"));
  is_uploaded_ = true;
  return absl::OkStatus();
}

absl::Status Patches::make_ready(CUgraphExec exec) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const bool is_used = i * kMaxPatches < pending_count_;
    if (is_used && !is_sent_) CGRT_RETURN_IF_ERROR(set_list(exec, i));
    if (nodes_[i].is_enabled == is_used) continue;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeSetEnabled(exec, nodes_[i].handle, is_used ? 1 : 0),
                                           "cuGraphNodeSetEnabled"));
    nodes_[i].is_enabled = is_used;
  }
  is_ready_ = is_sent_ = true;
  return absl::OkStatus();
}

absl::Status Patches::note_taken(StreamRef stream) {
  pending_count_ = 0;
  is_ready_ = false;  // what took them over is to be disabled
  return record_last(last_taken_, stream);
}

void Patches::finish() {
  if (words_ != nullptr) keep_until(std::move(last_taken_), std::move(words_));
}

absl::Status Patches::disable(CUgraphExec exec) {
  pending_count_ = 0;
  is_ready_ = false;
  return make_ready(exec);
}

}  // namespace cgrt::internal
