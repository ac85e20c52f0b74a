// Parameters of an executable set one by one, for graphdump run: check_set_params.sh compares what is recorded with
// graphs that have these parameters from the start, which this program instantiates as well. Checks what the launches
// compute. Prints what the calls cost the host in a graph of 1,000 kernels: with --cost nothing else is done.
#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int kCount = 1024;

__global__ void scale(float* x, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] *= factor;
}

static void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

// A launch of scale, which lives as long as what it is given to.
struct Kernel {
  float* x;
  float factor;
  int count = kCount;
  unsigned blocks = kCount / 256;
  void* arguments[3] = {&x, &factor, &count};
  cudaKernelNodeParams params() {
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(&scale);
    params.gridDim = dim3(blocks);
    params.blockDim = dim3(kCount / blocks);
    params.kernelParams = arguments;
    return params;
  }
};

// What a graph does: `first` becomes `start` in each element and is scaled by `factor`, copied to `second` and scaled
// there by `child_factor`; then an event is recorded and a number of the host's set to 1.
struct Work {
  float *first, *second;
  float start, factor, child_factor;
  unsigned blocks = 4, child_blocks = 4;
  cudaEvent_t event;
  int* told;

  cudaMemsetParams fill() const {
    cudaMemsetParams params{};
    params.dst = first;
    std::memcpy(&params.value, &start, sizeof(start));
    params.elementSize = sizeof(start);
    params.width = kCount;
    params.height = 1;
    return params;
  }
  cudaHostNodeParams host() const {
    cudaHostNodeParams params{};
    params.fn = [](void* number) { *static_cast<int*>(number) = 1; };
    params.userData = told;
    return params;
  }
};

struct Graph {
  explicit Graph(const Work& work) {
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&child_graph, 0));
    const cudaMemsetParams fill_params = work.fill();
    const cudaHostNodeParams host_params = work.host();
    Kernel kernel_launch{work.first, work.factor}, child_launch{work.second, work.child_factor};
    kernel_launch.blocks = work.blocks;
    child_launch.blocks = work.child_blocks;
    const cudaKernelNodeParams kernel_params = kernel_launch.params(), child_params = child_launch.params();
    CHECK(cudaGraphAddKernelNode(&inside, child_graph, nullptr, 0, &child_params));
    CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_params));
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &kernel_params));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, work.second, work.first, kCount * sizeof(float),
                                   cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddChildGraphNode(&child, graph, &copy, 1, child_graph));
    CHECK(cudaGraphAddEventRecordNode(&record, graph, &child, 1, work.event));
    CHECK(cudaGraphAddHostNode(&host, graph, &record, 1, &host_params));
    // The node in the copy that the child graph node holds.
    cudaGraph_t copied;
    size_t count = 1;
    CHECK(cudaGraphChildGraphNodeGetGraph(child, &copied));
    CHECK(cudaGraphGetNodes(copied, &inside, &count));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }

  cudaGraph_t graph, child_graph;
  cudaGraphNode_t fill, kernel, copy, child, inside, record, host;
  cudaGraphExec_t exec;
};

static bool launch(const Graph& graph, const Work& work, cudaStream_t stream) {
  static float result[kCount];
  *work.told = 0;
  CHECK(cudaGraphLaunch(graph.exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(result, work.second, sizeof(result), cudaMemcpyDeviceToHost));
  const float wanted = work.start * work.factor * work.child_factor;
  for (const float one : result) {
    if (one == wanted) continue;
    std::fprintf(stderr, "a launch computed %g, not %g\n", one, wanted);
    return false;
  }
  if (*work.told == 0) std::fprintf(stderr, "the host's function was not called\n");
  return *work.told == 1;
}

// As programs do that were built before CUDA 12: the parameters have no context.
static void set_by_first_version(cudaGraphExec_t exec, cudaGraphNode_t node, const Kernel& kernel) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphExecKernelNodeSetParams", &found, 10010, cudaEnableDefault, &status));
  cudaFunction_t function;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&scale)));
  Kernel copy{kernel.x, kernel.factor};
  CUDA_KERNEL_NODE_PARAMS_v1 params{};
  params.func = function;
  params.gridDimX = kernel.blocks;
  params.blockDimX = kCount / kernel.blocks;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = copy.arguments;
  const CUresult result = reinterpret_cast<CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*)>(
      found)(exec, node, &params);
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "cuGraphExecKernelNodeSetParams: %d\n", static_cast<int>(result));
  std::exit(1);
}

