#include "cgrt/memory/buffer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace {

absl::Status allocation_failed(CUresult result, const char* call, const char* kind, std::size_t size_bytes,
                               const char* instead) {
  std::string what = absl::StrCat("Allocating ", counted(size_bytes, "byte"), " of ", kind);
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
    absl::StrAppend(&what, " during a capture, and that capture has ended now. Allocate before it", instead,
                    ", or capture in "
                    "CaptureMode::kRelaxed and let the graph keep the memory (Graph::keep)");
  }
  return driver::annotate(driver::to_status(result, call), what);
}

}  // namespace

// A free would end a capture of this thread, and a global one of any thread.
void internal::free_device(CUdeviceptr address) {
  const RelaxedCaptureMode relaxed;
  driver::free_device(address);
}
void internal::free_pinned(void* address) {
  const RelaxedCaptureMode relaxed;
  driver::free_pinned(address);
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::create(ContextRef context, std::size_t size_bytes) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  if (size_bytes == 0) return DeviceBuffer();
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  CUdeviceptr address = 0;
  const CUresult result = driver::api().MemAlloc(&address, size_bytes);
  if (result != CUDA_SUCCESS)
    return allocation_failed(result, "cuMemAlloc", "device memory", size_bytes, " or from a GraphPool");
  return DeviceBuffer(address, size_bytes);
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::create(ContextRef context, std::size_t size_bytes) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  if (size_bytes == 0) return PinnedBuffer();
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  void* address = nullptr;
  const CUresult result = driver::api().MemHostAlloc(&address, size_bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result != CUDA_SUCCESS) return allocation_failed(result, "cuMemHostAlloc", "pinned host memory", size_bytes, "");
  return PinnedBuffer(address, size_bytes);
}

}  // namespace cgrt
