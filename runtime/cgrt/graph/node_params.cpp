#include "cgrt/graph/node_params.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

absl::Status cannot_be_copied(CUgraphNodeType type) {
  return absl::UnimplementedError(
      absl::StrCat("A node of the kind \"", to_string(static_cast<ir::NodeKind>(type)),
                   "\" cannot be copied into another graph: make the graph that it is in a child, with "
                   "Graph::add_child."));
}

CUgraphNodeParams to_params(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  static_assert(sizeof(params.kernel) == sizeof(kernel));  // v3 and v2 differ in what they promise only
  std::memcpy(&params.kernel, &kernel, sizeof(kernel));
  return params;
}

absl::Status read_params(CUgraphNode node, CUgraphNodeType type, CUcontext context, CUgraphNodeParams& params) {
  const driver::Api& api = driver::api();
  params.type = type;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphKernelNodeGetParams(node, &kernel), "cuGraphKernelNodeGetParams"));
      params = to_params(kernel);
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      params.memcpy.copyCtx = context;
      return driver::to_status(api.GraphMemcpyNodeGetParams(node, &params.memcpy.copyParams),
                               "cuGraphMemcpyNodeGetParams");
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphMemsetNodeGetParams(node, &fill), "cuGraphMemsetNodeGetParams"));
      // One by one: what lies between them stays zero, and parameters are compared by their bytes.
      params.memset.dst = fill.dst;
      params.memset.pitch = fill.pitch;
      params.memset.value = fill.value;
      params.memset.elementSize = fill.elementSize;
      params.memset.width = fill.width;
      params.memset.height = fill.height;
      params.memset.ctx = context;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS host{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphHostNodeGetParams(node, &host), "cuGraphHostNodeGetParams"));
      params.host.fn = host.fn;
      params.host.userData = host.userData;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return driver::to_status(api.GraphChildGraphNodeGetGraph(node, &params.graph.graph),
                               "cuGraphChildGraphNodeGetGraph");
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return driver::to_status(api.GraphEventRecordNodeGetEvent(node, &params.eventRecord.event),
                               "cuGraphEventRecordNodeGetEvent");
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return driver::to_status(api.GraphEventWaitNodeGetEvent(node, &params.eventWait.event),
                               "cuGraphEventWaitNodeGetEvent");
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphMemAllocNodeGetParams(node, &alloc), "cuGraphMemAllocNodeGetParams"));
      params.alloc.bytesize = alloc.bytesize;
      params.alloc.dptr = alloc.dptr;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return driver::to_status(api.GraphMemFreeNodeGetParams(node, &params.free.dptr), "cuGraphMemFreeNodeGetParams");
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS ops{};
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphBatchMemOpNodeGetParams(node, &ops), "cuGraphBatchMemOpNodeGetParams"));
      params.memOp.ctx = context;
      params.memOp.count = ops.count;
      params.memOp.paramArray = ops.paramArray;
      params.memOp.flags = ops.flags;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: {
      CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signals{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphExternalSemaphoresSignalNodeGetParams(node, &signals),
                                             "cuGraphExternalSemaphoresSignalNodeGetParams"));
      params.extSemSignal.extSemArray = signals.extSemArray;
      params.extSemSignal.paramsArray = signals.paramsArray;
      params.extSemSignal.numExtSems = signals.numExtSems;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
      CUDA_EXT_SEM_WAIT_NODE_PARAMS waits{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphExternalSemaphoresWaitNodeGetParams(node, &waits),
                                             "cuGraphExternalSemaphoresWaitNodeGetParams"));
      params.extSemWait.extSemArray = waits.extSemArray;
      params.extSemWait.paramsArray = waits.paramsArray;
      params.extSemWait.numExtSems = waits.numExtSems;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_EMPTY: return absl::OkStatus();
    default: return cannot_be_copied(type);
  }
}

absl::StatusOr<std::vector<ir::Parameter>> parameters_of(CUfunction function) {
  std::vector<ir::Parameter> parameters;
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = driver::api().FuncGetParamInfo(function, i, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) return parameters;  // past the last: there is no call that counts them
    CGRT_RETURN_IF_ERROR(driver::to_status(result, "cuFuncGetParamInfo"));
    parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  }
}

namespace {

absl::StatusOr<int> place_of(CUdeviceptr address) {
  unsigned type = 0;
  int device = -1;
  CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &device};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().PointerGetAttributes(2, ids, values, address), "cuPointerGetAttributes"));
  return type == CU_MEMORYTYPE_DEVICE ? device : OperandPlaces::kHost;
}

