// What the driver's functions take that set the parameters of one kind of node, in the form that is one for all kinds.
// Pointers stay those of the caller.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstring>

namespace graphdump {

inline CUgraphNodeParams to_node_params(const CUDA_KERNEL_NODE_PARAMS_v2& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel));  // version 3 differs in what it promises only
  std::memcpy(&params.kernel, &kernel, sizeof(kernel));
  return params;
}
inline CUgraphNodeParams to_node_params(const CUDA_KERNEL_NODE_PARAMS_v1& kernel) {
  CUDA_KERNEL_NODE_PARAMS_v2 with_context{};
  static_assert(sizeof(kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
  std::memcpy(&with_context, &kernel, sizeof(kernel));
  return to_node_params(with_context);
}

inline CUgraphNodeParams to_node_params(const CUDA_MEMCPY3D& copy, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyCtx = context;
  params.memcpy.copyParams = copy;
  return params;
}

inline CUgraphNodeParams to_node_params(const CUDA_MEMSET_NODE_PARAMS_v1& fill, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = fill.dst;
  params.memset.pitch = fill.pitch;
  params.memset.value = fill.value;
  params.memset.elementSize = fill.elementSize;
  params.memset.width = fill.width;
  params.memset.height = fill.height;
  params.memset.ctx = context;
  return params;
}

inline CUgraphNodeParams to_node_params(const CUDA_HOST_NODE_PARAMS_v1& host) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = host.fn;
  params.host.userData = host.userData;
  return params;
}

inline CUgraphNodeParams to_child_params(CUgraph child) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child;
  return params;
}

inline CUgraphNodeParams to_record_params(CUevent event) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  params.eventRecord.event = event;
  return params;
}
inline CUgraphNodeParams to_wait_params(CUevent event) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  params.eventWait.event = event;
  return params;
}

inline CUgraphNodeParams to_node_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& ops) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  params.memOp.ctx = ops.ctx;
  params.memOp.count = ops.count;
  params.memOp.paramArray = ops.paramArray;
  params.memOp.flags = ops.flags;
  return params;
}

inline CUgraphNodeParams to_node_params(const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1& signals) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
  params.extSemSignal.extSemArray = signals.extSemArray;
  params.extSemSignal.paramsArray = signals.paramsArray;
  params.extSemSignal.numExtSems = signals.numExtSems;
  return params;
}
inline CUgraphNodeParams to_node_params(const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1& waits) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  params.extSemWait.extSemArray = waits.extSemArray;
  params.extSemWait.paramsArray = waits.paramsArray;
  params.extSemWait.numExtSems = waits.numExtSems;
  return params;
}

}  // namespace graphdump
