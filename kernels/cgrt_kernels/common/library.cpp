#include "cgrt_kernels/common/library.h"

#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"

namespace cgrt::kernels {

absl::Status launch_library(LaunchTarget target, absl::FunctionRef<absl::Status(CUstream)> call, CallKey key) {
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a call of a library"));
  if (target.sink() != nullptr) return target.sink()->add_captured(call, key);
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  return call(target.stream().get());
}

}  // namespace cgrt::kernels
