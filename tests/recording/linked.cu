// A program that is linked against libcuda.so.1, and whose child process makes a graph, too.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

static void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

static void launch_one(int nodes) {
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode last = nullptr;
  for (int i = 0; i < nodes; ++i) CHECK(cuGraphAddEmptyNode(&last, graph, i == 0 ? nullptr : &last, i == 0 ? 0 : 1));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
}

int main() {
  const pid_t child = fork();  // before CUDA is used
  launch_one(child == 0 ? 3 : 2);
  if (child == 0) return 0;
  int status = 1;
  waitpid(child, &status, 0);
  std::puts("linked: done");
  return status;
}
