// Graphs of kernels whose times are known: each runs for as long as its argument says. Prints what events measure of
// the whole graph, in us a launch: a chain, and two branches with a child graph.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void spin(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

static void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

static void measure(const char* name, cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  float least = 1e9f;
  for (int i = 0; i < 20; ++i) {
    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (milliseconds < least) least = milliseconds;
  }
  std::printf("%s: %.1f us by events\n", name, 1e3 * least);
}

static cudaGraphNode_t add(cudaGraph_t graph, const cudaGraphNode_t* after, int count, unsigned long long nanoseconds) {
  void* arguments[] = {&nanoseconds};
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(&spin);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, after, count, &params));
  return node;
}

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t chain, branches, child;
  CHECK(cudaGraphCreate(&chain, 0));
  cudaGraphNode_t last = add(chain, nullptr, 0, 60000);
  for (int i = 1; i < 20; ++i) last = add(chain, &last, 1, 60000 + 5000 * i);
  measure("chain", chain, stream);

  CHECK(cudaGraphCreate(&child, 0));
  last = add(child, nullptr, 0, 130000);
  last = add(child, &last, 1, 170000);
  CHECK(cudaGraphCreate(&branches, 0));
  cudaGraphNode_t root = add(branches, nullptr, 0, 70000), ends[3];
  ends[0] = add(branches, &root, 1, 90000);
  ends[1] = add(branches, &root, 1, 110000);
  CHECK(cudaGraphAddChildGraphNode(&ends[2], branches, &root, 1, child));
  add(branches, ends, 3, 150000);
  measure("branches", branches, stream);
  return 0;
}
