// The driver's functions, with the recorder told what was done. The preloaded library (preload/preload.cpp) asks
// graphdump_replace() for each function of the driver that the process looks up, and hands out what it answers.
//
// Not CUPTI's callbacks: on driver 580 a process with a CUPTI subscriber launches graphs node by node, 190 us in place
// of 5 for 1,000 nodes, and its replays take a third longer on the device (H200).

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "inject/displace.h"
#include "inject/images.h"
#include "inject/node_params.h"
#include "inject/recorder.h"
#include "inject/saving.h"
#include "inject/session.h"

namespace graphdump {
using Lookup = void* (*)(void* library, const char* name);
}
extern "C" void* graphdump_replace(const char* name, void* function, graphdump::Lookup lookup);

namespace graphdump {
namespace {

// The recorder's own calls are not the process's.
thread_local constinit bool is_own_call = false;

// Null is the legacy stream to some functions, which cannot be captured, and the per-thread one to the others.
CUstream captured(CUstream stream) { return stream != nullptr ? stream : CU_STREAM_PER_THREAD; }

void after_begin(CUresult result, CUstream stream, CUstreamCaptureMode mode) {
  if (result == CUDA_SUCCESS) recorder::on_capture_begin(captured(stream), mode);
}
void after_begin_v1(CUresult result, CUstream stream) { after_begin(result, stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }
void after_begin_into(CUresult result, CUstream stream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*,
                      std::size_t, CUstreamCaptureMode mode) {
  after_begin(result, stream, mode);
}
void after_end(CUresult result, CUstream stream, CUgraph* graph) {
  recorder::on_capture_end(captured(stream), result == CUDA_SUCCESS ? *graph : nullptr, result);
}

void after_add(CUresult result, CUgraphNode* node, CUgraph, ...) {
  if (result == CUDA_SUCCESS) recorder::on_node(*node);
}
void after_add_child(CUresult result, CUgraphNode* node, CUgraph, const CUgraphNode*, std::size_t, CUgraph child) {
  if (result != CUDA_SUCCESS) return;
  recorder::on_node(*node);
  recorder::on_child(*node, child);
}
void after_add_node(CUresult result, CUgraphNode* node, CUgraph, const CUgraphNode*, std::size_t,
                    CUgraphNodeParams* params) {
  if (result != CUDA_SUCCESS) return;
  recorder::on_node(*node);
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) recorder::on_child(*node, params->graph.graph);
  if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) recorder::on_conditional(*node, params->conditional);
}
void after_add_node_with_edges(CUresult result, CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                               const CUgraphEdgeData*, std::size_t count, CUgraphNodeParams* params) {
  after_add_node(result, node, graph, before, count, params);
}
void after_create_handle(CUresult result, CUgraphConditionalHandle* handle, CUgraph, CUcontext, unsigned at_launch,
                         unsigned flags) {
  if (result == CUDA_SUCCESS) recorder::on_conditional_handle(*handle, at_launch, flags);
}
void after_clone(CUresult result, CUgraph* clone, CUgraph original) {
  if (result == CUDA_SUCCESS) recorder::on_clone(original, *clone);
}

void after_retain(CUresult result, CUgraph graph, CUuserObject, unsigned, unsigned) {
  if (result == CUDA_SUCCESS) recorder::on_user_object(graph);
}

void after_instantiate(CUresult result, CUgraphExec* exec, CUgraph graph, ...) {
  recorder::on_instantiate(graph, result == CUDA_SUCCESS ? *exec : nullptr);
}
void after_instantiate_with_params(CUresult result, CUgraphExec* exec, CUgraph graph,
                                   CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  after_instantiate(result, exec, graph);
  if (result != CUDA_SUCCESS) return;  // `params` may be null
  const bool is_uploaded = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  if (is_uploaded) recorder::on_exec_call(*exec, recorder::ExecCall::kUpload);
}
// The driver may give another thread the handle before its call returns.
void before_destroy_graph(CUgraph graph) { recorder::before_graph_destroy(graph); }
void after_destroy_graph(CUresult result, CUgraph) { recorder::after_graph_destroy(result); }
void before_destroy(CUgraphExec exec) { recorder::before_exec_destroy(exec); }
void after_destroy(CUresult result, CUgraphExec) { recorder::after_exec_destroy(result); }
void before_launch_graph(CUgraphExec exec, CUstream) {
  if (saving::is_on()) saving::before_launch(exec, recorder::is_capturing());
}
void after_launch_in(CUresult result, CUgraphExec exec, CUstream stream) {
  if (saving::is_on()) saving::after_launch(exec, result);
  if (result == CUDA_SUCCESS) recorder::on_launch(exec, stream);
}
void after_launch_graph(CUresult result, CUgraphExec exec, CUstream stream) {
  after_launch_in(result, exec, stream != nullptr ? stream : CU_STREAM_LEGACY);
}
void after_launch_graph_ptsz(CUresult result, CUgraphExec exec, CUstream stream) {
  after_launch_in(result, exec, stream != nullptr ? stream : CU_STREAM_PER_THREAD);
}
void after_upload(CUresult result, CUgraphExec exec, CUstream) {
  if (result == CUDA_SUCCESS) recorder::on_exec_call(exec, recorder::ExecCall::kUpload);
}
void after_update(CUresult result, CUgraphExec exec, CUgraph graph, ...) {
  recorder::on_update(exec, graph, result != CUDA_SUCCESS);
}

void after_set_node(CUresult result, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams* params) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, *params);
}
void after_set_kernel_v1(CUresult result, CUgraphExec exec, CUgraphNode node,
                         const CUDA_KERNEL_NODE_PARAMS_v1* kernel) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*kernel));
}
void after_set_kernel(CUresult result, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* kernel) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*kernel));
}
void after_set_memcpy(CUresult result, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                      CUcontext context) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*copy, context));
}
void after_set_memset(CUresult result, CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* fill,
                      CUcontext context) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*fill, context));
}
void after_set_host(CUresult result, CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* host) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*host));
}
void after_set_child(CUresult result, CUgraphExec exec, CUgraphNode node, CUgraph child) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_child_params(child));
}
void after_set_record(CUresult result, CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_record_params(event));
}
void after_set_wait(CUresult result, CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_wait_params(event));
}
void after_set_memory_ops(CUresult result, CUgraphExec exec, CUgraphNode node,
                          const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* ops) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*ops));
}
void after_set_signal(CUresult result, CUgraphExec exec, CUgraphNode node,
                      const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1* signals) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*signals));
}
void after_set_semaphore_wait(CUresult result, CUgraphExec exec, CUgraphNode node,
                              const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1* waits) {
  if (result == CUDA_SUCCESS) recorder::on_set_params(exec, node, to_node_params(*waits));
}
void after_set_enabled(CUresult result, CUgraphExec exec, CUgraphNode, unsigned) {
  if (result == CUDA_SUCCESS) recorder::on_exec_call(exec, recorder::ExecCall::kSetEnabled);
}

