// libcuda.so.1 with a kernel launch, a few calls for executables and a capture that fails, so that what `graphdump run`
// preloads is tried without a GPU. All arguments must arrive.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

extern "C" {

int cuLaunchKernel(void*, unsigned grid_x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, void*,
                   void** parameters, void**) {
  // Those on the stack, too.
  return grid_x == 7 && shared == 9 && *static_cast<int*>(*parameters) == 11 ? 0 : 1;
}

// The executable is 16 and its node 32; parameters begin with 33 for the one call and 34 for the other.
int cuGraphInstantiateWithFlags(std::uintptr_t* exec, void*, unsigned long long) {
  *exec = 16;
  return 0;
}
int cuGraphExecKernelNodeSetParams_v2(std::uintptr_t exec, std::uintptr_t node, const std::uint64_t* params) {
  return exec == 16 && node == 32 && params[0] == 33 ? 0 : 1;
}
int cuGraphExecNodeSetParams(std::uintptr_t exec, std::uintptr_t node, std::uint64_t* params) {
  return exec == 16 && node == 32 && params[0] == 34 ? 0 : 1;
}
int cuGraphNodeSetEnabled(std::uintptr_t exec, std::uintptr_t node, unsigned is_enabled) {
  return exec == 16 && node == 32 && is_enabled == 1 ? 0 : 1;
}
int cuGraphInstantiateWithParams(std::uintptr_t* exec, void*, void* params) {
  if (params == nullptr) return 1;
  *exec = 17;
  return 0;
}
int cuGraphLaunch(std::uintptr_t exec, void*) { return exec == 16 || exec == 17 ? 0 : 1; }
int cuGraphLaunch_ptsz(std::uintptr_t exec, void*) { return exec == 16 || exec == 17 ? 0 : 1; }
void (*while_destroying)() = nullptr;  // called when the handle is free
int cuGraphExecDestroy(std::uintptr_t exec) {
  if (while_destroying != nullptr) while_destroying();
  return exec == 16 ? 0 : 1;
}

// A capture that an allocation ends, with the lines of the driver's log.
using Callback = void (*)(void* data, int level, char* text, std::size_t length);
static struct {
  Callback callback;
  void* data;
} listeners[4];
static int listener_count = 0;
int cuLogsRegisterCallback(Callback callback, void* data, void**) {
  if (listener_count == 4) return 1;
  listeners[listener_count++] = {callback, data};
  return 0;
}
int cuStreamBeginCapture_v2(void*, int) { return 0; }
int cuStreamBeginCapture_v2_ptsz(void*, int) { return 0; }
int cuMemAlloc_v2(std::uintptr_t*, std::size_t) {
  for (const char* line : {"API call conflicts with a stream capture sequence initiated from the calling thread",
                           "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemAlloc_v2"}) {
    char text[128];
    std::strcpy(text, line);
    for (int i = 0; i < listener_count; ++i) listeners[i].callback(listeners[i].data, 0, text, sizeof(text));
  }
  return 900;
}
int cuStreamEndCapture(void*, void** graph) {
  *graph = nullptr;
  return 901;
}

// One that succeeds.
int cuStreamEndCapture_ptsz(void*, void** graph) {
  *graph = reinterpret_cast<void*>(48);
  return 0;
}

// Enough for the recorder to use it: it needs many functions, of which it calls few.
static int accept() { return 0; }
static int refuse() { return 1; }
int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  *function = is("cuLaunchKernel")           ? reinterpret_cast<void*>(&cuLaunchKernel)
              : is("cuLogsRegisterCallback") ? reinterpret_cast<void*>(&cuLogsRegisterCallback)
              : is("cuInit")                 ? reinterpret_cast<void*>(&accept)
                                             : reinterpret_cast<void*>(&refuse);
  return 0;
}
}
