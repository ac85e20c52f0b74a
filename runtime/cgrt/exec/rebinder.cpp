#include "cgrt/exec/rebinder.h"

#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

absl::Status Rebinder::fail(const absl::Status& status) {
  const absl::Status told = driver::prefix(status, absl::StrCat("Call ", position_, " of the rebound step"));
  if (failure_.ok()) failure_ = told;
  return told;
}

absl::StatusOr<const RebindState::Node*> Rebinder::next(CUgraphNodeType type, const std::string& call) {
  if (!failure_.ok()) return failure_;
  const std::vector<RebindState::Node>& nodes = state_.nodes();
  if (ABSL_PREDICT_FALSE(position_ == nodes.size())) {
    return fail(absl::FailedPreconditionError(absl::StrCat("This is ", call, ", and the executable has only ",
                                                           counted(nodes.size(), "node"), " that calls made.")));
  }
  const RebindState::Node& node = nodes[position_++];
  if (ABSL_PREDICT_FALSE(node.type != type)) {
    return fail(absl::FailedPreconditionError(
        absl::StrCat("The node is ", describe_node(node.handle), ", and this is ", call, ".")));
  }
  return &node;
}

absl::StatusOr<RebindState::Change> Rebinder::finish() && {
  if (!failure_.ok()) return failure_;
  if (position_ != state_.nodes().size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("The rebound step made ", counted(position_, "call"), " and the executable has ",
                     counted(state_.nodes().size(), "node"), " that calls made: the first without a call is ",
                     describe_node(state_.nodes()[position_].handle), "."));
  }
  return std::move(change_);
}

absl::Status Rebinder::add_kernel(const KernelLaunch& launch, EdgeKind) {
  // Not next(): its text is made for failures, and this is called a thousand times.
  if (ABSL_PREDICT_FALSE(!failure_.ok() || position_ == state_.nodes().size() ||
                         state_.nodes()[position_].type != CU_GRAPH_NODE_TYPE_KERNEL)) {
    return next(CU_GRAPH_NODE_TYPE_KERNEL, absl::StrCat("kernel \"", launch.kernel->name, "\"")).status();
  }
  const absl::Status status = state_.change_kernel(state_.nodes()[position_++], launch, change_);
  return ABSL_PREDICT_TRUE(status.ok()) ? status : fail(status);
}

absl::Status Rebinder::set(CUgraphNodeType type, const char* call, const CUgraphNodeParams& params) {
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(type, call));
  state_.change_params(*node, params, change_);
  return absl::OkStatus();
}

absl::Status Rebinder::add_copy(const CopyParams& copy) {
  CUgraphNodeParams params{};
  set_copy_params(params, context_, copy);
  return set(CU_GRAPH_NODE_TYPE_MEMCPY, "a copy", params);
}

absl::Status Rebinder::add_fill(const FillParams& fill) {
  CUgraphNodeParams params{};
  set_fill_params(params, context_, fill);
  return set(CU_GRAPH_NODE_TYPE_MEMSET, "a memset", params);
}

absl::Status Rebinder::add_host(const HostParams& host) {
  CUgraphNodeParams params{};
  set_host_params(params, host);
  return set(CU_GRAPH_NODE_TYPE_HOST, "a host function", params);
}

absl::Status Rebinder::add_event_record(EventRef event) {
  if (event.get() == nullptr) return fail(driver::empty_object("Event"));
  CUgraphNodeParams params{};
  set_record_params(params, event);
  return set(CU_GRAPH_NODE_TYPE_EVENT_RECORD, "an event record", params);
}

absl::Status Rebinder::add_event_wait(EventRef event) {
  if (event.get() == nullptr) return fail(driver::empty_object("Event"));
  CUgraphNodeParams params{};
  set_wait_params(params, event);
  return set(CU_GRAPH_NODE_TYPE_WAIT_EVENT, "an event wait", params);
}

absl::StatusOr<void*> Rebinder::add_alloc(std::size_t bytes) {
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(CU_GRAPH_NODE_TYPE_MEM_ALLOC, "an allocation"));
  const CUDA_MEM_ALLOC_NODE_PARAMS_v2& has = state_.current_params(*node).alloc;
  if (has.bytesize == bytes) return reinterpret_cast<void*>(has.dptr);
  return fail(absl::FailedPreconditionError(absl::StrCat("The node allocates ", counted(has.bytesize, "byte"),
                                                         ", and this call wants ", bytes,
                                                         ": an executable cannot change that.")));
}

absl::Status Rebinder::add_free(void* address) {
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(CU_GRAPH_NODE_TYPE_MEM_FREE, "a free"));
  if (state_.current_params(*node).free.dptr == reinterpret_cast<CUdeviceptr>(address)) return absl::OkStatus();
  return fail(absl::FailedPreconditionError("The node frees other memory, and an executable cannot change that."));
}

absl::Status Rebinder::add_memory_ops(absl::Span<const MemoryOp>) {
  return fail(absl::UnimplementedError(
      "A rebound step cannot have memory operations: set their nodes one by one, with GraphExec::set_params."));
}

absl::Status Rebinder::add_captured(absl::FunctionRef<absl::Status(CUstream)> call) {
  if (!failure_.ok()) return failure_;
  const absl::StatusOr<Graph> captured = capture_call(context_, call);
  if (!captured.ok()) return fail(captured.status());
  CompiledClusters clusters;
  return add_nodes(captured->ref().get(), clusters);
}

absl::Status Rebinder::add_nodes(CUgraph captured, CompiledClusters& clusters) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(captured));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
      CGRT_RETURN_IF_ERROR(add_nodes(inside, clusters));
    } else if (type != CU_GRAPH_NODE_TYPE_EMPTY) {
      CGRT_RETURN_IF_ERROR(add_node(node, type, clusters));
    }
  }
  return absl::OkStatus();
}

absl::Status Rebinder::add_node(CUgraphNode captured, CUgraphNodeType type, CompiledClusters& clusters) {
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return fail(absl::UnimplementedError(
        "A library call that allocates or frees memory cannot be rebound: its addresses would be others. Give it a "
        "workspace."));
  }
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* node, next(type, describe_node(captured)));
  const absl::Status status = state_.change_as(*node, captured, clusters, change_);
  return status.ok() ? status : fail(status);
}

absl::Status Rebinder::keep(std::shared_ptr<const void>) {
  return fail(absl::UnimplementedError(
      "A rebound step cannot hand over what it owns, as launch_host with a std::function does: nothing says when an "
      "executable needs it no more. Use a function and data that you own."));
}

}  // namespace cgrt::internal
