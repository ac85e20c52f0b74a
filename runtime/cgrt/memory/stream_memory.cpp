#include "cgrt/memory/stream_memory.h"

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {

absl::StatusOr<void*> allocate_async(LaunchTarget target, std::size_t bytes) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "an allocation"));
  if (bytes == 0) return absl::InvalidArgumentError("allocate_async: 0 bytes are no allocation.");
  if (target.sink() != nullptr) return target.sink()->add_alloc(bytes);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  CUdeviceptr address = 0;
  const RelaxedCaptureMode relaxed;  // else it would end captures of other streams
  CGRT_RETURN_IF_ERROR(relaxed.status());
  const CUresult result = driver::api().MemAllocAsync(&address, bytes, stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return driver::annotate(driver::to_status(result, "cuMemAllocAsync"),
                            absl::StrCat("Allocating ", counted(bytes, "byte"), " in the order of a stream"));
  }
  internal::CaptureContext::note_node(stream);
  return reinterpret_cast<void*>(address);
}

absl::Status free_async(LaunchTarget target, void* address) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a free"));
  if (target.sink() != nullptr) return target.sink()->add_free(address);
  const CUstream stream = target.stream().get();
  if (ABSL_PREDICT_FALSE(stream == nullptr)) return driver::empty_object("Stream");
  const RelaxedCaptureMode relaxed;  // as above; a free goes ahead in any mode
  const CUresult result = driver::api().MemFreeAsync(reinterpret_cast<CUdeviceptr>(address), stream);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return internal::explain_free(driver::to_status(result, "cuMemFreeAsync"), address);
  }
  internal::CaptureContext::note_node(stream);
  return absl::OkStatus();
}

absl::Status internal::explain_free(const absl::Status& failure, const void* address) {
  return driver::annotate(
      failure, absl::StrCat("Freeing 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(address)),
                            " in the order of a target. It must be the address of an allocation of allocate_async or "
                            "cudaMallocAsync that nobody has freed; in a graph, of an allocation node"));
}

}  // namespace cgrt
