// Kernels: identity, attributes, launches, occupancy. Kernels run their host bodies.
#include <cstddef>  // cuda_occupancy.h needs it before itself

#include <cuda_occupancy.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "cgrt/simulator/log.h"
#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

constexpr int kDefaultShared = 49152;  // bytes of shared memory per block before opting in
constexpr int kOptInShared = 232448;   // of an H200
constexpr int kMultiprocessors = 132;
constexpr int kGreatestPriority = -5;

int max_dynamic_shared(const driver::KernelIdentity* kernel) {
  const auto found = state->max_dynamic_shared.find(kernel->symbol);
  return found != state->max_dynamic_shared.end() ? found->second
                                                  : kDefaultShared - kernel->resources.static_shared_bytes;
}

constexpr int kPortableCluster = 8, kLargeCluster = 16;  // of an H200

int largest_cluster(const driver::KernelIdentity* kernel) {
  const int largest = state->options.largest_cluster;
  return state->large_clusters.contains(kernel->symbol) ? largest : std::min(largest, kPortableCluster);
}

const driver::KernelIdentity* identity_of(CUkernel kernel) {
  const auto found = state->kernels.find(kernel);  // the handle is the symbol
  return found != state->kernels.end() ? found->second : nullptr;
}

cudaOccDeviceProp occupancy_device() {
  cudaOccDeviceProp device;
  device.computeMajor = 9;
  device.computeMinor = 0;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = 2048;
  device.regsPerBlock = 65536;
  device.regsPerMultiprocessor = 65536;
  device.warpSize = 32;
  device.sharedMemPerBlock = kDefaultShared;
  device.sharedMemPerMultiprocessor = 233472;
  device.numSms = kMultiprocessors;
  device.sharedMemPerBlockOptin = kOptInShared;
  device.reservedSharedMemPerBlock = 1024;
  return device;
}

cudaOccFuncAttributes occupancy_function(const driver::KernelIdentity* kernel) {
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = kernel->resources.max_threads;
  function.numRegs = kernel->resources.registers;
  function.sharedSizeBytes = static_cast<std::size_t>(kernel->resources.static_shared_bytes);
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  function.maxDynamicSharedSizeBytes = static_cast<std::size_t>(max_dynamic_shared(kernel));
  return function;
}

int blocks_per_multiprocessor(const driver::KernelIdentity* kernel, int block_size, std::size_t shared_bytes) {
  const cudaOccDeviceProp device = occupancy_device();
  const cudaOccFuncAttributes attributes = occupancy_function(kernel);
  const cudaOccDeviceState device_state;
  cudaOccResult occupancy;
  if (cudaOccMaxActiveBlocksPerMultiprocessor(&occupancy, &device, &attributes, &device_state, block_size,
                                              shared_bytes) != CUDA_OCC_SUCCESS) {
    return -1;
  }
  return occupancy.activeBlocksPerMultiprocessor;
}

}  // namespace

const driver::KernelIdentity* find_kernel(CUfunction function) {
  const auto found = state->function_handles.find(function);
  if (found != state->function_handles.end()) return found->second->kernel;
  return identity_of(reinterpret_cast<CUkernel>(function));  // a CUkernel is taken wherever a function is
}

CUfunction function_of(const driver::KernelIdentity* kernel, CUcontext context) {
  std::unique_ptr<CUfunc_st>& function = state->functions[{kernel->symbol, context}];
  if (function == nullptr) {
    function = std::make_unique<CUfunc_st>(CUfunc_st{kernel, context});
    state->function_handles.emplace(function.get(), function.get());
  }
  return function.get();
}

