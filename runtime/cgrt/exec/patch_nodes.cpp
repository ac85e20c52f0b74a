#include "cgrt/exec/patch_nodes.h"

#include <algorithm>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/scope.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {
namespace {

using driver::NodeWord;

// As many blocks as the list can fill: the grid of a patch node changes with its kernel only, since a host's change of
// a grid costs 1 us at the next launch (H200).
template <std::size_t kCapacity>
KernelLaunch patch_launch(void** arguments) {
  constexpr std::uint32_t kBlocks = (kCapacity + kPatchBlock - 1) / kPatchBlock;
  return {patch_kernel<kCapacity>().identity(), Dim3(kBlocks), Dim3(kPatchBlock), 0, arguments};
}

KernelLaunch patch_launch_of(std::size_t count, void** arguments) {
  constexpr const auto& kCapacities = kPatchCapacities;
  return count <= kCapacities[0]   ? patch_launch<kCapacities[0]>(arguments)
         : count <= kCapacities[1] ? patch_launch<kCapacities[1]>(arguments)
         : count <= kCapacities[2] ? patch_launch<kCapacities[2]>(arguments)
         : count <= kCapacities[3] ? patch_launch<kCapacities[3]>(arguments)
                                   : patch_launch<kCapacities[4]>(arguments);
}

std::size_t lists_for(std::size_t words) { return (words + kMaxPatches - 1) / kMaxPatches; }

absl::StatusOr<std::vector<CUgraphNode>> roots_of(CUgraph graph) {
  std::size_t count = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetRootNodes(graph, nullptr, &count), "cuGraphGetRootNodes"));
  std::vector<CUgraphNode> roots(count);
  if (count == 0) return roots;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphGetRootNodes(graph, roots.data(), &count), "cuGraphGetRootNodes"));
  return roots;
}

}  // namespace

absl::Status PatchNodes::add_to(GraphState& graph, const std::vector<NodeWord>& words) {
  context_ = graph.context;
  places_.resize(words.size());
  if (words.empty()) return absl::OkStatus();
  std::vector<CUgraphNode>& nodes = graph.patch_nodes;
  const Scope scope("rebinding");
  PatchList<kPatchCapacities[0]> nothing{};
  void* arguments[] = {&nothing};
  while (nodes.size() < lists_for(words.size())) {
    const Dependency before(KernelNode(nodes.empty() ? nullptr : nodes.back()));
    CGRT_ASSIGN_OR_RETURN(const KernelNode node, add_kernel(graph, Dependencies(&before, nodes.empty() ? 0 : 1),
                                                            patch_launch_of(0, arguments)));
    nodes.push_back(node.get());
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> roots, roots_of(graph.handle));
  for (CUgraphNode root : roots) {
    if (root == nodes.front()) continue;
    CGRT_RETURN_IF_ERROR(driver::to_status(
        driver::api().GraphAddDependencies(graph.handle, &nodes.back(), &root, nullptr, 1), "cuGraphAddDependencies"));
  }
  nodes_ = nodes;
  enabled_ = nodes_.size();  // as all nodes of an executable are when it is made
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<DeviceBuffer>> PatchNodes::upload_words(const std::vector<NodeWord>& words) {
  if (words.empty()) return nullptr;
  const std::size_t bytes = words.size() * sizeof(NodeWord);
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(context_, bytes));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(context_));
  CGRT_RETURN_IF_ERROR(copy(stream, buffer.data(), words.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  words_on_device_ = buffer.as<const NodeWord>();
  return std::make_shared<DeviceBuffer>(std::move(buffer));
}

void PatchNodes::set(std::uint32_t word, std::uint64_t value) {
  std::uint32_t& place = places_[word];
  if (place >= pending_count_ || pending(place).word != word) {
    place = static_cast<std::uint32_t>(pending_count_++);
    if (place / kMaxPatches == pending_.size()) pending_.push_back(std::make_unique<PendingList>());
  }
  pending(place) = {word, static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  is_loaded_ = false;
}

absl::Status PatchNodes::set_enabled(CUgraphExec exec, std::size_t i, bool is_enabled) {
  return driver::to_status(driver::api().GraphNodeSetEnabled(exec, nodes_[i], is_enabled ? 1 : 0),
                           "cuGraphNodeSetEnabled");
}

absl::Status PatchNodes::load_list(CUgraphExec exec, std::size_t i) {
  PendingList& list = *pending_[i];
  list.words = words_on_device_;
  list.count = static_cast<std::uint32_t>(std::min(pending_count_ - i * kMaxPatches, kMaxPatches));
  void* arguments[] = {&list};
  KernelNodeParams params;
  CGRT_RETURN_IF_ERROR(set_kernel_params(params, context_, patch_launch_of(list.count, arguments)));
  return driver::to_status(driver::api().GraphExecKernelNodeSetParams(exec, nodes_[i], &params.driver),
                           "cuGraphExecKernelNodeSetParams");
}

absl::Status PatchNodes::load_lists(CUgraphExec exec) {
  const std::size_t wanted = lists_for(pending_count_);
  for (std::size_t i = 0; i < wanted; ++i) {
    CGRT_RETURN_IF_ERROR(load_list(exec, i));
    if (i < enabled_) continue;
    CGRT_RETURN_IF_ERROR(set_enabled(exec, i, true));
    ++enabled_;
  }
  while (enabled_ > wanted) {
    CGRT_RETURN_IF_ERROR(set_enabled(exec, enabled_ - 1, false));
    --enabled_;
  }
  is_loaded_ = true;
  return absl::OkStatus();
}

}  // namespace cgrt::internal
