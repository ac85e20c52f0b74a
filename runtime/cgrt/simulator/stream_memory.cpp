// Stream-ordered memory, of streams and of graphs, and operations on words of memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {

// What is live then is nobody's graph's any more, and is freed as other memory is.
GraphMemory::~GraphMemory() {
  const auto entry = state->memory.find(address);
  if (is_live) {
    entry->second.of_graph = nullptr;
    return;
  }
  state->used_bytes[static_cast<std::size_t>(context->device)] -= bytes;
  state->memory.erase(entry);
  std::free(reinterpret_cast<void*>(address));
}

CUresult alloc_data(std::size_t bytes, CUcontext context, NodeData& data) {
  CUdeviceptr address = 0;
  if (const CUresult bad = allocate(&address, bytes, true, context); bad != CUDA_SUCCESS) return bad;
  data.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  data.context = context;
  data.memory = std::make_shared<GraphMemory>();
  data.memory->address = address;
  data.memory->bytes = bytes;
  data.memory->context = context;
  state->memory.at(address).of_graph = data.memory.get();
  return CUDA_SUCCESS;
}

namespace {

// Of live graphs and of captures.
std::shared_ptr<GraphMemory> find_graph_memory(CUdeviceptr address) {
  for (CUgraphNode node : state->nodes) {
    if (node->data->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->data->memory->address == address) {
      return node->data->memory;
    }
  }
  return nullptr;
}

}  // namespace

CUresult free_data(CUdeviceptr address, NodeData& data) {
  data.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  data.memory = find_graph_memory(address);
  if (data.memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  data.context = data.memory->context;
  return CUDA_SUCCESS;
}

CUresult check_memory_node(const NodeData& data, const CUgraph_st& graph) {
  if (graph.owner != nullptr && graph.owner->data->type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
  const bool is_freed = data.type == CU_GRAPH_NODE_TYPE_MEM_FREE && data.memory->freed_by != nullptr;
  return is_freed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void note_memory_node(const NodeData& data, CUgraph graph) {
  (data.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? data.memory->graph : data.memory->freed_by) = graph;
}

bool has_memory_nodes(const CUgraph_st& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& node) {
    return node->data->memory != nullptr || std::any_of(node->inside.begin(), node->inside.end(),
                                                        [](const auto& inside) { return has_memory_nodes(*inside); });
  });
}

CUresult MemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (!capturing) {
    if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
    return allocate(out, bytes, true, stream->context);
  }
  auto data = std::make_shared<NodeData>();
  if (result = alloc_data(bytes, stream->context, *data); result != CUDA_SUCCESS) return result;
  *out = data->memory->address;
  note_memory_node(*data, stream->capture->graph.get());
  capture_node(stream, std::move(data), false);
  return CUDA_SUCCESS;
}

CUresult MemFreeAsync(CUdeviceptr address, CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    auto data = std::make_shared<NodeData>();
    result = free_data(address, *data);
    if (result == CUDA_SUCCESS) result = check_memory_node(*data, *stream->capture->graph);
    if (result != CUDA_SUCCESS) return result;
    note_memory_node(*data, stream->capture->graph.get());
    capture_node(stream, std::move(data), false);
    return CUDA_SUCCESS;
  }
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  const auto found = state->memory.find(address);
  if (found == state->memory.end() || !found->second.on_device) return CUDA_ERROR_INVALID_VALUE;
  if (GraphMemory* const of_graph = found->second.of_graph; of_graph != nullptr) {
    if (!of_graph->is_live || of_graph->freed_by != nullptr) return CUDA_ERROR_INVALID_VALUE;
    of_graph->is_live = false;
    enqueue(stream, nullptr);
    return CUDA_SUCCESS;
  }
  // Nobody can name it from now on; what is behind it goes when the work before has run.
  state->used_bytes[static_cast<std::size_t>(found->second.context->device)] -= found->second.bytes;
  state->memory.erase(found);
  enqueue(stream, [address] { std::free(reinterpret_cast<void*>(address)); });
  return CUDA_SUCCESS;
}

CUresult GraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1* params) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node) || node->data->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return CUDA_ERROR_INVALID_VALUE;
  *params = {};
  params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params->poolProps.location.id = node->data->context->device;
  params->bytesize = node->data->memory->bytes;
  params->dptr = node->data->memory->address;
  return CUDA_SUCCESS;
}

CUresult GraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node) || node->data->type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_ERROR_INVALID_VALUE;
  *address = node->data->memory->address;
  return CUDA_SUCCESS;
}

namespace {

bool is_wait(const CUstreamBatchMemOpParams& op) {
  return op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

std::size_t bytes_of(const CUstreamBatchMemOpParams& op) {
  const bool is_long =
      op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  return is_long ? sizeof(cuuint64_t) : sizeof(cuuint32_t);
}

template <class Word>
bool meets(Word now, Word value, unsigned flags) {
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_EQ: return now == value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return static_cast<Word>(~(now | value)) != 0;
    default: return static_cast<std::make_signed_t<Word>>(now - value) >= 0;
  }
}

}  // namespace

bool is_met(const CUstreamBatchMemOpParams& op) {
  if (!is_wait(op)) return true;
  const auto* const address = reinterpret_cast<const void*>(op.waitValue.address);
  if (bytes_of(op) == sizeof(cuuint64_t)) {
    cuuint64_t now = 0;
    std::memcpy(&now, address, sizeof(now));
    return meets(now, op.waitValue.value64, op.waitValue.flags);
  }
  cuuint32_t now = 0;
  std::memcpy(&now, address, sizeof(now));
  return meets(now, op.waitValue.value, op.waitValue.flags);
}

void run_operation(const CUstreamBatchMemOpParams& op) {
  if (!is_wait(op)) std::memcpy(reinterpret_cast<void*>(op.writeValue.address), &op.writeValue.value64, bytes_of(op));
}

CUresult check_operations(const std::vector<CUstreamBatchMemOpParams>& operations) {
  if (operations.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (const CUstreamBatchMemOpParams& op : operations) {
    if (!is_wait(op) && op.operation != CU_STREAM_MEM_OP_WRITE_VALUE_32 &&
        op.operation != CU_STREAM_MEM_OP_WRITE_VALUE_64) {
      return unsupported("the simulator does not have that memory operation");
    }
  }
  return CUDA_SUCCESS;
}

CUresult StreamBatchMemOp(CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (operations == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto data = std::make_shared<NodeData>();
  data->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  data->context = stream->context;
  data->operations.assign(operations, operations + count);
  if (result = check_operations(data->operations); result != CUDA_SUCCESS) return result;
  for (const CUstreamBatchMemOpParams& op : data->operations) {  // which nodes are not asked for
    const bool is_there = find_allocation(op.waitValue.address) != nullptr;
    if (!is_there || !is_accessible(op.waitValue.address, bytes_of(op))) return CUDA_ERROR_INVALID_VALUE;
  }
  if (capturing) {
    capture_node(stream, std::move(data), false);
    return CUDA_SUCCESS;
  }
  enqueue_steps_of(stream, data);
  return CUDA_SUCCESS;
}

CUresult GraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  const Lock lock(state->mutex);
  if (!state->nodes.contains(node) || node->data->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *params = {};
  params->ctx = node->data->context;
  params->count = static_cast<unsigned>(node->data->operations.size());
  params->paramArray = const_cast<CUstreamBatchMemOpParams*>(node->data->operations.data());
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
