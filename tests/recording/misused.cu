// Executables that are launched in ways that `graphdump lint` of a run's folder warns of; with --clean, twins that it
// has nothing to say of. check_misused.sh compares.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#define CHECK(call)                                                                 \
  do {                                                                              \
    const cudaError_t error = (call);                                               \
    if (error != cudaSuccess) {                                                     \
      std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (false)

__global__ void scale(float* out, const float* in, float factor) { out[threadIdx.x] = factor * in[threadIdx.x]; }

static void CUDART_CB add_one(void* counter) { ++*static_cast<int*>(counter); }
static void CUDART_CB delete_counter(void* counter) { delete static_cast<int*>(counter); }

struct Streams {
  cudaStream_t one, other;
};

template <class Record>
static cudaGraph_t capture(cudaStream_t stream, Record record) {
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  record(stream);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned flags = 0) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, flags));
  return exec;
}

static float* allocate(std::size_t bytes) {
  float* memory;
  CHECK(cudaMalloc(&memory, bytes));
  CHECK(cudaMemset(memory, 0, bytes));
  return memory;
}

// shared-memory: both clear and use one workspace, and are launched into two streams.
static void share_workspace(const Streams& streams, bool is_clean) {
  float *const in = allocate(4096), *const workspace = allocate(4096);
  float* const second = is_clean ? allocate(4096) : workspace;
  for (const auto& [stream, scratch] : {std::pair{streams.one, workspace}, std::pair{streams.other, second}}) {
    float* const out = allocate(4096);
    const cudaGraph_t graph = capture(stream, [&, scratch = scratch](cudaStream_t s) {
      CHECK(cudaMemsetAsync(scratch, 0, 4096, s));
      scale<<<1, 32, 0, s>>>(out, scratch, 2.0f);
      scale<<<1, 32, 0, s>>>(out, in, 2.0f);
    });
    CHECK(cudaGraphLaunch(instantiate(graph), stream));
  }
}

// first-launch and several-streams.
static void launch_without_upload(const Streams& streams, bool is_clean) {
  float *const a = allocate(4096), *const b = allocate(4096);
  const cudaGraph_t graph = capture(streams.one, [&](cudaStream_t s) {
    for (int i = 0; i < 100; ++i) scale<<<1, 32, 0, s>>>(a, b, 2.0f), scale<<<1, 32, 0, s>>>(b, a, 0.5f);
  });
  const cudaGraphExec_t exec = instantiate(graph);
  if (is_clean) CHECK(cudaGraphUpload(exec, streams.one));
  CHECK(cudaGraphLaunch(exec, streams.one));
  CHECK(cudaGraphLaunch(exec, is_clean ? streams.one : streams.other));
}

// host-owner: a counter that nobody but the caller keeps alive.
static void count_on_host(const Streams& streams, bool is_clean) {
  int* const counter = new int(0);
  const cudaGraph_t graph =
      capture(streams.one, [&](cudaStream_t s) { CHECK(cudaLaunchHostFunc(s, add_one, counter)); });
  if (is_clean) {
    cudaUserObject_t owner;
    CHECK(cudaUserObjectCreate(&owner, counter, delete_counter, 1, cudaUserObjectNoDestructorSync));
    CHECK(cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove));
  }
  CHECK(cudaGraphLaunch(instantiate(graph), streams.one));
}

// stack-memory: a copy out of a local array, which a later launch reads again.
static void copy_from_stack(const Streams& streams, bool is_clean) {
  float local[64] = {1.0f};
  float* pinned;
  CHECK(cudaMallocHost(&pinned, sizeof(local)));
  std::memcpy(pinned, local, sizeof(local));
  float* const to = allocate(sizeof(local));
  const cudaGraph_t graph = capture(streams.one, [&](cudaStream_t s) {
    CHECK(cudaMemcpyAsync(to, is_clean ? pinned : local, sizeof(local), cudaMemcpyHostToDevice, s));
  });
  CHECK(cudaGraphLaunch(instantiate(graph), streams.one));
  CHECK(cudaStreamSynchronize(streams.one));
}

int main(int argc, char** argv) {
  const bool is_clean = argc > 1 && std::strcmp(argv[1], "--clean") == 0;
  Streams streams;
  CHECK(cudaStreamCreateWithFlags(&streams.one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&streams.other, cudaStreamNonBlocking));
  share_workspace(streams, is_clean);
  launch_without_upload(streams, is_clean);
  count_on_host(streams, is_clean);
  copy_from_stack(streams, is_clean);
  CHECK(cudaDeviceSynchronize());
  std::puts("misused: done");
}
