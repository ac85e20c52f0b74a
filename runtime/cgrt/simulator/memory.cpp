// Memory of the simulated devices, copies and memsets. Device memory is host memory that only the
// simulator touches; it begins as 0xA5, so that reading what nobody wrote shows.
#include <cstdlib>
#include <cstring>

#include "cgrt/simulator/state.h"
#include "cgrt/simulator/table.h"

namespace cgrt::simulator {
namespace {

constexpr std::size_t kAlignment = 256;

CUresult allocate_now(CUdeviceptr* out, std::size_t bytes, bool on_device) {
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  const CUcontext context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return allocate(out, bytes, on_device, context);
}

}  // namespace

std::uint64_t next_buffer_id() {
  static std::uint64_t last = 0;
  return ++last;
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes, bool on_device, CUcontext context) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t& used = state->used_bytes[static_cast<std::size_t>(context->device)];
  if (bytes > state->options.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (on_device && used > state->options.memory_bytes - bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* address = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (address == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(address, 0xA5, bytes);
  if (on_device) used += bytes;
  *out = reinterpret_cast<CUdeviceptr>(address);
  state->memory.emplace(*out, Allocation{bytes, on_device, context, next_buffer_id(), nullptr});
  return CUDA_SUCCESS;
}

namespace {

void release(std::map<CUdeviceptr, Allocation>::iterator allocation) {
  const auto& [address, what] = *allocation;
  if (what.on_device) state->used_bytes[static_cast<std::size_t>(what.context->device)] -= what.bytes;
  state->parked.push_back(reinterpret_cast<void*>(address));
  if (is_idle()) {  // else a held stream's work may still touch it
    for (void* parked : state->parked) std::free(parked);
    state->parked.clear();
  }
  state->memory.erase(allocation);
}

CUresult free_memory(CUdeviceptr address, bool on_device) {
  if (address == 0) return CUDA_SUCCESS;
  if (const CUresult unsafe = check_unsafe_call(); unsafe != CUDA_SUCCESS) return unsafe;
  const auto found = state->memory.find(address);
  const bool is_known = found != state->memory.end() && found->second.origin == Origin::kAllocated;
  if (!is_known || found->second.on_device != on_device) return CUDA_ERROR_INVALID_VALUE;
  run_all();  // a free waits for the device
  if (GraphMemory* const of_graph = found->second.of_graph; of_graph != nullptr) {
    if (!of_graph->is_live) return CUDA_ERROR_INVALID_VALUE;
    of_graph->is_live = false;
    return CUDA_SUCCESS;
  }
  release(found);
  return CUDA_SUCCESS;
}

CUdeviceptr operand(CUmemorytype type, CUdeviceptr device, const void* host, std::size_t x, std::size_t y,
                    std::size_t z, std::size_t pitch, std::size_t height) {
  const CUdeviceptr base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  return base + x + (z * height + y) * pitch;
}

CUdeviceptr source_of(const CUDA_MEMCPY3D& copy) {
  return operand(copy.srcMemoryType, copy.srcDevice, copy.srcHost, copy.srcXInBytes, copy.srcY, copy.srcZ,
                 copy.srcPitch, copy.srcHeight);
}
CUdeviceptr destination_of(const CUDA_MEMCPY3D& copy) {
  return operand(copy.dstMemoryType, copy.dstDevice, copy.dstHost, copy.dstXInBytes, copy.dstY, copy.dstZ,
                 copy.dstPitch, copy.dstHeight);
}

// Bytes from the first to the last that is touched; SIZE_MAX when that does not fit.
std::size_t extent(std::size_t width, std::size_t height, std::size_t depth, std::size_t pitch, std::size_t rows) {
  std::size_t slices = 0, lines = 0, bytes = 0;
  const bool overflows = __builtin_mul_overflow(depth - 1, rows, &slices) ||
                         __builtin_add_overflow(slices, height - 1, &lines) ||
                         __builtin_mul_overflow(lines, pitch, &bytes) || __builtin_add_overflow(bytes, width, &bytes);
  return overflows ? SIZE_MAX : bytes;
}

CUDA_MEMCPY3D linear(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = destination;
  copy.srcDevice = source;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUresult fill_async(CUdeviceptr address, std::size_t pitch, unsigned value, unsigned element_bytes, std::size_t count,
                    std::size_t height, CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (count == 0 || height == 0) return CUDA_SUCCESS;
  auto data = std::make_shared<NodeData>();
  data->type = CU_GRAPH_NODE_TYPE_MEMSET;
  data->context = stream->context;
  data->fill = {address, pitch, value, element_bytes, count, height};
  if (const CUresult bad = check_fill(data->fill); bad != CUDA_SUCCESS) return bad;
  if (capturing) {
    capture_node(stream, std::move(data), false);
  } else {
    enqueue(stream, [data] { run_fill(data->fill); });
  }
  return CUDA_SUCCESS;
}

}  // namespace

const std::pair<const CUdeviceptr, Allocation>* find_allocation(CUdeviceptr address) {
  auto after = state->memory.upper_bound(address);
  if (after == state->memory.begin()) return nullptr;
  --after;
  return address - after->first < after->second.bytes ? &*after : nullptr;
}

bool is_accessible(CUdeviceptr address, std::size_t bytes) {
  const auto* allocation = find_allocation(address);
  if (allocation == nullptr) return true;
  std::size_t room = allocation->second.bytes - (address - allocation->first);
  // Memory that is mapped behind it goes on with it.
  while (bytes > room && allocation->second.origin == Origin::kMapped) {
    bytes -= room;
    allocation = find_allocation(allocation->first + allocation->second.bytes);
    if (allocation == nullptr || allocation->second.origin != Origin::kMapped) return false;
    room = allocation->second.bytes;
  }
  return bytes <= room;
}

void free_variable(CUdeviceptr address) { release(state->memory.find(address)); }

CUresult check_copy(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return unsupported("the simulator does not have arrays");
  }
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (copy.Height > 1 && (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  const auto overlap = [&](std::size_t rows) { return copy.Depth > 1 && rows != 0 && rows < copy.Height; };
  if (overlap(copy.srcHeight) || overlap(copy.dstHeight)) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t read = extent(copy.WidthInBytes, copy.Height, copy.Depth, copy.srcPitch, copy.srcHeight);
  const std::size_t written = extent(copy.WidthInBytes, copy.Height, copy.Depth, copy.dstPitch, copy.dstHeight);
  if (source_of(copy) == 0 || destination_of(copy) == 0) return CUDA_ERROR_INVALID_VALUE;
  return is_accessible(source_of(copy), read) && is_accessible(destination_of(copy), written)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

namespace {

bool is_on_device(CUdeviceptr address) {
  const auto* allocation = find_allocation(address);
  return allocation != nullptr && allocation->second.on_device;
}

}  // namespace

void set_copy(NodeData& node, const CUDA_MEMCPY3D& copy) {
  node.copy = copy;
  node.reads_device = is_on_device(source_of(copy));
  node.writes_device = is_on_device(destination_of(copy));
}

CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS& fill) {
  if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (fill.width == 0 || fill.height == 0 || fill.dst % fill.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  if (fill.width > state->options.memory_bytes) return CUDA_ERROR_INVALID_VALUE;  // before the product wraps
  if (fill.height > 1 && (fill.pitch < fill.width * fill.elementSize || fill.pitch % fill.elementSize != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t bytes = extent(fill.width * fill.elementSize, fill.height, 1, fill.pitch, fill.height);
  return find_allocation(fill.dst) != nullptr && is_accessible(fill.dst, bytes) ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

void run_copy(const CUDA_MEMCPY3D& copy) {
  for (std::size_t z = 0; z < copy.Depth; ++z) {
    for (std::size_t y = 0; y < copy.Height; ++y) {
      std::memmove(reinterpret_cast<void*>(destination_of(copy) + (z * copy.dstHeight + y) * copy.dstPitch),
                   reinterpret_cast<const void*>(source_of(copy) + (z * copy.srcHeight + y) * copy.srcPitch),
                   copy.WidthInBytes);
    }
  }
}

void run_fill(const CUDA_MEMSET_NODE_PARAMS& fill) {
  for (std::size_t y = 0; y < fill.height; ++y) {
    auto* row = reinterpret_cast<unsigned char*>(fill.dst + y * fill.pitch);
    for (std::size_t x = 0; x < fill.width; ++x) std::memcpy(row + x * fill.elementSize, &fill.value, fill.elementSize);
  }
}

CUresult MemAlloc(CUdeviceptr* address, std::size_t bytes) {
  const Lock lock(state->mutex);
  return allocate_now(address, bytes, true);
}

CUresult MemFree(CUdeviceptr address) {
  const Lock lock(state->mutex);
  return free_memory(address, true);
}

CUresult MemHostAlloc(void** address, std::size_t bytes, unsigned) {
  const Lock lock(state->mutex);
  CUdeviceptr allocated = 0;
  const CUresult result = allocate_now(&allocated, bytes, false);
  if (result == CUDA_SUCCESS) *address = reinterpret_cast<void*>(allocated);
  return result;
}

CUresult MemFreeHost(void* address) {
  const Lock lock(state->mutex);
  return free_memory(reinterpret_cast<CUdeviceptr>(address), false);
}

CUresult MemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle) {
  const CUDA_MEMCPY3D copy = linear(destination, source, bytes);
  return Memcpy3DAsync(&copy, handle);
}

CUresult Memcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream handle) {
  const Lock lock(state->mutex);
  CUresult result = CUDA_SUCCESS;
  CUstream stream = find_stream(handle, &result);
  if (stream == nullptr) return result;
  const bool capturing = is_capturing(stream, &result);
  if (result != CUDA_SUCCESS) return result;
  if (copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0) return CUDA_SUCCESS;
  if (const CUresult bad = check_copy(*copy); bad != CUDA_SUCCESS) return bad;
  auto data = std::make_shared<NodeData>();
  data->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  data->context = stream->context;
  set_copy(*data, *copy);
  if (capturing) {
    capture_node(stream, std::move(data), false);
    return CUDA_SUCCESS;
  }
  // The driver stages pageable memory before it returns; the caller may change it at once.
  std::shared_ptr<std::vector<unsigned char>> staged;
  if (find_allocation(source_of(*copy)) == nullptr) {
    const auto* from = reinterpret_cast<const unsigned char*>(source_of(*copy));
    const std::size_t bytes = extent(copy->WidthInBytes, copy->Height, copy->Depth, copy->srcPitch, copy->srcHeight);
    staged = std::make_shared<std::vector<unsigned char>>(from, from + bytes);
    data->copy.srcDevice = reinterpret_cast<CUdeviceptr>(staged->data());
    data->copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    data->copy.srcXInBytes = data->copy.srcY = data->copy.srcZ = 0;
  }
  enqueue(stream, [data, staged] { run_copy(data->copy); });
  if (find_allocation(destination_of(*copy)) != nullptr) return CUDA_SUCCESS;
  // Into pageable memory the driver returns only when the bytes are there.
  return run_until([done = stream->last] { return done->done; });
}

CUresult MemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t count, CUstream stream) {
  return fill_async(address, 0, value, 1, count, 1, stream);
}
CUresult MemsetD16Async(CUdeviceptr address, unsigned short value, std::size_t count, CUstream stream) {
  return fill_async(address, 0, value, 2, count, 1, stream);
}
CUresult MemsetD32Async(CUdeviceptr address, unsigned value, std::size_t count, CUstream stream) {
  return fill_async(address, 0, value, 4, count, 1, stream);
}
CUresult MemsetD2D8Async(CUdeviceptr address, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height, CUstream stream) {
  return fill_async(address, pitch, value, 1, width, height, stream);
}
CUresult MemsetD2D16Async(CUdeviceptr address, std::size_t pitch, unsigned short value, std::size_t width,
                          std::size_t height, CUstream stream) {
  return fill_async(address, pitch, value, 2, width, height, stream);
}
CUresult MemsetD2D32Async(CUdeviceptr address, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                          CUstream stream) {
  return fill_async(address, pitch, value, 4, width, height, stream);
}

// There are no copies here that read the map: it has the address alone, where the driver's has it.
CUresult TensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address,
                              const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                              const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (map == nullptr || rank == 0 || rank > 5 || address == nullptr || sizes == nullptr || box == nullptr ||
      steps == nullptr || (rank > 1 && strides == nullptr) || reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (cuuint32_t i = 0; i < rank; ++i) {
    const bool has_bad_stride = i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= cuuint64_t{1} << 40);
    if (has_bad_stride || sizes[i] == 0 || sizes[i] > cuuint64_t{1} << 32 || box[i] == 0 || box[i] > 256) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  *map = {};
  map->opaque[0] = reinterpret_cast<std::uintptr_t>(address);
  return CUDA_SUCCESS;
}

CUresult PointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  const Lock lock(state->mutex);
  const auto* found = find_allocation(address);
  for (unsigned i = 0; i < count; ++i) {
    // Of an address that the driver does not know, every attribute is 0.
    const auto put = [&](auto value) {
      if (found == nullptr) value = decltype(value){};
      std::memcpy(values[i], &value, sizeof(value));
    };
    const Allocation allocation = found != nullptr ? found->second : Allocation{};
    const bool is_mapped = allocation.origin == Origin::kMapped;
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put(static_cast<unsigned>(allocation.on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put(allocation.context != nullptr ? allocation.context->device : 0);
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: put(found != nullptr ? found->first : CUdeviceptr{0}); break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE: put(allocation.bytes); break;
      case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: put(is_mapped ? found->first : CUdeviceptr{0}); break;
      case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: put(is_mapped ? allocation.bytes : std::size_t{0}); break;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID: put(static_cast<unsigned long long>(allocation.buffer_id)); break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED: put(0u); break;
      case CU_POINTER_ATTRIBUTE_CONTEXT: put(allocation.context); break;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      case CU_POINTER_ATTRIBUTE_HOST_POINTER: put(address); break;
      default: return unsupported("the simulator does not have that pointer attribute");
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace cgrt::simulator
