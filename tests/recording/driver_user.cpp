// Launches a kernel of the fake driver. As a program: by the four ways in which programs reach a driver, one of them
// through this file as a plugin that is linked against it and loaded late. Then makes and launches executable graphs.
// Fails when a launch does.
//   driver_user [PLUGIN]

#include <dlfcn.h>

#include <cstdio>

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

static int call(Launch launch) {
  int value = 11;
  void* parameters[] = {&value};
  return launch(nullptr, 7, 1, 1, 1, 1, 1, 9, nullptr, parameters, nullptr);
}

// Null is the legacy stream to the one function and the per-thread one to the other, and each has a handle.
static bool launch_graph(void* driver) {
  using Instantiate = int (*)(void**, void*, unsigned long long);
  using LaunchGraph = int (*)(void*, void*);
  const auto instantiate = reinterpret_cast<Instantiate>(dlsym(driver, "cuGraphInstantiateWithFlags"));
  const auto legacy = reinterpret_cast<LaunchGraph>(dlsym(driver, "cuGraphLaunch"));
  const auto per_thread = reinterpret_cast<LaunchGraph>(dlsym(driver, "cuGraphLaunch_ptsz"));
  void* exec = nullptr;
  return instantiate(&exec, nullptr, 0) == 0 && legacy(exec, nullptr) == 0 && per_thread(exec, nullptr) == 0 &&
         legacy(exec, reinterpret_cast<void*>(2)) == 0 && per_thread(exec, reinterpret_cast<void*>(1)) == 0;
}

// An instantiation that uploads, and one that does not.
static bool instantiate_with_params(void* driver) {
  using Instantiate = int (*)(void**, void*, void*);
  const auto instantiate = reinterpret_cast<Instantiate>(dlsym(driver, "cuGraphInstantiateWithParams"));
  unsigned long long upload[] = {2, 0, 0, 0}, none[] = {1, 0, 0, 0};  // flags, stream, node, result
  void* exec = nullptr;
  return instantiate(&exec, nullptr, upload) == 0 && instantiate(&exec, nullptr, none) == 0;
}

#ifdef LINKED
extern "C" int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**, void**);
extern "C" int launch_linked() { return call(&cuLaunchKernel) + call(&cuLaunchKernel); }
#endif

int main(int argc, char** argv) {
  int failed = 0;
  const auto check = [&](const char* way, bool is_ok) {
    if (!is_ok) std::printf("%s failed\n", way), ++failed;
  };
#ifdef LINKED
  check("linked", launch_linked() == 0);
#endif
  if (argc < 2) return failed;
  void* const plugin = dlopen(argv[1], RTLD_NOW);
  const auto launch_in_plugin =
      plugin != nullptr ? reinterpret_cast<int (*)()>(dlsym(plugin, "launch_linked")) : nullptr;
  check("a plugin", launch_in_plugin != nullptr && launch_in_plugin() == 0);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto looked_up = reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
  check("dlsym", looked_up != nullptr && call(looked_up) == 0);
  check("a graph", launch_graph(driver));
  check("an upload", instantiate_with_params(driver));
  const auto get = reinterpret_cast<int (*)(const char*, void**, int, unsigned long long, int*)>(
      dlsym(driver, "cuGetProcAddress_v2"));
  void* found = nullptr;
  check("cuGetProcAddress", get != nullptr && get("cuLaunchKernel", &found, 12000, 0, nullptr) == 0 &&
                                call(reinterpret_cast<Launch>(found)) == 0);
  check("a name that is not there", dlsym(driver, "cuNothing") == nullptr && dlerror() != nullptr);
  check("a name of another library", dlsym(RTLD_DEFAULT, "printf") == reinterpret_cast<void*>(&std::printf));
  return failed;
}
