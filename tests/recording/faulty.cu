// Captures that fail, one for each argument: what `graphdump explain` is to explain. Without an argument it lists them.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <thread>

__global__ void work(float* x) { x[threadIdx.x] += 1; }

static cudaStream_t stream, other;
static cudaEvent_t event;
static float* buffer;

static void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  cudaStreamBeginCapture(stream, mode);
  work<<<1, 32, 0, stream>>>(buffer);
}
static void end() {
  cudaGraph_t graph = nullptr;
  const cudaError_t result = cudaStreamEndCapture(stream, &graph);
  std::printf("the capture returned %d\n", static_cast<int>(result));
}

static void allocate() {
  begin();
  void* more;
  cudaMalloc(&more, 1024);
  end();
}
static void allocate_in_other_thread() {
  begin();
  std::thread([] {
    void* more;
    cudaMalloc(&more, 1024);
  }).join();
  end();
}
static void synchronize() {
  begin();
  cudaStreamSynchronize(stream);
  end();
}
static void query() {
  begin();
  cudaStreamQuery(stream);
  end();
}
static void copy_synchronously() {
  begin();
  float value = 0;
  cudaMemcpy(&value, buffer, sizeof(value), cudaMemcpyDeviceToHost);
  end();
}
static void use_the_legacy_stream() {
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  std::swap(stream, blocking);
  begin();
  work<<<1, 32>>>(buffer);
  end();
}
static void leave_a_fork_open() {
  begin();
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(other, event);
  work<<<1, 32, 0, other>>>(buffer);
  end();
}
static void wait_for_outside() {
  work<<<1, 32, 0, other>>>(buffer);
  cudaEventRecord(event, other);
  begin();
  cudaStreamWaitEvent(stream, event);
  end();
}
static void merge_two() {
  begin();
  cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal);
  work<<<1, 32, 0, other>>>(buffer);
  cudaEventRecord(event, other);
  cudaStreamWaitEvent(stream, event);
  end();
}
static void query_a_captured_event() {
  begin();
  cudaEventRecord(event, stream);
  cudaEventQuery(event);
  end();
}
static void end_in_other_thread() {
  begin();
  std::thread(&end).join();
  end();
}
static void launch_a_graph() {
  begin();
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphExec_t exec;
  cudaGraphInstantiate(&exec, graph, 0);
  begin();
  cudaGraphLaunch(exec, stream);
  end();
}

static const struct {
  const char* name;
  void (*run)();
} kCases[] = {{"allocate", &allocate},
              {"allocate_in_other_thread", &allocate_in_other_thread},
              {"synchronize", &synchronize},
              {"query", &query},
              {"copy_synchronously", &copy_synchronously},
              {"use_the_legacy_stream", &use_the_legacy_stream},
              {"leave_a_fork_open", &leave_a_fork_open},
              {"wait_for_outside", &wait_for_outside},
              {"merge_two", &merge_two},
              {"query_a_captured_event", &query_a_captured_event},
              {"end_in_other_thread", &end_in_other_thread},
              {"launch_a_graph", &launch_a_graph}};

int main(int argc, char** argv) {
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMalloc(&buffer, 1024);
  work<<<1, 32, 0, stream>>>(buffer);
  cudaStreamSynchronize(stream);
  for (const auto& one : kCases) {
    if (argc < 2) std::puts(one.name);
    if (argc >= 2 && std::strcmp(argv[1], one.name) == 0) one.run();
  }
  return 0;
}
