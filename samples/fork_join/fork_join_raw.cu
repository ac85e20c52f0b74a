// fork_join_raw: what fork_join.cu does, with the CUDA runtime alone. Events fork and join the streams by hand, the
// nodes of the explicit graph are made by calls of their own, and the graph can be written as DOT alone.
//
//   fork_join_raw      writes fork_join_raw.dot

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../common/options.h"
#include "branches.h"

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

struct Work {
  unsigned *values, *sums;

  unsigned* own(int number) const { return values + number * kCount; }
  void branch(cudaStream_t stream, int number) const {
    start<<<kGrid, kBlock, 0, stream>>>(own(number), number);
    CHECK(cudaGetLastError());
    for (int i = 0; i < kKernels; ++i) {
      turn<<<kGrid, kBlock, 0, stream>>>(own(number));
      CHECK(cudaGetLastError());
    }
  }
  void sum_all(cudaStream_t stream) const {
    sum<<<kGrid, kBlock, 0, stream>>>(sums, values);
    CHECK(cudaGetLastError());
  }
};

cudaGraphNode_t add_kernel(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& before, void* kernel,
                           void** arguments) {
  cudaKernelNodeParams params{};
  params.func = kernel;
  params.gridDim = dim3(kGrid);
  params.blockDim = dim3(kBlock);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &params));
  return node;
}

// Runs the graph, checks what it did, and says how long a launch of it takes.
void measure(cudaStream_t stream, const Work& work, const char* way, cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaMemsetAsync(work.sums, 0, kCount * sizeof(unsigned), stream));
  CHECK(cudaGraphLaunch(exec, stream));
  std::vector<unsigned> found(kCount);
  CHECK(cudaMemcpyAsync(found.data(), work.sums, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  if (found != expected_sum()) {
    std::fprintf(stderr, "%s came to another sum.\n", way);
    std::exit(1);
  }
  const double time =
      time_of([&] { CHECK(cudaGraphLaunch(exec, stream)); }, [&] { CHECK(cudaStreamSynchronize(stream)); });
  std::printf("%-34s %7.2f us a launch\n", way, time);
  CHECK(cudaGraphExecDestroy(exec));
}

int main(int argc, char** argv) {
  const char* const about = "Does what fork_join does with the CUDA runtime alone, and writes the graph as DOT.";
  if (const auto exit_code = parse_no_options("fork_join_raw", about, argc, argv)) return *exit_code;

  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(error));
    return 77;
  }

  cudaStream_t streams[kBranches] = {};
  cudaEvent_t fork = nullptr, joins[kBranches] = {};
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  for (int number = 0; number < kBranches; ++number) {
    CHECK(cudaStreamCreateWithFlags(&streams[number], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&joins[number], cudaEventDisableTiming));
  }
  cudaStream_t stream = streams[0];
  Work work{};
  CHECK(cudaMalloc(&work.values, kBranches * kCount * sizeof(unsigned)));
  CHECK(cudaMalloc(&work.sums, kCount * sizeof(unsigned)));
  std::printf("%d branches of %d kernels each, and a sum:\n", kBranches, kKernels + 1);

  cudaGraph_t one_stream = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int number = 0; number < kBranches; ++number) work.branch(stream, number);
  work.sum_all(stream);
  CHECK(cudaStreamEndCapture(stream, &one_stream));
  measure(stream, work, "captured, one stream:", one_stream);

  cudaGraph_t captured = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaEventRecord(fork, stream));
  for (int number = 1; number < kBranches; ++number) CHECK(cudaStreamWaitEvent(streams[number], fork, 0));
  for (int number = 0; number < kBranches; ++number) work.branch(streams[number], number);
  for (int number = 1; number < kBranches; ++number) {
    CHECK(cudaEventRecord(joins[number], streams[number]));
    CHECK(cudaStreamWaitEvent(stream, joins[number], 0));
  }
  work.sum_all(stream);
  CHECK(cudaStreamEndCapture(stream, &captured));
  measure(stream, work, "captured, branches in 4 streams:", captured);

  cudaGraph_t built = nullptr;
  CHECK(cudaGraphCreate(&built, 0));
  std::vector<cudaGraphNode_t> ends;
  for (int number = 0; number < kBranches; ++number) {
    unsigned* own = work.own(number);
    void* start_arguments[] = {&own, &number};
    cudaGraphNode_t last = add_kernel(built, {}, reinterpret_cast<void*>(&start), start_arguments);
    void* turn_arguments[] = {&own};
    for (int i = 0; i < kKernels; ++i) last = add_kernel(built, {last}, reinterpret_cast<void*>(&turn), turn_arguments);
    ends.push_back(last);
  }
  const unsigned* values = work.values;
  void* sum_arguments[] = {&work.sums, &values};
  add_kernel(built, ends, reinterpret_cast<void*>(&sum), sum_arguments);
  measure(stream, work, "built, nodes by hand:", built);

  CHECK(cudaGraphDebugDotPrint(captured, "fork_join_raw.dot", cudaGraphDebugDotFlagsVerbose));
  std::puts("wrote fork_join_raw.dot");

  for (cudaGraph_t graph : {one_stream, captured, built}) CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(work.sums));
  CHECK(cudaFree(work.values));
  for (int number = 0; number < kBranches; ++number) {
    CHECK(cudaEventDestroy(joins[number]));
    CHECK(cudaStreamDestroy(streams[number]));
  }
  CHECK(cudaEventDestroy(fork));
  return 0;
}
