#include "cgrt_kernels/common/library.h"

#include <utility>

#include "absl/status/statusor.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/cursor.h"

namespace cgrt::kernels {

absl::Status launch_library(LaunchTarget target, absl::FunctionRef<absl::Status(CUstream)> call) {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, target.context());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  if (target.sink() == nullptr) return call(target.stream().get());
  auto* const cursor = dynamic_cast<Cursor*>(target.sink());
  if (cursor == nullptr) {
    return absl::UnimplementedError("A library call can go into a stream or a Cursor, but not into this target.");
  }
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(context));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), [&](StreamRef own) { return call(own.get()); }));
  return cursor->add_child(std::move(captured));
}

}  // namespace cgrt::kernels
