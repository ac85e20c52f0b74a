#include "cgrt/launch/host.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "cgrt/base/log.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/keep.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace {

using Function = std::function<void()>;

// Called by the driver, which knows no exceptions.
void CUDA_CB call(void* data) {
  try {
    (*static_cast<Function*>(data))();
  } catch (const std::exception& error) {
    log_error(std::string("A host function threw: ") + error.what());
  } catch (...) {
    log_error("A host function threw something that is no std::exception.");
  }
}

void CUDA_CB call_and_give_back(void* data) {
  call(data);
  internal::give_back_function(static_cast<Function*>(data));
}

absl::Status launch_in_stream(StreamRef stream, CUhostFn function, void* data) {
  if (ABSL_PREDICT_FALSE(stream.get() == nullptr)) return driver::empty_object("Stream");
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().LaunchHostFunc(stream.get(), function, data), "cuLaunchHostFunc"));
  internal::CaptureContext::note_node(stream.get());
  return absl::OkStatus();
}

}  // namespace

absl::Status launch_host(LaunchTarget target, CUhostFn function, void* data) {
  if (function == nullptr) return absl::InvalidArgumentError("launch_host: the function is null.");
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a host function"));
  if (target.sink() != nullptr) return target.sink()->add_host({function, data});
  return launch_in_stream(target.stream(), function, data);
}

absl::Status launch_host(LaunchTarget target, std::function<void()> function) {
  if (function == nullptr) return absl::InvalidArgumentError("launch_host: the function is empty.");
  CGRT_RETURN_IF_ERROR(internal::check_no_event(target, "a host function"));
  if (target.sink() != nullptr) {
    auto owned = std::make_shared<Function>(std::move(function));
    CGRT_RETURN_IF_ERROR(target.sink()->keep(owned));
    return target.sink()->add_host({&call, owned.get()});
  }
  const StreamRef stream = target.stream();
  if (ABSL_PREDICT_FALSE(stream.get() == nullptr)) return driver::empty_object("Stream");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().StreamGetCaptureInfo(stream.get(), &status, nullptr, &graph, nullptr, nullptr, nullptr),
      "cuStreamGetCaptureInfo"));
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    auto owned = std::make_shared<Function>(std::move(function));
    CGRT_RETURN_IF_ERROR(internal::keep_in_graph(graph, owned));
    return launch_in_stream(stream, &call, owned.get());
  }
  internal::collect_functions();
  auto owned = std::make_unique<Function>(std::move(function));
  CGRT_RETURN_IF_ERROR(launch_in_stream(stream, &call_and_give_back, owned.get()));
  static_cast<void>(owned.release());  // call_and_give_back's from here on
  return absl::OkStatus();
}

}  // namespace cgrt