CUresult check_launch(const driver::KernelIdentity* kernel, Dim3 grid, Dim3 block, unsigned shared_bytes) {
  const bool grid_fits = grid.count() != 0 && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535;
  const bool block_fits = block.count() != 0 && block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
                          block.count() <= static_cast<std::uint64_t>(kernel->resources.max_threads);
  if (block.x > 1024 || block.y > 1024 || block.z > 64) {
    say("One or more of block dimensions of (" + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
        std::to_string(block.z) + ") exceeds correspsonding maximum value of (1024,1024,64)");  // the driver's spelling
  }
  if (!grid_fits || !block_fits) return CUDA_ERROR_INVALID_VALUE;
  if (shared_bytes > static_cast<unsigned>(max_dynamic_shared(kernel))) return CUDA_ERROR_INVALID_VALUE;
  const Dim3& cluster = kernel->resources.cluster;
  const bool is_multiple = grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
  return is_multiple ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

std::shared_ptr<NodeData> kernel_data(const driver::KernelIdentity* kernel, CUcontext context, Dim3 grid, Dim3 block,
                                      unsigned shared_bytes, void* const* arguments) {
  auto data = std::make_shared<NodeData>();
  data->type = CU_GRAPH_NODE_TYPE_KERNEL;
  data->context = context;
  data->kernel = kernel;
  data->grid = grid;
  data->block = block;
  data->shared_bytes = shared_bytes;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kernel->parameter_count; ++i) {
    bytes = std::max(bytes, std::size_t{kernel->parameter_offsets[i]} + kernel->parameter_sizes[i]);
  }
  // As a parameter buffer on a device: aligned for any type (tensor maps want 64), each argument at its offset.
  constexpr std::align_val_t kAlignment{256};
  const std::shared_ptr<unsigned char> values(static_cast<unsigned char*>(::operator new(bytes, kAlignment)),
                                              [](unsigned char* buffer) { ::operator delete(buffer, kAlignment); });
  for (std::size_t i = 0; i < kernel->parameter_count; ++i) {
    unsigned char* const value = values.get() + kernel->parameter_offsets[i];
    std::memcpy(value, arguments[i], kernel->parameter_sizes[i]);
    data->arguments.push_back(value);
  }
  data->values = values;
  return data;
}

int clamped_priority(int priority) { return std::clamp(priority, kGreatestPriority, 0); }

