// The library that `graphdump run` has the driver load into a process (CUDA_INJECTION64_PATH): it subscribes to CUPTI
// and tells the recorder what happens. A failure in here is a note in the session file, never one of the process.

#include <cuda.h>
#include <cupti.h>  // and the calls' parameters

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "inject/cupti.h"
#include "inject/recorder.h"
#include "inject/session.h"

namespace graphdump {
namespace {

// What this library calls itself is not the process's.
thread_local constinit bool is_own_call = false;

class OwnCall {
 public:
  OwnCall() { is_own_call = true; }
  ~OwnCall() { is_own_call = false; }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;
};

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of the call that this thread is in; launches do not nest.
thread_local constinit std::int64_t launch_began = 0;
thread_local constinit std::uint64_t nodes_before = 0;

template <class Params>
const Params& as(const CUpti_CallbackData& call) {
  return *static_cast<const Params*>(call.functionParams);
}

void on_graph_event(CUpti_CallbackId id, const CUpti_GraphData& data) {
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED: return recorder::on_node(data.node);
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      if (!recorder::is_instantiating()) recorder::on_node_clone(data.originalNode, data.node);
      return;
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED: return recorder::on_graph_clone(data.originalGraph, data.graph);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING: return recorder::on_instantiate(data.graph);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED: return recorder::on_instantiated(data.graphExec);
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING: return recorder::on_exec_destroy(data.graphExec);
    default: return;
  }
}

constexpr CUpti_CallbackId kGraphEvents[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPH_CLONED,      CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING};

// The calls that are listened to, and what is done with each. Calls made through the runtime end in these.
enum class Call {
  kLaunchKernel,
  kCopy,
  kBeginCapture,
  kEndCapture,
  kAddNode,
  kAddNode2,
  kCreateHandle,
  kLaunchGraph,
  kUpload,
  kUpdate,
  kUpdate2,
  kSetParams,
};
struct Listened {
  CUpti_CallbackId id;
  Call call;
};
#define CGRT_BOTH(name, call) \
  {CUPTI_DRIVER_TRACE_CBID_##name, call}, { CUPTI_DRIVER_TRACE_CBID_##name##_ptsz, call }
#define CGRT_ONE(name, call) \
  { CUPTI_DRIVER_TRACE_CBID_##name, call }
constexpr Listened kListened[] = {
    CGRT_BOTH(cuLaunchKernel, Call::kLaunchKernel),
    CGRT_BOTH(cuLaunchKernelEx, Call::kLaunchKernel),
    CGRT_BOTH(cuLaunchCooperativeKernel, Call::kLaunchKernel),
    CGRT_BOTH(cuMemcpyAsync, Call::kCopy),
    CGRT_BOTH(cuMemcpyHtoDAsync_v2, Call::kCopy),
    CGRT_BOTH(cuMemcpyDtoHAsync_v2, Call::kCopy),
    CGRT_BOTH(cuMemcpyDtoDAsync_v2, Call::kCopy),
    CGRT_BOTH(cuMemcpy2DAsync_v2, Call::kCopy),
    CGRT_BOTH(cuMemcpy3DAsync_v2, Call::kCopy),
    CGRT_BOTH(cuMemsetD8Async, Call::kCopy),
    CGRT_BOTH(cuMemsetD16Async, Call::kCopy),
    CGRT_BOTH(cuMemsetD32Async, Call::kCopy),
    CGRT_BOTH(cuStreamBeginCapture, Call::kBeginCapture),
    CGRT_BOTH(cuStreamBeginCapture_v2, Call::kBeginCapture),
    CGRT_BOTH(cuStreamBeginCaptureToGraph, Call::kBeginCapture),
    CGRT_BOTH(cuStreamEndCapture, Call::kEndCapture),
    CGRT_ONE(cuGraphAddNode, Call::kAddNode),
    CGRT_ONE(cuGraphAddNode_v2, Call::kAddNode2),
    CGRT_ONE(cuGraphConditionalHandleCreate, Call::kCreateHandle),
    CGRT_BOTH(cuGraphLaunch, Call::kLaunchGraph),
    CGRT_BOTH(cuGraphUpload, Call::kUpload),
    CGRT_ONE(cuGraphExecUpdate, Call::kUpdate),
    CGRT_ONE(cuGraphExecUpdate_v2, Call::kUpdate2),
    CGRT_ONE(cuGraphExecKernelNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecKernelNodeSetParams_v2, Call::kSetParams),
    CGRT_ONE(cuGraphExecNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecMemcpyNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecMemsetNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecHostNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecChildGraphNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecBatchMemOpNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecExternalSemaphoresSignalNodeSetParams, Call::kSetParams),
    CGRT_ONE(cuGraphExecExternalSemaphoresWaitNodeSetParams, Call::kSetParams),
};
#undef CGRT_BOTH
#undef CGRT_ONE

// By callback id; -1: not listened to.
struct Calls {
  std::int8_t of[CUPTI_DRIVER_TRACE_CBID_SIZE];
  constexpr Calls() : of() {
    for (std::int8_t& one : of) one = -1;
    for (const Listened& one : kListened) of[one.id] = static_cast<std::int8_t>(one.call);
  }
};
constexpr Calls kCalls;

// What a node was made of, after cuGraphAddNode.
template <class Params>
void on_added(const CUpti_CallbackData& call) {
  const auto& params = as<Params>(call);
  if (params.nodeParams == nullptr || params.nodeParams->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  recorder::on_conditional(*params.phGraphNode, params.nodeParams->conditional);
}

void on_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  if (id >= CUPTI_DRIVER_TRACE_CBID_SIZE || kCalls.of[id] < 0) return;
  const auto what = static_cast<Call>(kCalls.of[id]);
  const bool is_work = what == Call::kLaunchKernel || what == Call::kCopy;
  if (call.callbackSite == CUPTI_API_ENTER) {
    if (!is_work) return;
    nodes_before = recorder::node_count();
    launch_began = now();
    return;
  }
  const bool has_failed = *static_cast<const CUresult*>(call.functionReturnValue) != CUDA_SUCCESS;
  if (is_work) {
    if (has_failed || recorder::node_count() != nodes_before) return;
    return what == Call::kLaunchKernel ? recorder::on_kernel_launch(now() - launch_began) : recorder::on_copy();
  }
  switch (what) {
    case Call::kUpdate: {
      const auto& params = as<cuGraphExecUpdate_params>(call);
      return recorder::on_update(params.hGraphExec, params.hGraph, has_failed);
    }
    case Call::kUpdate2: {
      const auto& params = as<cuGraphExecUpdate_v2_params>(call);
      return recorder::on_update(params.hGraphExec, params.hGraph, has_failed);
    }
    case Call::kEndCapture: {
      const auto& params = as<cuStreamEndCapture_params>(call);
      return recorder::on_capture_end(params.hStream, has_failed ? nullptr : *params.phGraph);
    }
    default: break;
  }
  if (has_failed) return;
  switch (what) {
    // The stream and the executable are the first parameter, whatever the spelling.
    case Call::kBeginCapture: return recorder::on_capture_begin(as<cuStreamBeginCapture_params>(call).hStream);
    case Call::kAddNode: return on_added<cuGraphAddNode_params>(call);
    case Call::kAddNode2: return on_added<cuGraphAddNode_v2_params>(call);
    case Call::kCreateHandle: {
      const auto& params = as<cuGraphConditionalHandleCreate_params>(call);
      return recorder::on_conditional_handle(*params.pHandle_out, params.defaultLaunchValue, params.flags);
    }
    case Call::kLaunchGraph:
      return recorder::on_exec_call(as<cuGraphLaunch_params>(call).hGraph, recorder::ExecCall::kLaunch);
    case Call::kUpload:
      return recorder::on_exec_call(as<cuGraphUpload_params>(call).hGraph, recorder::ExecCall::kUpload);
    case Call::kSetParams:
      return recorder::on_exec_call(as<cuGraphExecNodeSetParams_params>(call).hGraphExec,
                                    recorder::ExecCall::kSetParams);
    default: return;
  }
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (is_own_call) return;
  const OwnCall own;
  try {
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
      const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
      on_graph_event(id, *static_cast<const CUpti_GraphData*>(resource.resourceDescriptor));
    } else {
      on_call(id, *static_cast<const CUpti_CallbackData*>(data));
    }
  } catch (const std::exception& error) {
    note(std::string("Recording failed: ") + error.what());
  }
}

void start() {
  if (session() == nullptr) return;
  std::string error;
  const Cupti* const cupti = load_cupti(&error);
  CUpti_SubscriberHandle subscriber = nullptr;
  if (cupti == nullptr || !subscribe(*cupti, &on_callback, &subscriber, &error)) return note(error);
  for (const CUpti_CallbackId id : kGraphEvents) {
    if (cupti->EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id) != CUPTI_SUCCESS) {
      return note("This CUPTI does not report graphs, so nothing is recorded: it is older than CUDA 12.");
    }
  }
  for (const Listened& one : kListened) {  // older ones lack some
    cupti->EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, one.id);
  }
}

}  // namespace
}  // namespace graphdump

// The driver calls it while it initializes: it cannot be called yet.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  graphdump::start();
  return 1;
}
