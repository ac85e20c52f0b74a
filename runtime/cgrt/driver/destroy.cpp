#include "cgrt/driver/destroy.h"

#include <string>

#include "cgrt/base/log.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::driver {
namespace {

void log_failure(CUresult result, const char* call) {
  const bool is_gone = result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_NOT_INITIALIZED;
  if (result == CUDA_SUCCESS || is_gone || is_sticky(result)) return;
  log_warning(std::string(to_status_slow(result, call).message()));
}

}  // namespace

void pop_context() {
  CUcontext popped = nullptr;
  log_failure(api().CtxPopCurrent(&popped), "cuCtxPopCurrent");
}
void destroy_stream(CUstream stream) { log_failure(api().StreamDestroy(stream), "cuStreamDestroy"); }
void destroy_event(CUevent event) { log_failure(api().EventDestroy(event), "cuEventDestroy"); }
void destroy_graph(CUgraph graph) { log_failure(api().GraphDestroy(graph), "cuGraphDestroy"); }
void destroy_graph_exec(CUgraphExec exec) { log_failure(api().GraphExecDestroy(exec), "cuGraphExecDestroy"); }
void destroy_external_semaphore(CUexternalSemaphore semaphore) {
  log_failure(api().DestroyExternalSemaphore(semaphore), "cuDestroyExternalSemaphore");
}
void unload_library(CUlibrary library) { log_failure(api().LibraryUnload(library), "cuLibraryUnload"); }
void free_device(CUdeviceptr address) { log_failure(api().MemFree(address), "cuMemFree"); }
void free_pinned(void* address) { log_failure(api().MemFreeHost(address), "cuMemFreeHost"); }

}  // namespace cgrt::driver
