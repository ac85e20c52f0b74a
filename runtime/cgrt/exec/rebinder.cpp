#include "cgrt/exec/rebinder.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/memory/external_semaphore.h"
#include "cgrt/memory/memory_op.h"

namespace cgrt::internal {

absl::Status Rebinder::fail(const absl::Status& status) {
  const absl::Status told = driver::prefix(status, absl::StrCat("Call ", calls_, " of the rebound step"));
  if (failure_.ok()) failure_ = told;
  return told;
}

absl::Status Rebinder::refuse(const absl::Status& status) {
  ++calls_;
  return fail(status);
}

absl::StatusOr<const RebindState::Node*> Rebinder::next(CUgraphNodeType type, const std::string& call) {
  const std::vector<RebindState::Node>& nodes = state_.nodes();
  if (ABSL_PREDICT_FALSE(position_ == nodes.size())) {
    return fail(absl::FailedPreconditionError(absl::StrCat("This is ", call, ", and the executable has only ",
                                                           counted(nodes.size(), "node"), " that calls made.")));
  }
  const RebindState::Node& node = nodes[position_++];
  if (ABSL_PREDICT_FALSE(node.type != type)) {
    return fail(absl::FailedPreconditionError(
        absl::StrCat("The node is ", state_.describe(node), ", and this is ", call, ".")));
  }
  return &node;
}

absl::Status Rebinder::leave_out(std::size_t until) {
  for (; position_ < until; ++position_) {
    const RebindState::Node& node = state_.nodes()[position_];
    if (!can_be_left_out(node.type)) {
      return fail(absl::FailedPreconditionError(absl::StrCat("The step leaves out node ", position_, " (",
                                                             state_.describe(node),
                                                             "), and only kernels and copies can be left out.")));
    }
    state_.change_enabled(node, false, change_);
  }
  return absl::OkStatus();
}

absl::StatusOr<const RebindState::Node*> Rebinder::meet(absl::StatusOr<const RebindState::Node*> found,
                                                        const std::string& call) {
  if (ABSL_PREDICT_FALSE(!found.ok())) return fail(found.status());
  const RebindState::Node* const node = *found;
  if (ABSL_PREDICT_FALSE(node == nullptr)) {
    return fail(absl::FailedPreconditionError(absl::StrCat(
        "This is ", call, ", and from node ", position_,
        " on the executable has none that can be it: none of the steps that its graph was built from has "
        "this call here, with this block, shared memory and attributes, or between these kinds of memory.")));
  }
  CGRT_RETURN_IF_ERROR(leave_out(state_.id_of(*node)));
  state_.change_enabled(*node, true, change_);
  ++position_;
  return node;
}

absl::Status Rebinder::finish() {
  if (!failure_.ok()) return failure_;
  const std::vector<RebindState::Node>& nodes = state_.nodes();
  if (state_.has_alternatives()) {
    return leave_out(nodes.size());
  }
  if (position_ != nodes.size()) {
    return absl::FailedPreconditionError(absl::StrCat("The rebound step made ", counted(calls_, "call"),
                                                      " and the executable has ", counted(nodes.size(), "node"),
                                                      " that calls made: the first without a call is node ", position_,
                                                      " (", state_.describe(nodes[position_]), ")."));
  }
  return absl::OkStatus();
}

absl::Status Rebinder::add_kernel(const KernelLaunch& launch, EdgeKind) {
  if (ABSL_PREDICT_FALSE(!failure_.ok())) return failure_;
  ++calls_;
  const RebindState::Node* node = nullptr;
  // The text is made for failures alone: this is called a thousand times.
  const auto call = [&] { return absl::StrCat("kernel \"", launch.kernel->name, "\""); };
  if (ABSL_PREDICT_FALSE(state_.has_alternatives())) {
    const absl::StatusOr<const RebindState::Node*> found = state_.find_alternative(position_, launch);
    CGRT_ASSIGN_OR_RETURN(node, meet(found, found.ok() && *found == nullptr ? call() : ""));
  } else if (ABSL_PREDICT_TRUE(position_ < state_.nodes().size() &&
                               state_.nodes()[position_].type == CU_GRAPH_NODE_TYPE_KERNEL)) {
    node = &state_.nodes()[position_++];
  } else {
    return next(CU_GRAPH_NODE_TYPE_KERNEL, call()).status();
  }
  const absl::Status status = state_.change_kernel(*node, launch, change_);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : fail(status);
}

absl::Status Rebinder::pass_over() {
  ++calls_;
  return failure_;
}

absl::Status Rebinder::set(const std::string& call, const CUgraphNodeParams& params) {
  if (!failure_.ok()) return failure_;
  ++calls_;
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, state_.has_alternatives()
                                                           ? meet(state_.find_alternative(position_, params), call)
                                                           : next(params.type, call));
  if (const unsigned count = count_of(state_.current_params(*node)); count != count_of(params)) {
    return fail(absl::FailedPreconditionError(
        absl::StrCat("The node has ",
                     counted(count, params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? "memory operation" : "semaphore"),
                     ", and this is ", call, ": an executable cannot change how many.")));
  }
  state_.change_params(*node, params, change_);
  return absl::OkStatus();
}

absl::Status Rebinder::add_copy(const CopyParams& copy) {
  if (copy.bytes == 0 || copy.height == 0 || copy.depth == 0) return pass_over();
  CUgraphNodeParams params{};
  set_copy_params(params, context_, copy);
  return set("a copy", params);
}

