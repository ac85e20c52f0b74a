#include "setup.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"

namespace graphbench {

absl::StatusOr<Setup> Setup::create(std::uint64_t count) {
  const std::size_t bytes = count * sizeof(float);
  const cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(CUcontext context, cgrt::ContextRef(device).get());
  CGRT_ASSIGN_OR_RETURN(cgrt::ScopedContext current, cgrt::ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event event, cgrt::Event::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::kernels::ElementwisePlan plan,
                        cgrt::kernels::plan_elementwise(device, {cgrt::kernels::ElementwiseOp::kScale, count}));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer x, cgrt::DeviceBuffer::create(device, bytes));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer y, cgrt::DeviceBuffer::create(device, bytes));
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream.ref(), x.data(), 0, count));
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream.ref(), y.data(), 0, count));
  CGRT_RETURN_IF_ERROR(stream.ref().record(event.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return Setup{context,         std::move(current), std::move(stream), std::move(event),
               std::move(plan), std::move(x),       std::move(y)};
}

std::function<absl::Status(int)> without_eager_work(const Setup& setup) {
  return [&setup](int) -> absl::Status {  // a memset in the stream lets go of it
    CGRT_RETURN_IF_ERROR(cgrt::fill32(setup.stream, setup.x.data(), 0, 1));
    return setup.stream.ref().synchronize();
  };
}

std::function<absl::Status(int)> after_eager_work(const Setup& setup) {
  return [&setup](int) -> absl::Status {
    const auto& [desc, kernel, config] = setup.plan;
    const auto& [out, in] = setup.arrays();
    CGRT_RETURN_IF_ERROR(cgrt::launch(setup.stream, config, kernel, out, in, nullptr, kAlpha, desc.count));
    return setup.stream.ref().synchronize();
  };
}

}  // namespace graphbench
