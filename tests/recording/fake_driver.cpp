// libcuda.so.1 with launches of kernels and graphs and nothing else, so that what `graphdump run` preloads is tried
// without a GPU.

#include <cstring>

extern "C" {

int cuLaunchKernel(void*, unsigned grid_x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, void*,
                   void** parameters, void**) {
  // All arguments must arrive, those on the stack, too.
  return grid_x == 7 && shared == 9 && *static_cast<int*>(*parameters) == 11 ? 0 : 1;
}

int cuGraphInstantiateWithFlags(void** exec, void*, unsigned long long) {
  static int made = 0;
  *exec = &made;
  return 0;
}
int cuGraphInstantiateWithParams(void** exec, void*, void*) {
  static int made = 0;
  *exec = &made;
  return 0;
}
int cuGraphLaunch(void*, void*) { return 0; }
int cuGraphLaunch_ptsz(void*, void*) { return 0; }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int*) {
  const bool is_known = std::strcmp(name, "cuLaunchKernel") == 0;
  *function = is_known ? reinterpret_cast<void*>(&cuLaunchKernel) : nullptr;
  return is_known ? 0 : 500;
}
}
