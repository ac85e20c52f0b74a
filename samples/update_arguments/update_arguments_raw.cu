// update_arguments_raw: the ways of update_arguments.cu that the CUDA runtime has. What changes arguments on the device
// needs a kernel and a table of one's own.
//
//   update_arguments_raw

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../common/options.h"
#include "chain.h"

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

void chain(cudaStream_t stream, float* x) {
  for (int i = 0; i < kKernels; ++i) add_one<<<kGrid, kBlock, 0, stream>>>(x, kCount);
  CHECK(cudaGetLastError());
}

cudaGraph_t capture(cudaStream_t stream, float* x) {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  chain(stream, x);
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

template <class Launch>
void measure(cudaStream_t stream, const std::vector<float*>& buffers, const char* way, const Launch& launch) {
  for (float* buffer : buffers) CHECK(cudaMemsetAsync(buffer, 0, kCount * sizeof(float), stream));
  StepTimes times;
  for (int step = 0; step < kSteps; ++step) {
    CHECK(cudaStreamSynchronize(stream));
    const auto begin = std::chrono::steady_clock::now();
    launch(buffers[static_cast<std::size_t>(step % kBuffers)]);
    const double launched = microseconds_since(begin);
    CHECK(cudaStreamSynchronize(stream));
    if (step < kWarmUpSteps) continue;
    times.launched.push_back(launched);
    times.done.push_back(microseconds_since(begin));
  }
  std::vector<float> found(kCount);
  for (float* buffer : buffers) {
    CHECK(cudaMemcpyAsync(found.data(), buffer, kCount * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (const float value : found) {
      if (value == float{kKernels} * (kSteps / kBuffers)) continue;
      std::fprintf(stderr, "%s: a buffer has %f, not %d.\n", way, static_cast<double>(value),
                   kKernels * (kSteps / kBuffers));
      std::exit(1);
    }
  }
  print(way, times);
}

int main(int argc, char** argv) {
  const char* const about = "The ways of update_arguments that the CUDA runtime has.";
  if (const auto exit_code = parse_no_options("update_arguments_raw", about, argc, argv)) return *exit_code;

  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(error));
    return 77;
  }

  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<float*> buffers(kBuffers);
  for (float*& buffer : buffers) CHECK(cudaMalloc(&buffer, kCount * sizeof(float)));
  std::printf("%d kernels, another buffer at every step:\n", kKernels);

  measure(stream, buffers, "eager", [&](float* x) { chain(stream, x); });

  cudaGraph_t graph = capture(stream, buffers[0]);
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  measure(stream, buffers, "capture again, update, launch", [&](float* x) {
    cudaGraph_t next = capture(stream, x);
    cudaGraphExecUpdateResultInfo result{};
    CHECK(cudaGraphExecUpdate(exec, next, &result));
    CHECK(cudaGraphDestroy(next));
    CHECK(cudaGraphLaunch(exec, stream));
  });
  CHECK(cudaGraphExecDestroy(exec));

  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::size_t count = kKernels;
  std::vector<cudaGraphNode_t> nodes(count);
  CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  measure(stream, buffers, "set the parameters of each, launch", [&](float* x) {
    int elements = kCount;
    void* arguments[] = {&x, &elements};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(add_one);
    params.gridDim = dim3(kGrid);
    params.blockDim = dim3(kBlock);
    params.kernelParams = arguments;
    for (cudaGraphNode_t node : nodes) CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    CHECK(cudaGraphLaunch(exec, stream));
  });

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  for (float* buffer : buffers) CHECK(cudaFree(buffer));
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
