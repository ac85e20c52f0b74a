#include "runner.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/graph/alternatives.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/cursor.h"

const char* to_string(Way way) {
  switch (way) {
    case Way::kEager: return "eager";
    case Way::kCaptured: return "captured";
    case Way::kExplicit: return "explicit";
    case Way::kUpdated: return "updated";
    case Way::kRebound: return "rebound";
  }
  return "unknown";
}

absl::StatusOr<cgrt::Graph> Runner::record(const MlpPlan& plan) const {
  if (way_ != Way::kExplicit) {
    return cgrt::capture(stream_, [&](cgrt::StreamRef stream) { return mlp_step(stream, plan, arrays_); });
  }
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(device_));
  CGRT_RETURN_IF_ERROR(mlp_step(graph.cursor(), plan, arrays_));
  return graph;
}

absl::Status Runner::launch_own(const MlpPlan& plan) {
  auto exec = execs_.find(plan.tokens);
  if (exec == execs_.end()) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::Graph graph, record(plan));
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec made, cgrt::instantiate(graph));
    ++counts_.instantiated;
    exec = execs_.emplace(plan.tokens, std::move(made)).first;
  }
  return exec->second.launch(stream_);
}

// Products of other sizes are other kernels of cuBLASLt, often with other clusters, which an update cannot change:
// it is refused then, and where a product is split and has a second kernel that adds.
absl::Status Runner::launch_updated(const MlpPlan& plan) {
  auto graph = graphs_.find(plan.tokens);
  if (graph == graphs_.end()) {
    CGRT_ASSIGN_OR_RETURN(cgrt::Graph recorded, record(plan));
    graph = graphs_.emplace(plan.tokens, std::move(recorded)).first;
  }
  if (!one_.has_value()) {
    CGRT_ASSIGN_OR_RETURN(one_, cgrt::instantiate(graph->second));
    ++counts_.instantiated;
  } else {
    CGRT_ASSIGN_OR_RETURN(const cgrt::UpdateReport report, one_->update_or_instantiate(graph->second));
    if (report.rung == cgrt::UpdateRung::kWholeGraph) {
      ++counts_.updated;
    } else {
      ++counts_.instantiated;
      ++counts_.refusals[absl::StrCat("from ", updated_tokens_, " to ", plan.tokens, " tokens: ", report.text)];
    }
  }
  updated_tokens_ = plan.tokens;
  return one_->launch(stream_);
}

absl::StatusOr<cgrt::GraphExec> Runner::instantiate_for_all() const {
  std::vector<const MlpPlan*> plans;
  for (const auto& [tokens, plan] : plans_) plans.push_back(&plan);
  const auto step = [&](cgrt::LaunchTarget target, std::size_t i) { return mlp_step(target, *plans[i], arrays_); };
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::build_alternatives(device_, plans.size(), step));
  return cgrt::instantiate_rebindable(graph);
}

absl::Status Runner::launch_rebound(const MlpPlan& plan) {
  if (!one_.has_value()) {
    CGRT_ASSIGN_OR_RETURN(one_, instantiate_for_all());
    ++counts_.instantiated;
  }
  auto binding = bindings_.find(plan.tokens);
  if (binding == bindings_.end()) {
    const auto step = [&](cgrt::LaunchTarget target) { return mlp_step(target, plan, arrays_); };
    CGRT_ASSIGN_OR_RETURN(cgrt::Binding prepared, one_->prepare(step));
    binding = bindings_.emplace(plan.tokens, std::move(prepared)).first;
  }
  CGRT_RETURN_IF_ERROR(one_->rebind(binding->second));
  ++counts_.updated;
  return one_->launch(stream_);
}

absl::Status Runner::step(std::uint64_t tokens) {
  const MlpPlan& plan = plans_.at(tokens);
  switch (way_) {
    case Way::kEager: return mlp_step(stream_, plan, arrays_);
    case Way::kCaptured:
    case Way::kExplicit: return launch_own(plan);
    case Way::kUpdated: return launch_updated(plan);
    case Way::kRebound: break;
  }
  return launch_rebound(plan);
}