CUresult check_attribute(const NodeData& node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto largest = static_cast<std::uint64_t>(largest_cluster(node.kernel));
      const Dim3 cluster(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
      if (cluster.count() == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
      const Dim3& compiled = node.kernel->resources.cluster;
      if (compiled != Dim3() && compiled != cluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
      const bool is_multiple =
          node.grid.x % cluster.x == 0 && node.grid.y % cluster.y == 0 && node.grid.z % cluster.z == 0;
      return is_multiple && cluster.count() <= largest ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: {
      if (value.cooperative == 0) return CUDA_SUCCESS;
      const std::uint64_t resident = static_cast<std::uint64_t>(
          kMultiprocessors *
          blocks_per_multiprocessor(node.kernel, static_cast<int>(node.block.count()), node.shared_bytes));
      return node.grid.count() <= resident ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: return CUDA_ERROR_INVALID_VALUE;  // not on an H200
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return CUDA_SUCCESS;
    default: return unsupported("the simulator does not have that launch attribute");
  }
}

CUresult check_attributes(const NodeData& node) {
  for (const auto& [id, value] : node.attributes) {
    if (const CUresult bad = check_attribute(node, id, value); bad != CUDA_SUCCESS) return bad;
  }
  return CUDA_SUCCESS;
}

CUresult check_body(const NodeData& node) {
  for (const std::shared_ptr<const Body>& body : node.bodies) {
    for (const NodeDataRef& inner : body->nodes) {
      if (const CUresult bad = check_body(*inner); bad != CUDA_SUCCESS) return bad;
    }
  }
  if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_SUCCESS;
  if (const LoadedKernel* loaded = find_loaded(node.kernel->symbol); loaded != nullptr && loaded->library == nullptr) {
    return unsupported("kernel \"" + loaded->name + "\" was unloaded, and a graph is to run it");
  }
  if (node.kernel->host_body != nullptr) return CUDA_SUCCESS;
  return unsupported("kernel \"" + std::string(node.kernel->name) +
                     "\" has no host body, so the simulator cannot run it; give it one with cgrt::host_body");
}

CUresult ResolveKernel(CUkernel* kernel, const driver::KernelIdentity* identity) {
  const Lock lock(state->mutex);
  if (LoadedKernel* const loaded = find_loaded(identity->symbol); loaded != nullptr) {
    if (loaded->library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    learn(*loaded, *identity);
    *kernel = reinterpret_cast<CUkernel>(const_cast<void*>(identity->symbol));
    return CUDA_SUCCESS;
  }
  const driver::KernelIdentity*& known = state->kernels[identity->symbol];
  if (known == nullptr || known->host_body == nullptr) known = identity;  // the file that has the body knows more
  *kernel = reinterpret_cast<CUkernel>(const_cast<void*>(identity->symbol));
  return CUDA_SUCCESS;
}

CUresult KernelGetFunction(CUfunction* function, CUkernel handle) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = identity_of(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = function_of(kernel, current_context());
  return CUDA_SUCCESS;
}

namespace {

CUresult get_attribute(int* value, CUfunction_attribute attribute, const driver::KernelIdentity* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Dim3& cluster = kernel->resources.cluster;
  const auto compiled = [&](std::uint32_t size) { return cluster == Dim3() ? 0 : static_cast<int>(size); };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = compiled(cluster.x); break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = compiled(cluster.y); break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = compiled(cluster.z); break;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = kernel->resources.max_threads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = kernel->resources.static_shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = kernel->resources.registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = state->options.ptx_version; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = max_dynamic_shared(kernel); break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: {
      const auto found = state->carveouts.find(kernel->symbol);
      *value = found != state->carveouts.end() ? found->second : CU_SHAREDMEM_CARVEOUT_DEFAULT;
      break;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = state->large_clusters.contains(kernel->symbol) ? 1 : 0;
      break;
    default: *value = 0; break;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult KernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice) {
  const Lock lock(state->mutex);
  return get_attribute(value, attribute, identity_of(handle));
}

CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const Lock lock(state->mutex);
  return get_attribute(value, attribute, find_kernel(function));
}

CUresult CtxGetDevResource(CUcontext context, CUdevResource* resource, CUdevResourceType type) {
  const Lock lock(state->mutex);
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return unsupported("the simulator has no resources but multiprocessors");
  resource->type = type;
  resource->sm.smCount = kMultiprocessors;
  return CUDA_SUCCESS;
}

CUresult CtxGetStreamPriorityRange(int* least, int* greatest) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *least = 0;
  *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult KernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice) {
  const Lock lock(state->mutex);
  const driver::KernelIdentity* kernel = identity_of(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    if (value != 0) state->large_clusters.insert(kernel->symbol);
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    const bool is_percentage = value >= CU_SHAREDMEM_CARVEOUT_DEFAULT && value <= CU_SHAREDMEM_CARVEOUT_MAX_SHARED;
    if (is_percentage) state->carveouts[kernel->symbol] = value;
    return is_percentage ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return unsupported("the simulator cannot set that kernel attribute");
  }
  if (value < 0 || value > kOptInShared - kernel->resources.static_shared_bytes) return CUDA_ERROR_INVALID_VALUE;
  state->max_dynamic_shared[kernel->symbol] = value;
  return CUDA_SUCCESS;
}

CUresult FuncGetName(const char** name, CUfunction function) {
  const Lock lock(state->mutex);
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->tag != nullptr ? kernel->tag->name() : kernel->name;  // mangled, as a driver's answer
  return CUDA_SUCCESS;
}

CUresult FuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  const Lock lock(state->mutex);
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= kernel->parameter_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->parameter_offsets[index];
  if (size != nullptr) *size = kernel->parameter_sizes[index];
  return CUDA_SUCCESS;
}

namespace {

// An event that a launch records before its end; null: none.
struct LaunchEvent {
  CUevent event = nullptr;
  CUgraphEdgeData edge{};
};

bool take_event(const CUlaunchAttribute& attribute, LaunchEvent* out) {
  if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
    out->event = attribute.value.programmaticEvent.event;
    out->edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    out->edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    return true;
  }
  if (attribute.id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) return false;
  out->event = attribute.value.launchCompletionEvent.event;
  out->edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
  return true;
}

// The node that a launch asks for.
CUresult make_launch(const CUlaunchConfig& config, const driver::KernelIdentity* kernel, CUstream stream,
                     void** arguments, std::shared_ptr<NodeData>* out, bool* programmatic, LaunchEvent* event) {
  const Dim3 grid(config.gridDimX, config.gridDimY, config.gridDimZ);
  const Dim3 block(config.blockDimX, config.blockDimY, config.blockDimZ);
  if (const CUresult bad = check_launch(kernel, grid, block, config.sharedMemBytes); bad != CUDA_SUCCESS) return bad;
  std::shared_ptr<NodeData> data = kernel_data(kernel, stream->context, grid, block, config.sharedMemBytes, arguments);
  // What the node has unless the launch says otherwise: its stream's priority, its kernel's cluster.
  if (stream->priority != 0) data->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = stream->priority;
  if (const Dim3& compiled = kernel->resources.cluster; compiled != Dim3()) {
    data->attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim = {compiled.x, compiled.y, compiled.z};
  }
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      *programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
      continue;
    }
    if (take_event(attribute, event)) {
      if (!state->events.contains(event->event)) return CUDA_ERROR_INVALID_VALUE;
      if (event->event->timing) return CUDA_ERROR_NOT_SUPPORTED;
      continue;
    }
    CUlaunchAttributeValue& value = data->attributes[attribute.id] = attribute.value;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY) value.priority = clamped_priority(value.priority);
  }
  *out = std::move(data);
  return check_attributes(**out);
}

}  // namespace

