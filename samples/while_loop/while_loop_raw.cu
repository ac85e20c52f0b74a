// while_loop_raw: what while_loop.cu does, with the CUDA runtime alone. A capture into the body that fails would
// destroy the body and leave a graph that crashes, and the graph can be written as DOT alone.
//
//   while_loop_raw      writes while_loop_raw.dot

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../common/options.h"
#include "jacobi.h"

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

__global__ void test_for_graph(cudaGraphConditionalHandle again, unsigned* change, int* tests) {
  cudaGraphSetConditional(again, __uint_as_float(*change) > kTolerance);
  *change = 0;
  *tests += 1;
}
__global__ void test_for_host(volatile int* again, unsigned* change, int* tests) {
  *again = __uint_as_float(*change) > kTolerance;
  *change = 0;
  *tests += 1;
}

struct Solution {
  std::vector<float> points;
  int tests = 0;
  double microseconds = 0;
};

struct Problem {
  cudaStream_t stream;
  float *u, *v;
  unsigned* change;
  int* tests;

  void sweeps() const {
    const dim3 grid(kGridX, kGridY), block(kBlockX, kBlockY);
    sweep<<<grid, block, 0, stream>>>(v, u, change);
    CHECK(cudaGetLastError());
    sweep<<<grid, block, 0, stream>>>(u, v, change);
    CHECK(cudaGetLastError());
  }

  template <class Loop>
  Solution solve(const Loop& loop) const {
    Solution solution{walls()};
    for (int run = 0; run < 2; ++run) {  // the first is not timed
      const std::vector<float> start = walls();
      CHECK(cudaMemcpyAsync(u, start.data(), kPoints * sizeof(float), cudaMemcpyHostToDevice, stream));
      CHECK(cudaMemcpyAsync(v, start.data(), kPoints * sizeof(float), cudaMemcpyHostToDevice, stream));
      CHECK(cudaMemsetAsync(change, 0, sizeof(unsigned), stream));
      CHECK(cudaMemsetAsync(tests, 0, sizeof(int), stream));
      CHECK(cudaStreamSynchronize(stream));
      const auto begin = std::chrono::steady_clock::now();
      loop();
      solution.microseconds =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    }
    CHECK(cudaMemcpyAsync(solution.points.data(), u, kPoints * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(&solution.tests, tests, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    return solution;
  }
};

void print(const char* what, const Solution& solution) {
  std::printf("%-18s %d sweeps, %d tests, %.0f us, %.2f us a test\n", what, solution.tests * kSweepsPerTest,
              solution.tests, solution.microseconds, solution.microseconds / solution.tests);
}

int main(int argc, char** argv) {
  const char* const about = "Does what while_loop does with the CUDA runtime alone, and writes the graph as DOT.";
  if (const auto exit_code = parse_no_options("while_loop_raw", about, argc, argv)) return *exit_code;

  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU (%s)\n", cudaGetErrorString(error));
    return 77;
  }

  Problem problem{};
  CHECK(cudaStreamCreateWithFlags(&problem.stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&problem.u, kPoints * sizeof(float)));
  CHECK(cudaMalloc(&problem.v, kPoints * sizeof(float)));
  CHECK(cudaMalloc(&problem.change, sizeof(unsigned)));
  CHECK(cudaMalloc(&problem.tests, sizeof(int)));
  int* again_on_host = nullptr;
  CHECK(cudaMallocHost(&again_on_host, sizeof(int)));

  cudaGraph_t turn = nullptr;
  CHECK(cudaStreamBeginCapture(problem.stream, cudaStreamCaptureModeThreadLocal));
  problem.sweeps();
  test_for_host<<<1, 1, 0, problem.stream>>>(again_on_host, problem.change, problem.tests);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamEndCapture(problem.stream, &turn));
  cudaGraphExec_t turn_exec = nullptr;
  CHECK(cudaGraphInstantiate(&turn_exec, turn, 0));
  const Solution by_host = problem.solve([&] {
    do {
      CHECK(cudaGraphLaunch(turn_exec, problem.stream));
      CHECK(cudaStreamSynchronize(problem.stream));
    } while (*static_cast<volatile int*>(again_on_host) != 0);
  });
  print("host-checked loop:", by_host);

  cudaGraph_t graph = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle again{};
  CHECK(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = again;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t loop = nullptr;
  CHECK(cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &params));
  cudaGraph_t body = params.conditional.phGraph_out[0];
  CHECK(cudaStreamBeginCaptureToGraph(problem.stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  problem.sweeps();
  test_for_graph<<<1, 1, 0, problem.stream>>>(again, problem.change, problem.tests);
  CHECK(cudaGetLastError());
  CHECK(cudaStreamEndCapture(problem.stream, &body));
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  const Solution by_graph = problem.solve([&] {
    CHECK(cudaGraphLaunch(exec, problem.stream));
    CHECK(cudaStreamSynchronize(problem.stream));
  });
  print("while node:", by_graph);

  if (by_graph.points != by_host.points || by_graph.tests != by_host.tests) {
    std::fputs("The two loops came to different results.\n", stderr);
    return 1;
  }
  std::printf("the same %d values, %.6f in the middle\n", kPoints,
              static_cast<double>(by_graph.points[kPoints / 2 + kSide / 2]));
  CHECK(cudaGraphDebugDotPrint(graph, "while_loop_raw.dot", cudaGraphDebugDotFlagsVerbose));
  std::puts("wrote while_loop_raw.dot");

  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphExecDestroy(turn_exec));
  CHECK(cudaGraphDestroy(turn));
  CHECK(cudaFreeHost(again_on_host));
  for (void* memory : {static_cast<void*>(problem.tests), static_cast<void*>(problem.change),
                       static_cast<void*>(problem.v), static_cast<void*>(problem.u)}) {
    CHECK(cudaFree(memory));
  }
  CHECK(cudaStreamDestroy(problem.stream));
  return 0;
}
