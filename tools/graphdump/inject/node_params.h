// What the driver's functions take that set the parameters of one kind of node, in the form that is one for all kinds.
// Pointers stay those of the caller.
#pragma once

#include <cuda.h>

namespace graphdump {

// The versions differ in what comes last. One by one: the driver wants what lies between to be zero.
template <class Kernel>
CUgraphNodeParams to_kernel_params(const Kernel& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = kernel.func;
  params.kernel.gridDimX = kernel.gridDimX;
  params.kernel.gridDimY = kernel.gridDimY;
  params.kernel.gridDimZ = kernel.gridDimZ;
  params.kernel.blockDimX = kernel.blockDimX;
  params.kernel.blockDimY = kernel.blockDimY;
  params.kernel.blockDimZ = kernel.blockDimZ;
  params.kernel.sharedMemBytes = kernel.sharedMemBytes;
  params.kernel.kernelParams = kernel.kernelParams;
  params.kernel.extra = kernel.extra;
  return params;
}
inline CUgraphNodeParams to_node_params(const CUDA_KERNEL_NODE_PARAMS_v1& kernel) { return to_kernel_params(kernel); }
inline CUgraphNodeParams to_node_params(const CUDA_KERNEL_NODE_PARAMS_v2& kernel) {
  CUgraphNodeParams params = to_kernel_params(kernel);
  params.kernel.kern = kernel.kern;
  params.kernel.ctx = kernel.ctx;
  return params;
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