CUresult LaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void**) {
  const Lock lock(state->mutex);
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(config->hStream, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<NodeData> data;
  bool programmatic = false;
  LaunchEvent event;
  result = make_launch(*config, kernel, stream, arguments, &data, &programmatic, &event);
  if (result != CUDA_SUCCESS) {
    if (capturing) invalidate(*stream->capture);  // as the driver does, and for no other kind of node
    return result;
  }
  if (capturing) {
    const CUgraphNode node = capture_node(stream, data, programmatic);
    if (event.event != nullptr) {
      event.event->capture_id = stream->capture->id;
      event.event->frontier = {Dependency{node, event.edge}};
    }
    return CUDA_SUCCESS;
  }
  if (result = check_body(*data); result != CUDA_SUCCESS) return result;
  MarkerRef done;
  if (event.event != nullptr) {  // when the kernel has ended, which is late enough
    done = std::make_shared<Marker>();
    event.event->capture_id = 0;
    event.event->record = done;
  }
  enqueue(
      stream, [data] { run_node(*data); }, {}, std::move(done));
  return CUDA_SUCCESS;
}

CUresult OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                   std::size_t shared_bytes) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *blocks = blocks_per_multiprocessor(kernel, block_size, shared_bytes);
  return *blocks >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult OccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function, int blocks, int block_size) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const cudaOccDeviceProp device = occupancy_device();
  cudaOccFuncAttributes attributes = occupancy_function(kernel);
  attributes.maxDynamicSharedSizeBytes = static_cast<std::size_t>(max_dynamic_shared(kernel));
  const cudaOccDeviceState device_state;
  return cudaOccAvailableDynamicSMemPerBlock(bytes, &device, &attributes, &device_state, blocks, block_size) ==
                 CUDA_OCC_SUCCESS
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult OccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *size = largest_cluster(kernel);
  return CUDA_SUCCESS;
}

// As an H200 answered: multiprocessors that are left over in its clusters of processors hold none.
CUresult OccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Dim3 block(config->blockDimX, config->blockDimY, config->blockDimZ);
  const int per_multiprocessor =
      blocks_per_multiprocessor(kernel, static_cast<int>(block.count()), config->sharedMemBytes);
  if (per_multiprocessor < 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      size = Dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z).count();
    }
  }
  const bool is_allowed = size <= kPortableCluster || state->large_clusters.contains(kernel->symbol);
  if (size == 0 || size > kLargeCluster || !is_allowed) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  // Multiprocessors, by size - 1. Of more than 8 blocks only those of 16 were asked for.
  constexpr int kUsable[] = {132, 132, 132, 124, 124, 120, 120, 120, 112, 112, 112, 112, 112, 112, 112, 112};
  const bool has_room = size <= static_cast<std::uint64_t>(largest_cluster(kernel));
  *clusters = has_room ? kUsable[size - 1] * per_multiprocessor / static_cast<int>(size) : 0;
  return CUDA_SUCCESS;
}

CUresult FuncLoad(CUfunction function) {
  const Lock lock(state->mutex);
  return find_kernel(function) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult OccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of_block,
                                        std::size_t shared_bytes, int) {
  const Lock lock(state->mutex);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const driver::KernelIdentity* kernel = find_kernel(function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const cudaOccDeviceProp device = occupancy_device();
  const cudaOccFuncAttributes attributes = occupancy_function(kernel);
  const cudaOccDeviceState device_state;
  return cudaOccMaxPotentialOccupancyBlockSize(grid, block, &device, &attributes, &device_state, shared_of_block,
                                               shared_bytes) == CUDA_OCC_SUCCESS
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cgrt::simulator
