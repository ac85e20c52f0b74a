#include "cgrt/exec/exec_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

using Path = std::vector<std::size_t>;

bool is_inside(const Path& path, const Path& outer) {
  return path.size() > outer.size() && std::equal(outer.begin(), outer.end(), path.begin());
}

// The first node that either list has alone, or with attributes that an update would lose.
std::optional<internal::LostAttributes> find_lost(const std::vector<internal::NodeAttributes>& ours,
                                                  const std::vector<internal::NodeAttributes>& theirs) {
  constexpr LaunchAttributes kNone;
  const auto is_lost = [](const LaunchAttributes& a, const LaunchAttributes& b) {
    return !internal::are_interchangeable(a, b);
  };
  std::size_t i = 0, j = 0;
  while (i < ours.size() || j < theirs.size()) {
    const bool is_ours = j == theirs.size() || (i < ours.size() && ours[i].path < theirs[j].path);
    const bool is_theirs = i == ours.size() || (j < theirs.size() && theirs[j].path < ours[i].path);
    if (is_ours) {
      if (is_lost(ours[i].attributes, kNone)) return internal::LostAttributes{ours[i].path, ours[i].attributes, kNone};
      ++i;
    } else if (is_theirs) {
      if (is_lost(kNone, theirs[j].attributes)) {
        return internal::LostAttributes{theirs[j].path, kNone, theirs[j].attributes};
      }
      ++j;
    } else {
      if (is_lost(ours[i].attributes, theirs[j].attributes)) {
        return internal::LostAttributes{theirs[j].path, ours[i].attributes, theirs[j].attributes};
      }
      ++i, ++j;
    }
  }
  return std::nullopt;
}

}  // namespace

void internal::destroy_exec(CUgraphExec exec) {
  const RelaxedCaptureMode relaxed;
  driver::destroy_graph_exec(exec);
}

absl::Status GraphExec::State::read_definition(const Graph& graph) {
  definition = graph.state();
  CGRT_ASSIGN_OR_RETURN(node_count, internal::count_nodes(definition->handle));
  edits = definition->edits_of(node_count);
  is_complete = definition->knowledge.is_complete();
  const bool has_insides = !definition->children.empty() || !definition->conditionals.empty();
  if (is_complete && (!definition->knowledge.is_empty() || has_insides)) {
    CGRT_ASSIGN_OR_RETURN(table, internal::node_table(*definition));
  }
  return absl::OkStatus();
}

absl::Status GraphExec::State::complete_table() {
  if (is_complete) return absl::OkStatus();
  // The graph completes it before it grows, so its driver graph is not read beside its owner's calls.
  CGRT_RETURN_IF_ERROR(definition->knowledge.complete(definition->handle));
  table = definition->knowledge.first_table();
  internal::drop_from(table, node_count);
  is_complete = true;
  return absl::OkStatus();
}

absl::Status GraphExec::State::check_attributes(CUgraphNode node, const KernelLaunch& launch,
                                                const Dim3& compiled_cluster) {
  CGRT_RETURN_IF_ERROR(complete_table());
  const auto found = std::find_if(table.attributes.begin(), table.attributes.end(),
                                  [&](const internal::NodeAttributes& one) { return one.node == node; });
  const LaunchAttributes was = found != table.attributes.end() ? found->attributes : LaunchAttributes{};
  return internal::check_attributes(was, launch, compiled_cluster, definition->context,
                                    internal::NodeOwner::kExecutable);
}

absl::StatusOr<const internal::RebindState::Node*> GraphExec::State::find_kernel(KernelNode node) const {
  if (rebind == nullptr) return internal::not_rebindable();
  const internal::RebindState::Node* const kernel = rebind->find(node.get());
  if (kernel != nullptr && kernel->type == CU_GRAPH_NODE_TYPE_KERNEL) return kernel;
  return driver::annotate(
      driver::make_status(CUDA_ERROR_INVALID_VALUE, "cuGraphExecKernelNodeSetParams", "would return"),
      "The node is no kernel of this executable");
}

absl::Status GraphExec::State::set_rebindable(CUgraphNode node, const KernelLaunch& launch) {
  const absl::StatusOr<const internal::RebindState::Node*> kernel = find_kernel(KernelNode(node));
  if (!kernel.ok()) {
    return driver::annotate(kernel.status(), absl::StrCat("Kernel \"", launch.kernel->name, "\""));
  }
  internal::RebindState::Change change;
  CGRT_RETURN_IF_ERROR(rebind->change_kernel(**kernel, launch, change));
  CGRT_RETURN_IF_ERROR(take(std::move(change)));
  ++counts.set;
  return absl::OkStatus();
}

