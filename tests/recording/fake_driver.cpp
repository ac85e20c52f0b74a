// libcuda.so.1 with a kernel launch and a few calls for executables, so that what `graphdump run` preloads is tried
// without a GPU. All arguments must arrive.

#include <cstdint>
#include <cstring>

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
int cuGraphInstantiateWithParams(std::uintptr_t* exec, void*, void*) {
  *exec = 17;
  return 0;
}
int cuGraphLaunch(std::uintptr_t exec, void*) { return exec == 16 || exec == 17 ? 0 : 1; }
int cuGraphLaunch_ptsz(std::uintptr_t exec, void*) { return exec == 16 || exec == 17 ? 0 : 1; }
int cuGraphExecDestroy(std::uintptr_t exec) { return exec == 16 ? 0 : 1; }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  const bool is_known = std::strcmp(name, "cuLaunchKernel") == 0;
  *function = is_known ? reinterpret_cast<void*>(&cuLaunchKernel) : nullptr;
  return is_known ? 0 : 500;
}
}