void before_load_module(CUmodule*, ...) {
  if (saving::is_on()) images::before_load();
}
void after_load_module(CUresult result, CUmodule* module, const void* image, ...) {
  if (saving::is_on()) images::after_load(result == CUDA_SUCCESS ? *module : nullptr, image);
}
void after_load_file(CUresult result, CUmodule* module, const char*) { after_load_module(result, module, nullptr); }
void after_make_context(CUresult result, CUcontext* context, ...) {
  if (result == CUDA_SUCCESS) displace::on_context(*context);
}
void before_unload_module(CUmodule module) {
  if (saving::is_on()) images::before_unload(module);
}
void after_unload_module(CUresult result, CUmodule) {
  if (saving::is_on()) images::after_unload(result);
}

// Tells the recorder.
template <class Function>
void tell(const Function& function) {
  is_own_call = true;
  try {
    function();
  } catch (const std::exception& error) {
    note(std::string("Recording failed: ") + error.what());
  }
  is_own_call = false;
}

// Each hook is a type of its own, which knows the driver's function. kBefore: null where nothing is told before.
template <class Tag, auto kBefore, auto kAfter, class... Args>
struct Hook {
  static inline CUresult (*driver)(Args...) = nullptr;

  static CUresult CUDAAPI call(Args... args) {
    if (is_own_call) return driver(args...);
    if constexpr (!std::is_null_pointer_v<decltype(kBefore)>) tell([&] { kBefore(args...); });
    const CUresult result = driver(args...);
    tell([&] { kAfter(result, args...); });
    return result;
  }
};

// Launches are counted with the time that they take, outside of captures.
template <class Tag, class... Args>
struct LaunchHook {
  static inline CUresult (*driver)(Args...) = nullptr;

  static CUresult CUDAAPI call(Args... args) {
    if (is_own_call || recorder::is_capturing()) return driver(args...);
    const auto begin = std::chrono::steady_clock::now();
    const CUresult result = driver(args...);
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    if (result == CUDA_SUCCESS) recorder::on_kernel_launch(time.count());
    return result;
  }
};