absl::StatusOr<int> place_of(CUmemorytype type, CUdeviceptr address) {
  if (type == CU_MEMORYTYPE_ARRAY) return OperandPlaces::kArray;
  if (type == CU_MEMORYTYPE_HOST) return OperandPlaces::kHost;
  return place_of(address);
}

}  // namespace

absl::StatusOr<OperandPlaces> places_of(const CUgraphNodeParams& params) {
  OperandPlaces places;
  if (params.type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CGRT_ASSIGN_OR_RETURN(places.destination, place_of(params.memset.dst));
  } else if (params.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    const CUDA_MEMCPY3D& copy = params.memcpy.copyParams;
    CGRT_ASSIGN_OR_RETURN(places.destination, place_of(copy.dstMemoryType, copy.dstDevice));
    CGRT_ASSIGN_OR_RETURN(places.source, place_of(copy.srcMemoryType, copy.srcDevice));
  }
  return places;
}

OwnedParams own(const CUgraphNodeParams& params) {
  OwnedParams owned{params, nullptr};
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const auto& from = params.memOp;
      auto operations =
          std::make_shared<std::vector<CUstreamBatchMemOpParams>>(from.paramArray, from.paramArray + from.count);
      owned.params.memOp.paramArray = operations->data();
      owned.arrays = std::move(operations);
      return owned;
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: {
      const auto& from = params.extSemSignal;
      auto arrays = std::make_shared<SemaphoreArrays>();
      arrays->handles.assign(from.extSemArray, from.extSemArray + from.numExtSems);
      arrays->signals.assign(from.paramsArray, from.paramsArray + from.numExtSems);
      set_semaphore_params(owned.params, SemaphoreAction::kSignal, *arrays);
      owned.arrays = std::move(arrays);
      return owned;
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
      const auto& from = params.extSemWait;
      auto arrays = std::make_shared<SemaphoreArrays>();
      arrays->handles.assign(from.extSemArray, from.extSemArray + from.numExtSems);
      arrays->waits.assign(from.paramsArray, from.paramsArray + from.numExtSems);
      set_semaphore_params(owned.params, SemaphoreAction::kWait, *arrays);
      owned.arrays = std::move(arrays);
      return owned;
    }
    default: return owned;
  }
}

unsigned count_of(const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return params.memOp.count;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: return params.extSemSignal.numExtSems;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return params.extSemWait.numExtSems;
    default: return 1;
  }
}

namespace {

bool is_same_operation(const CUstreamBatchMemOpParams& a, const CUstreamBatchMemOpParams& b) {
  const bool is_long = a.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || a.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  return a.operation == b.operation && a.waitValue.address == b.waitValue.address &&
         a.waitValue.flags == b.waitValue.flags &&
         (is_long ? a.waitValue.value64 == b.waitValue.value64 : a.waitValue.value == b.waitValue.value);
}

template <class Params>
bool are_same_semaphores(const Params& a, const Params& b) {
  return std::equal(a.extSemArray, a.extSemArray + a.numExtSems, b.extSemArray) &&
         std::memcmp(a.paramsArray, b.paramsArray, a.numExtSems * sizeof(*a.paramsArray)) == 0;
}

}  // namespace

bool are_equal(const CUgraphNodeParams& a, const CUgraphNodeParams& b) {
  if (a.type != b.type || count_of(a) != count_of(b)) return false;
  if (a.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
    return std::equal(a.memOp.paramArray, a.memOp.paramArray + a.memOp.count, b.memOp.paramArray, is_same_operation);
  }
  if (a.type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL) return are_same_semaphores(a.extSemSignal, b.extSemSignal);
  if (a.type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT) return are_same_semaphores(a.extSemWait, b.extSemWait);
  const auto bytes = [](const CUgraphNodeParams& params) {
    return std::string_view(reinterpret_cast<const char*>(&params), sizeof(params));
  };
  return bytes(a) == bytes(b);
}

bool is_same_shape(const CUgraphNodeParams& node, const CUgraphNodeParams& wanted) {
  if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
    const auto& a = node.memset;
    const auto& b = wanted.memset;
    if (a.height <= 1 && b.height <= 1) return true;
    return a.height == b.height && a.width == b.width && a.elementSize == b.elementSize;
  }
  if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    const CUDA_MEMCPY3D& a = node.memcpy.copyParams;
    const CUDA_MEMCPY3D& b = wanted.memcpy.copyParams;
    const auto is_linear = [](const CUDA_MEMCPY3D& copy) { return copy.Height <= 1 && copy.Depth <= 1; };
    if (is_linear(a) && is_linear(b)) return true;
    return a.WidthInBytes == b.WidthInBytes && a.Height == b.Height && a.Depth == b.Depth;
  }
  return count_of(node) == count_of(wanted);
}

}  // namespace cgrt::internal
