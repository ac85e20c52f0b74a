// Plain CUDA, with the runtime alone: a captured graph with two branches and a child, and an explicit one with an IF
// node; the first is updated once.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

struct Range {
  float* first;
  int count;
};

__global__ void scale(Range range, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < range.count) range.first[i] *= factor;
}

__global__ void decide(cudaGraphConditionalHandle handle, const float* value) {
  cudaGraphSetConditional(handle, *value > 0 ? 1u : 0u);
}

static void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

static cudaGraph_t capture(cudaStream_t stream, cudaStream_t other, float* a, float* b, float factor) {
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemsetAsync(a, 0, 4096, stream));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork));
  scale<<<4, 256, 0, stream>>>({a, 1024}, factor);
  scale<<<8, 128, 0, other>>>({b, 1024}, 3.0f);
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaStreamWaitEvent(stream, join));
  CHECK(cudaMemcpyAsync(a, b, 4096, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return graph;
}

int main() {
  float *a, *b;
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  cudaStream_t stream, other;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));

  cudaGraph_t captured = capture(stream, other, a, b, 2.0f);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, captured, 0));
  for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
  cudaGraph_t again = capture(stream, other, a, b, 4.0f);
  cudaGraphExecUpdateResultInfo info{};
  CHECK(cudaGraphExecUpdate(exec, again, &info));
  CHECK(cudaGraphLaunch(exec, stream));

  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  const float* value = a;
  void* arguments[] = {&handle, &value};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(&decide);
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  cudaGraphNode_t first, conditional, child;
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeIf;
  params.conditional.size = 1;
  CHECK(cudaGraphAddNode(&conditional, graph, &first, nullptr, 1, &params));
  CHECK(cudaStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                      cudaStreamCaptureModeThreadLocal));
  scale<<<4, 256, 0, stream>>>({a, 1024}, 0.5f);
  cudaGraph_t same;
  CHECK(cudaStreamEndCapture(stream, &same));
  CHECK(cudaGraphAddChildGraphNode(&child, graph, &conditional, 1, again));
  cudaGraphExec_t explicit_exec;
  CHECK(cudaGraphInstantiate(&explicit_exec, graph, 0));
  for (int i = 0; i < 5; ++i) CHECK(cudaGraphLaunch(explicit_exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  std::puts("plain: done");
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(explicit_exec));
  for (cudaGraph_t one : {captured, again, graph}) CHECK(cudaGraphDestroy(one));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  return 0;
}