// What the calls cost the host: the first one, those after it, and a launch behind them.
static void measure(cudaStream_t stream, float* x) {
  constexpr int kNodes = 1000;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto us = [](auto time) { return std::chrono::duration<double, std::micro>(time).count(); };
  Kernel kernel{x, 1.0f};
  const cudaKernelNodeParams params = kernel.params();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t nodes[kNodes];
  CHECK(cudaGraphCreate(&graph, 0));
  for (int i = 0; i < kNodes; ++i) {
    CHECK(cudaGraphAddKernelNode(&nodes[i], graph, i == 0 ? nullptr : &nodes[i - 1], i == 0 ? 0 : 1, &params));
  }
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int round = 1; round <= 5; ++round) {
    const auto begin = now();
    CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &params));
    const auto first = now();
    for (int i = 1; i < kNodes; ++i) CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &params));
    const auto all = now();
    CHECK(cudaGraphLaunch(exec, stream));
    const auto launched = now();
    CHECK(cudaStreamSynchronize(stream));
    std::printf("round %d: the first call %.2f us, the others %.2f us each, the launch %.2f us\n", round,
                us(first - begin), us(all - first) / (kNodes - 1), us(launched - all));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) {
  float *a, *b, *c;
  for (float** one : {&a, &b, &c}) CHECK(cudaMalloc(one, kCount * sizeof(float)));
  cudaStream_t stream;
  cudaEvent_t event, other_event;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaEventCreate(&other_event));
  if (argc > 1 && std::strcmp(argv[1], "--cost") == 0) {
    measure(stream, a);
    return 0;
  }

  int told = 0, told_too = 0;
  Work work{a, b, 1.0f, 2.0f, 3.0f, 4, 4, event, &told};
  const Graph graph(work);  // the first one
  bool is_right = launch(graph, work, stream);

  // All of the outer graph; the copy goes to other memory, and the child graph scales that.
  work = {c, b, 4.0f, 5.0f, 3.0f, 8, 4, other_event, &told_too};
  Kernel kernel{work.first, work.factor};
  kernel.blocks = work.blocks;
  const cudaKernelNodeParams kernel_params = kernel.params();
  const cudaMemsetParams fill = work.fill();
  const cudaHostNodeParams host = work.host();
  CHECK(cudaGraphExecMemsetNodeSetParams(graph.exec, graph.fill, &fill));
  CHECK(cudaGraphExecKernelNodeSetParams(graph.exec, graph.kernel, &kernel_params));
  CHECK(cudaGraphExecMemcpyNodeSetParams1D(graph.exec, graph.copy, work.second, work.first, kCount * sizeof(float),
                                           cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphExecEventRecordNodeSetEvent(graph.exec, graph.record, other_event));
  CHECK(cudaGraphExecHostNodeSetParams(graph.exec, graph.host, &host));
  is_right = launch(graph, work, stream) && is_right;
  const Graph first_change(work);  // the second

  // The kernel in the child graph, by the call that takes every kind.
  work.child_factor = 7.0f;
  work.child_blocks = 16;
  Kernel inside{work.second, work.child_factor};
  inside.blocks = work.child_blocks;
  cudaGraphNodeParams any{};
  any.type = cudaGraphNodeTypeKernel;
  any.kernel.func = reinterpret_cast<void*>(&scale);
  any.kernel.gridDim = dim3(inside.blocks);
  any.kernel.blockDim = dim3(kCount / inside.blocks);
  any.kernel.kernelParams = inside.arguments;
  CHECK(cudaGraphExecNodeSetParams(graph.exec, graph.inside, &any));
  is_right = launch(graph, work, stream) && is_right;
  const Graph second_change(work);  // the third

  work.factor = 0.5f;
  kernel.factor = work.factor;
  set_by_first_version(graph.exec, graph.kernel, kernel);
  is_right = launch(graph, work, stream) && is_right;
  const Graph third_change(work);  // the fourth

  // One more, which is counted only, and a node that does not run.
  CHECK(cudaGraphExecKernelNodeSetParams(graph.exec, graph.kernel, &kernel_params));
  CHECK(cudaGraphNodeSetEnabled(graph.exec, graph.kernel, 0));
  work.factor = 1.0f;
  is_right = launch(graph, work, stream) && is_right;

  // A graph that is changed after it was instantiated.
  const Graph changed(work);  // the fifth
  Kernel late{work.first, 9.0f};
  const cudaKernelNodeParams late_params = late.params();
  CHECK(cudaGraphKernelNodeSetParams(changed.kernel, &late_params));
  CHECK(cudaGraphExecMemsetNodeSetParams(changed.exec, changed.fill, &fill));
  is_right = launch(changed, work, stream) && is_right;

  for (const Graph* one : {&graph, &first_change, &second_change, &third_change, &changed}) {
    CHECK(cudaGraphExecDestroy(one->exec));
    CHECK(cudaGraphDestroy(one->graph));
    CHECK(cudaGraphDestroy(one->child_graph));
  }
  std::puts(is_right ? "set_params: done" : "set_params: wrong");
  return is_right ? 0 : 1;
}
