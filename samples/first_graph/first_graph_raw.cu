// first_graph_raw: what first_graph.cu does but for rebinding, with the CUDA runtime alone. The launch is written
// twice, once for the stream and once for the nodes, and the graph can only be written as DOT.
//
//   first_graph_raw      writes first_graph_raw.dot

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../common/options.h"

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

__global__ void scale(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = factor * in[i];
}

constexpr int kCount = 1 << 20;
constexpr std::size_t kBytes = kCount * sizeof(float);

void check(cudaStream_t stream, float* y, const char* what) {
  std::vector<float> found(kCount);
  CHECK(cudaMemcpyAsync(found.data(), y, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemsetAsync(y, 0xFF, kBytes, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) {
    if (found[i] == 6.0f * static_cast<float>(i % 1000)) continue;
    std::fprintf(stderr, "%s: element %d is %f, not %d.\n", what, i, static_cast<double>(found[i]), 6 * (i % 1000));
    std::exit(1);
  }
  std::printf("%s: y = 6 * x in all %d elements\n", what, kCount);
}

int main(int argc, char** argv) {
  const char* const about = "Does what first_graph does with the CUDA runtime alone, and writes the graph as DOT.";
  if (const auto exit_code = parse_no_options("first_graph_raw", about, argc, argv)) return *exit_code;

  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(error));
    return 77;
  }

  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *x = nullptr, *y = nullptr;
  CHECK(cudaMalloc(&x, kBytes));
  CHECK(cudaMalloc(&y, kBytes));
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 1000);
  CHECK(cudaMemcpyAsync(x, host.data(), kBytes, cudaMemcpyHostToDevice, stream));

  int min_grid = 0, block = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&min_grid, &block, scale));
  const int grid = (kCount + block - 1) / block;
  const auto step = [&] {
    scale<<<grid, block, 0, stream>>>(y, x, 2.0f, kCount);
    CHECK(cudaGetLastError());
    scale<<<grid, block, 0, stream>>>(y, y, 3.0f, kCount);
    CHECK(cudaGetLastError());
  };

  step();  // eager
  check(stream, y, "eager");

  cudaGraph_t captured = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  step();
  CHECK(cudaStreamEndCapture(stream, &captured));

  cudaGraph_t built = nullptr;  // explicit: the same two launches once more, in other words
  CHECK(cudaGraphCreate(&built, 0));
  const float* inputs[] = {x, y};
  float factors[] = {2.0f, 3.0f};
  int count = kCount;
  cudaGraphNode_t previous = nullptr;
  for (int k = 0; k < 2; ++k) {
    void* arguments[] = {&y, &inputs[k], &factors[k], &count};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void*>(scale);
    params.gridDim = dim3(static_cast<unsigned>(grid));
    params.blockDim = dim3(static_cast<unsigned>(block));
    params.kernelParams = arguments;
    cudaGraphNode_t node = nullptr;
    CHECK(cudaGraphAddKernelNode(&node, built, &previous, k == 0 ? 0 : 1, &params));
    previous = node;
  }

  for (cudaGraph_t graph : {captured, built}) {
    cudaGraphExec_t exec = nullptr;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    for (;;) {  // completion
      const cudaError_t done = cudaStreamQuery(stream);
      if (done == cudaSuccess) break;
      if (done != cudaErrorNotReady) CHECK(done);
      // The host is free here.
    }
    check(stream, y, graph == captured ? "captured graph" : "explicit graph");
    CHECK(cudaGraphExecDestroy(exec));
  }

  CHECK(cudaGraphDebugDotPrint(captured, "first_graph_raw.dot", cudaGraphDebugDotFlagsVerbose));
  std::puts("wrote first_graph_raw.dot");

  CHECK(cudaGraphDestroy(built));
  CHECK(cudaGraphDestroy(captured));
  CHECK(cudaFree(y));
  CHECK(cudaFree(x));
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
