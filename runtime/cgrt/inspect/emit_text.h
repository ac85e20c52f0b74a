// What every program of to_program begins and ends with. Internal to inspect/.
#pragma once

namespace cgrt::inspect {

inline constexpr char kProgramBegin[] =
    R"(// Build and run: nvcc -arch=native THIS_FILE.cu -lcuda && ./a.out      (CUDA 13)
//
// Kernels and host functions do nothing here, and memory holds zeros: what the graph computes is not in its file.

)"
    // Not this file's.
    "#include <cuda.h>\n#include <cuda_runtime.h>\n\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n"
    "#include <initializer_list>\n#include <vector>\n"
    R"(
#define CHECK(call)                                              \
  do {                                                           \
    const CUresult result_ = (call);                             \
    if (result_ != CUDA_SUCCESS) fail(#call, result_, __LINE__); \
  } while (false)

[[noreturn]] void fail(const char* call, CUresult result, int line) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::printf("line %d: %s: %s\n", line, call, name != nullptr ? name : "unknown error");
  std::exit(1);
}

// A parameter of a kernel.
template <unsigned kSize, unsigned kAlign>
struct alignas(kAlign) Bytes {
  unsigned char bytes[kSize];
};

struct Edge {
  unsigned from;  // node
  unsigned char from_port, to_port, type;
};

)";

inline constexpr char kProgramHelpers[] = R"(
void CUDA_CB do_nothing(void*) {}

CUdeviceptr device_memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, bytes));
  CHECK(cuMemsetD8(address, 0, bytes));
  return address;
}

CUdeviceptr managed_memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemsetD8(address, 0, bytes));
  return address;
}

CUdeviceptr pinned_memory(std::size_t bytes) {
  void* address = nullptr;
  CHECK(cuMemHostAlloc(&address, bytes, CU_MEMHOSTALLOC_PORTABLE));
  std::memset(address, 0, bytes);
  return reinterpret_cast<CUdeviceptr>(address);
}

CUdeviceptr pageable_memory(std::size_t bytes) {
  void* const address = std::calloc(bytes, 1);
  if (address == nullptr) fail("calloc", CUDA_ERROR_OUT_OF_MEMORY, __LINE__);
  return reinterpret_cast<CUdeviceptr>(address);
}

CUfunction function_of(const void* kernel) {
  cudaFunction_t function = nullptr;
  if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess) {
    fail("cudaGetFuncBySymbol", CUDA_ERROR_NOT_FOUND, __LINE__);
  }
  return function;
}

void put(unsigned char* arguments, std::size_t at, CUdeviceptr address) {
  std::memcpy(arguments + at, &address, sizeof(address));
}

void store(CUdeviceptr address, unsigned long long value, std::size_t bytes) {
  CHECK(cuMemcpy(address, reinterpret_cast<CUdeviceptr>(&value), bytes));
}

CUgraphEdgeData data_of(const Edge& edge) {
  CUgraphEdgeData data{};
  data.from_port = edge.from_port;
  data.to_port = edge.to_port;
  data.type = edge.type;
  return data;
}

void add(unsigned node, CUgraph graph, std::initializer_list<Edge> edges, CUgraphNodeParams& params) {
  std::vector<CUgraphNode> from;
  std::vector<CUgraphEdgeData> data;
  for (const Edge& edge : edges) {
    from.push_back(nodes[edge.from]);
    data.push_back(data_of(edge));
  }
  CHECK(cuGraphAddNode(&nodes[node], graph, from.data(), data.data(), from.size(), &params));
}

void add_edge(CUgraph graph, unsigned to, const Edge& edge) {
  const CUgraphEdgeData data = data_of(edge);
  CHECK(cuGraphAddDependencies(graph, &nodes[edge.from], &nodes[to], &data, 1));
}

void add_empty(unsigned node, CUgraph graph, std::initializer_list<Edge> edges) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  add(node, graph, edges, params);
}

void add_kernel(unsigned node, CUgraph graph, std::initializer_list<Edge> edges, CUfunction function, dim3 grid,
                dim3 block, unsigned shared_bytes, void** parameters) {
  if (shared_bytes > 48 * 1024) {
    CHECK(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_bytes)));
  }
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = function;
  params.kernel.gridDimX = grid.x;
  params.kernel.gridDimY = grid.y;
  params.kernel.gridDimZ = grid.z;
  params.kernel.blockDimX = block.x;
  params.kernel.blockDimY = block.y;
  params.kernel.blockDimZ = block.z;
  params.kernel.sharedMemBytes = shared_bytes;
  params.kernel.kernelParams = parameters;
  add(node, graph, edges, params);
}

void set_attribute(unsigned node, CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  CHECK(cuGraphKernelNodeSetAttribute(nodes[node], id, &value));
}

struct Operand {
  CUmemorytype type;
  CUdeviceptr address;
  std::size_t pitch;
};

void add_copy(unsigned node, CUgraph graph, std::initializer_list<Edge> edges, const Operand& to, const Operand& from,
              std::size_t width_bytes, std::size_t height, std::size_t depth) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyCtx = context;
  CUDA_MEMCPY3D& copy = params.memcpy.copyParams;
  copy.dstMemoryType = to.type;
  copy.dstDevice = to.address;
  copy.dstHost = reinterpret_cast<void*>(to.address);
  copy.dstPitch = to.pitch;
  copy.dstHeight = height;
  copy.srcMemoryType = from.type;
  copy.srcDevice = from.address;
  copy.srcHost = reinterpret_cast<const void*>(from.address);
  copy.srcPitch = from.pitch;
  copy.srcHeight = height;
  copy.WidthInBytes = width_bytes;
  copy.Height = height;
  copy.Depth = depth;
  add(node, graph, edges, params);
}

void add_memset(unsigned node, CUgraph graph, std::initializer_list<Edge> edges, CUdeviceptr destination,
                unsigned value, unsigned element_bytes, std::size_t width, std::size_t height, std::size_t pitch) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = destination;
  params.memset.pitch = pitch;
  params.memset.value = value;
  params.memset.elementSize = element_bytes;
  params.memset.width = width;
  params.memset.height = height;
  params.memset.ctx = context;
  add(node, graph, edges, params);
}

void begin() {
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuGraphCreate(&graphs[0], 0));
}

void run() {
  std::size_t count = 0;
  CHECK(cuGraphGetNodes(graphs[0], nullptr, &count));
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  const CUresult result = cuGraphInstantiateWithParams(&exec, graphs[0], &params);
  for (CUgraphNode& node : nodes) {
    if (result != CUDA_SUCCESS && node != nullptr && node == params.hErrNode_out) {
      std::printf("not instantiated because of node %d\n", static_cast<int>(&node - nodes));
    }
  }
  CHECK(result);
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  std::printf("%zu nodes, beside those inside of them: instantiated, launched, done\n", count);
}
)";

}  // namespace cgrt::inspect