absl::Status GraphExec::State::take(internal::RebindState::Change&& change) {
  CGRT_RETURN_IF_ERROR(rebind->take(std::move(change), handle.get()));
  return ABSL_PREDICT_TRUE(guard == nullptr) ? absl::OkStatus() : guard->follow(*rebind);
}

absl::Status GraphExec::State::set(CUgraphNode node, CUgraphNodeParams& params) {
  const internal::RebindState::Node* const known = rebind != nullptr ? rebind->find(node) : nullptr;
  if (known != nullptr && known->type == params.type) {
    internal::RebindState::Change change;
    rebind->change_params(*known, params, change);
    CGRT_RETURN_IF_ERROR(take(std::move(change)));
  } else {
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphExecNodeSetParams(current(), node, &params), "cuGraphExecNodeSetParams"));
  }
  ++counts.set;
  return ABSL_PREDICT_TRUE(guard == nullptr) || known != nullptr ? absl::OkStatus() : guard->set(node, params);
}

void GraphExec::State::set_child_attributes(CUgraphNode node, std::vector<internal::NodeAttributes> inside) {
  const std::vector<internal::ChildNode>& children = table.children;
  const auto child =
      std::find_if(children.begin(), children.end(), [&](const internal::ChildNode& one) { return one.node == node; });
  if (child == children.end()) return;
  std::erase_if(table.attributes,
                [&](const internal::NodeAttributes& one) { return is_inside(one.path, child->path); });
  for (internal::NodeAttributes& one : inside) {
    one.path.insert(one.path.begin(), child->path.begin(), child->path.end());
    const Path outer(one.path.begin(), one.path.end() - 1);
    const auto around = std::find_if(children.begin(), children.end(),
                                     [&](const internal::ChildNode& other) { return other.path == outer; });
    one.node = around != children.end() ? around->inside[one.path.back()] : nullptr;
    table.attributes.push_back(std::move(one));
  }
  std::sort(table.attributes.begin(), table.attributes.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
}

absl::Status GraphExec::State::update(const Graph& other, std::optional<UpdateReport>& refusal) {
  if (ABSL_PREDICT_FALSE(!is_plain() || !internal::is_known_plain(*other.state()))) {
    CGRT_RETURN_IF_ERROR(complete_table());
    CGRT_ASSIGN_OR_RETURN(const std::vector<internal::NodeAttributes> theirs, internal::attributes_in(*other.state()));
    if (const auto lost = find_lost(table.attributes, theirs); lost.has_value()) {
      refusal = internal::attributes_lost(*lost, other.ref().get());
      return absl::OkStatus();
    }
  }
  std::optional<internal::AddressGuard> addresses;
  if (ABSL_PREDICT_FALSE(guard != nullptr)) {
    CGRT_ASSIGN_OR_RETURN(addresses, internal::AddressGuard::create(*other.state()));
  }
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = driver::api().GraphExecUpdate(handle.get(), other.ref().get(), &info);
  if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) {
    if (ABSL_PREDICT_FALSE(addresses.has_value())) guard->take(*std::move(addresses));
    return absl::OkStatus();
  }
  if (result != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) return driver::to_status(result, "cuGraphExecUpdate");
  refusal = internal::refused_by_driver(info, node_count, other.ref().get());
  return absl::OkStatus();
}

void internal::UsedLibraries::set(CUgraphNode node, const std::shared_ptr<const void>& library) {
  const auto is_known = [&](const std::shared_ptr<const void>& one) {
    return std::find(distinct_.begin(), distinct_.end(), one) != distinct_.end();
  };
  const std::shared_ptr<const void> before = std::exchange(by_node_[node], library);
  if (library == nullptr) by_node_.erase(node);
  if (before == library || (before == nullptr && is_known(library))) return;
  distinct_.clear();
  for (const auto& [any, one] : by_node_) {
    if (!is_known(one)) distinct_.push_back(one);
  }
  uses_.replace(distinct_);
}

void GraphExec::State::swap(State& other) {
  std::swap(handle, other.handle);
  std::swap(definition, other.definition);
  std::swap(node_count, other.node_count);
  std::swap(edits, other.edits);
  std::swap(is_complete, other.is_complete);
  std::swap(table, other.table);
  std::swap(rebind, other.rebind);
  std::swap(libraries, other.libraries);
  std::swap(guard, other.guard);
}

}  // namespace cgrt