absl::Status Rebinder::add_fill(const FillParams& fill) {
  if (fill.count == 0 || fill.height == 0) return pass_over();
  CUgraphNodeParams params{};
  set_fill_params(params, context_, fill);
  return set("a memset", params);
}

absl::Status Rebinder::add_host(const HostParams& host) {
  CUgraphNodeParams params{};
  set_host_params(params, host);
  return set("a host function", params);
}

absl::Status Rebinder::add_event_record(EventRef event) {
  if (event.get() == nullptr) return refuse(driver::empty_object("Event"));
  CUgraphNodeParams params{};
  set_record_params(params, event);
  return set("an event record", params);
}

absl::Status Rebinder::add_event_wait(EventRef event) {
  if (event.get() == nullptr) return refuse(driver::empty_object("Event"));
  CUgraphNodeParams params{};
  set_wait_params(params, event);
  return set("an event wait", params);
}

absl::StatusOr<void*> Rebinder::add_alloc(std::size_t bytes) {
  if (!failure_.ok()) return failure_;
  ++calls_;
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(CU_GRAPH_NODE_TYPE_MEM_ALLOC, "an allocation"));
  const CUDA_MEM_ALLOC_NODE_PARAMS_v2& has = state_.current_params(*node).alloc;
  if (has.bytesize == bytes) return reinterpret_cast<void*>(has.dptr);
  return fail(absl::FailedPreconditionError(absl::StrCat("The node allocates ", counted(has.bytesize, "byte"),
                                                         ", and this call wants ", bytes,
                                                         ": an executable cannot change that.")));
}

absl::Status Rebinder::add_free(void* address) {
  if (!failure_.ok()) return failure_;
  ++calls_;
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(CU_GRAPH_NODE_TYPE_MEM_FREE, "a free"));
  if (state_.current_params(*node).free.dptr == reinterpret_cast<CUdeviceptr>(address)) return absl::OkStatus();
  return fail(absl::FailedPreconditionError("The node frees other memory, and an executable cannot change that."));
}

absl::Status Rebinder::add_memory_ops(absl::Span<const MemoryOp> ops) {
  if (const absl::Status checked = check_for_node(ops); !checked.ok()) return refuse(checked);
  std::vector<CUstreamBatchMemOpParams> operations = to_driver(ops);
  CUgraphNodeParams params{};
  set_memory_op_params(params, context_, operations);
  return set(absl::StrCat("a batch of ", counted(ops.size(), "memory operation")), params);
}

absl::Status Rebinder::add_semaphores(SemaphoreAction action, absl::Span<const SemaphoreValue> values) {
  if (const absl::Status checked = check(values); !checked.ok()) return refuse(checked);
  SemaphoreArrays arrays = to_driver(action, values);
  CUgraphNodeParams params{};
  set_semaphore_params(params, action, arrays);
  return set(absl::StrCat(action == SemaphoreAction::kSignal ? "a signal of " : "a wait for ",
                          counted(values.size(), "semaphore")),
             params);
}

absl::Status Rebinder::add_captured(absl::FunctionRef<absl::Status(CUstream)> call, CallKey key) {
  if (!failure_.ok()) return failure_;
  std::shared_ptr<const RebindState::CapturedCall> captured = state_.captured_call(key);
  if (captured == nullptr) {
    absl::StatusOr<std::shared_ptr<const RebindState::CapturedCall>> made = capture(call);
    if (!made.ok()) return refuse(made.status());
    captured = *std::move(made);
    if (!key.empty()) state_.keep_captured(key, captured);
  }
  for (const RebindState::CapturedNode& node : captured->nodes) {
    const absl::Status status = add_node(node);
    if (!status.ok()) return failure_.ok() ? fail(status) : status;
  }
  change_.used->push_back(std::move(captured));  // CUDA has no call that lists what its graph keeps
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RebindState::CapturedCall>> Rebinder::capture(
    absl::FunctionRef<absl::Status(CUstream)> call) {
  CGRT_ASSIGN_OR_RETURN(const StreamRef stream, state_.capture_stream());
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture_call(context_, stream, call));
  auto captured = std::make_shared<RebindState::CapturedCall>();
  captured->graph = graph.state();
  CGRT_RETURN_IF_ERROR(state_.read_captured(graph.ref().get(), captured->nodes));
  return captured;
}

absl::Status Rebinder::add_node(const RebindState::CapturedNode& wanted) {
  ++calls_;
  const CUgraphNodeType type = wanted.params.type;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return fail(absl::UnimplementedError(
        "A library call that allocates or frees memory cannot be rebound: its addresses would be others. Give it a "
        "workspace."));
  }
  const RebindState::Node* node = nullptr;
  if (state_.has_alternatives()) {
    const absl::StatusOr<const RebindState::Node*> found = state_.find_alternative(position_, wanted);
    CGRT_ASSIGN_OR_RETURN(node, meet(found, found.ok() && *found == nullptr ? describe_node(wanted.handle) : ""));
  } else {
    const std::vector<RebindState::Node>& nodes = state_.nodes();
    const bool is_met = position_ < nodes.size() && nodes[position_].type == type;
    CGRT_ASSIGN_OR_RETURN(node, next(type, is_met ? "" : describe_node(wanted.handle)));
  }
  const absl::Status status = state_.change_as(*node, wanted, change_);
  return status.ok() ? status : fail(status);
}

absl::Status Rebinder::keep(std::shared_ptr<const void> resource) {
  change_.used->push_back(std::move(resource));  // of a call that fails, too: its destructor is not for this place
  return failure_;
}

}  // namespace cgrt::internal