struct Entry {
  std::string_view name;
  void* hook;
  void** driver;
};

#define GRAPHDUMP_HOOK(name, after, ...) struct Tag_##name;
#define GRAPHDUMP_HOOK_AROUND(name, before, after, ...) struct Tag_##name;
#define GRAPHDUMP_LAUNCH_HOOK(name, ...) struct Tag_##name;
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_HOOK_AROUND
#undef GRAPHDUMP_LAUNCH_HOOK

const Entry kEntries[] = {
#define GRAPHDUMP_HOOK(name, after, ...)                                                  \
  {#name, reinterpret_cast<void*>(&Hook<Tag_##name, nullptr, &after, __VA_ARGS__>::call), \
   reinterpret_cast<void**>(&Hook<Tag_##name, nullptr, &after, __VA_ARGS__>::driver)},
#define GRAPHDUMP_HOOK_AROUND(name, before, after, ...)                                   \
  {#name, reinterpret_cast<void*>(&Hook<Tag_##name, &before, &after, __VA_ARGS__>::call), \
   reinterpret_cast<void**>(&Hook<Tag_##name, &before, &after, __VA_ARGS__>::driver)},
#define GRAPHDUMP_LAUNCH_HOOK(name, ...)                                       \
  {#name, reinterpret_cast<void*>(&LaunchHook<Tag_##name, __VA_ARGS__>::call), \
   reinterpret_cast<void**>(&LaunchHook<Tag_##name, __VA_ARGS__>::driver)},
#include "inject/hooked.def"
#undef GRAPHDUMP_HOOK
#undef GRAPHDUMP_HOOK_AROUND
#undef GRAPHDUMP_LAUNCH_HOOK
};

// The hook of `function`, which the driver exports as `name`.
void* hook_of(const Entry& entry, void* function) {
  *entry.driver = function;
  return entry.hook;
}

Lookup lookup =
    nullptr;  // dlsym() of the C library: by its name it is the preloaded library's, which answers with hooks

void* exported_by_driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? lookup(library, name) : nullptr;
}

// Of a function whose name is not known, and may be any version of `base`: told by the address.
void* hook_of_version(std::string_view base, void* function) {
  for (const Entry& entry : kEntries) {
    if (entry.name.starts_with(base) && exported_by_driver(entry.name.data()) == function) {
      return hook_of(entry, function);
    }
  }
  return function;
}

CUresult (*get_v1)(const char*, void**, int, cuuint64_t) = nullptr;
CUresult (*get_v2)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) = nullptr;

void* replace_of(std::string_view name, void* function);

CUresult CUDAAPI get_proc_address(const char* name, void** function, int version, cuuint64_t flags) {
  const CUresult result = get_v1(name, function, version, flags);
  if (result == CUDA_SUCCESS && *function != nullptr) *function = replace_of(name, *function);
  return result;
}
CUresult CUDAAPI get_proc_address_v2(const char* name, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  const CUresult result = get_v2(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && function != nullptr && *function != nullptr) *function = replace_of(name, *function);
  return result;
}

// Of one that cuGetProcAddress has found under a name without version.
void* replace_of(std::string_view name, void* function) {
  if (name != "cuGetProcAddress") return hook_of_version(name, function);
  for (const char* exported : {"cuGetProcAddress", "cuGetProcAddress_v2"}) {
    if (exported_by_driver(exported) == function) return graphdump_replace(exported, function, lookup);
  }
  return function;
}

}  // namespace
}  // namespace graphdump

// What the process is to get for `function`, which the driver exports as `name`.
extern "C" [[gnu::visibility("default")]] void* graphdump_replace(const char* name, void* function,
                                                                  graphdump::Lookup real_dlsym) {
  using namespace graphdump;
  lookup = real_dlsym;
  const std::string_view wanted = name;
  if (wanted == "cuGetProcAddress") {
    get_v1 = reinterpret_cast<decltype(get_v1)>(function);
    return reinterpret_cast<void*>(&get_proc_address);
  }
  if (wanted == "cuGetProcAddress_v2") {
    get_v2 = reinterpret_cast<decltype(get_v2)>(function);
    return reinterpret_cast<void*>(&get_proc_address_v2);
  }
  const auto entry =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& one) { return one.name == wanted; });
  return entry != std::end(kEntries) ? hook_of(*entry, function) : function;
}
