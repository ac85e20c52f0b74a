// What destructors call, most as deleters of UniqueHandle: give something back; a failure is logged,
// never thrown. One that only says that the driver is gone (process exit, a forked child, lost
// context) is silent.
#pragma once

#include <cuda.h>

namespace cgrt::driver {

void pop_context();
void destroy_stream(CUstream stream);
void destroy_event(CUevent event);
void destroy_graph(CUgraph graph);
void destroy_graph_exec(CUgraphExec exec);
void destroy_external_semaphore(CUexternalSemaphore semaphore);
void unload_library(CUlibrary library);
void free_device(CUdeviceptr address);
void free_pinned(void* address);

}  // namespace cgrt::driver
