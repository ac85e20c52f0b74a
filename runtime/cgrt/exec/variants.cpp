#include "cgrt/exec/variants.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/launch_resources.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {
namespace {

absl::StatusOr<std::uint64_t> id_of(StreamRef stream) {
  unsigned long long id = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamGetId(stream.get(), &id), "cuStreamGetId"));
  return id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Variants>> Variants::create(const GraphState& graph, InstantiateFlags flags) {
  std::unique_ptr<Variants> variants(new Variants());
  CGRT_ASSIGN_OR_RETURN(variants->whole_, clone_graph(graph));
  variants->flags_ = flags;
  CGRT_ASSIGN_OR_RETURN(variants->node_count_, count_nodes(graph.handle));
  CGRT_ASSIGN_OR_RETURN(variants->behind_last_, Event::create(graph.context));
  for (const GraphState::Variant& one : graph.variants) {
    CGRT_RETURN_IF_ERROR(variants->add(one.state, one.positions));
  }
  return variants;
}

absl::Status Variants::add(const std::shared_ptr<GraphState>& graph, std::vector<std::uint32_t> nodes) {
  CGRT_ASSIGN_OR_RETURN(RebindState state, RebindState::create(*graph));
  auto variant = std::make_unique<Variant>(std::move(state), std::move(nodes));
  variant->graph = graph;
  for (std::uint32_t i = 0; i < node_count_; ++i) {
    if (!std::binary_search(variant->nodes.begin(), variant->nodes.end(), i)) variant->missing.push_back(i);
  }
  CGRT_ASSIGN_OR_RETURN(const CUgraphExec exec, make_exec(*graph, flags_));
  variant->exec.reset(exec);
  CGRT_RETURN_IF_ERROR(variant->state.begin(exec));
  all_.push_back(std::move(variant));
  return absl::OkStatus();
}

// The one that has the fewest nodes that do not run.
absl::StatusOr<std::size_t> Variants::find(const RebindState& whole) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const std::vector<std::uint32_t>& missing = all_[i]->missing;
    const bool has_all = std::none_of(missing.begin(), missing.end(),
                                      [&](std::uint32_t node) { return whole.is_enabled(whole.nodes()[node]); });
    if (has_all && (!best.has_value() || missing.size() > all_[*best]->missing.size())) best = i;
  }
  if (best.has_value()) return *best;
  std::vector<std::uint32_t> nodes(node_count_);
  std::iota(nodes.begin(), nodes.end(), 0u);
  const RelaxedCaptureMode relaxed;  // device memory is allocated, which would end captures
  CGRT_RETURN_IF_ERROR(relaxed.status());
  CGRT_RETURN_IF_ERROR(add(whole_, std::move(nodes)));
  return all_.size() - 1;
}

absl::Status Variants::take(const RebindState& whole) {
  CGRT_ASSIGN_OR_RETURN(const std::size_t found, find(whole));
  Variant& variant = *all_[found];
  CGRT_RETURN_IF_ERROR(variant.state.take(variant.state.change_to(whole, variant.nodes), variant.exec.get()));
  current_ = found;
  return absl::OkStatus();
}

absl::StatusOr<CUgraphExec> Variants::before_launch(StreamRef stream) {
  Variant& variant = *all_[current_];
  if (last_.has_value() && last_->variant != current_) {
    CGRT_ASSIGN_OR_RETURN(const std::uint64_t id, id_of(stream));
    CGRT_ASSIGN_OR_RETURN(const bool is_capturing, stream.is_capturing());  // then the launch is refused
    if (id != last_->stream && !is_capturing) CGRT_RETURN_IF_ERROR(stream.wait(behind_last_.ref()));
  }
  return variant.state.before_launch(variant.exec.get(), stream);
}

absl::Status Variants::after_launch(StreamRef stream) {
  CGRT_RETURN_IF_ERROR(record_last(behind_last_, stream));
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t id, id_of(stream));
  last_ = Launched{current_, id};
  return all_[current_]->state.after_launch(stream);
}

absl::Status Variants::upload(StreamRef stream) {
  for (const std::unique_ptr<Variant>& variant : all_) {
    CGRT_RETURN_IF_ERROR(variant->state.upload(variant->exec.get(), stream));
  }
  return absl::OkStatus();
}

CUgraphExec Variants::release() {
  Variant& variant = *all_[current_];
  variant.state.release(variant.exec.get());
  return variant.exec.release();
}

}  // namespace cgrt::internal
