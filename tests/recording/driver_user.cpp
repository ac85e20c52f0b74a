// Launches a kernel of the fake driver. As a program: by the four ways in which programs reach a driver, one of them
// through this file as a plugin that is linked against it and loaded late. Then makes and launches executable graphs.
// Fails when a launch does.
//   driver_user [PLUGIN]
//   driver_user --graph             sets parameters of an executable in place of that
//   driver_user --handle            another thread gets the handle of an executable while that is destroyed
//   driver_user --capture PLUGIN    has the plugin end a capture
//   driver_user --threads           two threads capture their per-thread streams at once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

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

// An instantiation that uploads, one that does not, and one that is refused.
static bool instantiate_with_params(void* driver) {
  using Instantiate = int (*)(void**, void*, void*);
  const auto instantiate = reinterpret_cast<Instantiate>(dlsym(driver, "cuGraphInstantiateWithParams"));
  unsigned long long upload[] = {2, 0, 0, 0}, none[] = {1, 0, 0, 0};  // flags, stream, node, result
  void* exec = nullptr;
  return instantiate(&exec, nullptr, upload) == 0 && instantiate(&exec, nullptr, none) == 0 &&
         instantiate(&exec, nullptr, nullptr) == 1;
}

#ifdef LINKED
extern "C" int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**, void**);
extern "C" int cuMemAlloc_v2(std::uintptr_t*, std::size_t);
extern "C" int allocate_linked() {
  std::uintptr_t address = 0;
  const int result = cuMemAlloc_v2(&address, 1024);
  return result == 900 ? 0 : 1;
}
extern "C" int launch_linked() { return call(&cuLaunchKernel) + call(&cuLaunchKernel); }
#endif

template <class... Args>
static int call_driver(const char* name, Args... args) {
  const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
  const int result = function != nullptr ? function(args...) : -1;
  if (result != 0) std::printf("%s failed\n", name);
  return result;
}

// Parameters are as long as the driver's. One call is refused: that is not counted.
static int use_graph() {
  std::uint64_t kernel[9] = {33}, any[32] = {34}, wrong[32] = {35};
  std::uintptr_t exec = 0;
  const std::uintptr_t node = 32;
  void* const none = nullptr;
  int failed = call_driver("cuGraphInstantiateWithFlags", &exec, none, 0ull);
  failed += call_driver("cuGraphExecKernelNodeSetParams_v2", exec, node, static_cast<const std::uint64_t*>(kernel));
  failed += call_driver("cuGraphExecNodeSetParams", exec, node, static_cast<std::uint64_t*>(any));
  failed += call_driver("cuGraphExecNodeSetParams", exec, node, static_cast<std::uint64_t*>(wrong)) == 1 ? 0 : 1;
  failed += call_driver("cuGraphNodeSetEnabled", exec, node, 1u);
  failed += call_driver("cuGraphLaunch", exec, none);
  failed += call_driver("cuGraphExecDestroy", exec);
  return failed;
}

static int reuse_handle() {
  static std::uintptr_t exec = 0;
  static void* const none = nullptr;
  static const auto instantiate = [] { return call_driver("cuGraphInstantiateWithFlags", &exec, none, 0ull); };
  const auto hook = static_cast<void (**)()>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "while_destroying"));
  *hook = [] { std::thread(instantiate).join(); };
  const int failed = instantiate() + call_driver("cuGraphExecDestroy", exec);
  return failed + call_driver("cuGraphLaunch", exec, none);
}

static int capture(const char* path) {
  void *const plugin = dlopen(path, RTLD_NOW), *graph = nullptr, *const stream = nullptr;
  const auto allocate = plugin != nullptr ? reinterpret_cast<int (*)()>(dlsym(plugin, "allocate_linked")) : nullptr;
  int failed = call_driver("cuStreamBeginCapture_v2", stream, 0);
  failed += allocate != nullptr ? allocate() : 1;
  failed += call_driver("cuStreamEndCapture", stream, &graph) == 901 ? 0 : 1;
  return failed;
}

// A kernel is launched when both captures are over.
static int capture_in_threads() {
  void *const stream = nullptr, *graph = nullptr, *graph_of_other = nullptr;
  int failed = call_driver("cuStreamBeginCapture_v2_ptsz", stream, 0);
  std::thread([&] {
    failed += call_driver("cuStreamBeginCapture_v2_ptsz", stream, 0);
    failed += call_driver("cuStreamEndCapture_ptsz", stream, &graph_of_other);
  }).join();
  failed += call_driver("cuStreamEndCapture_ptsz", stream, &graph);
  return failed + call(reinterpret_cast<Launch>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel")));
}

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--capture") == 0) return capture(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "--graph") == 0) return use_graph();
  if (argc > 1 && std::strcmp(argv[1], "--handle") == 0) return reuse_handle();
  if (argc > 1 && std::strcmp(argv[1], "--threads") == 0) return capture_in_threads();
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
