// The shared object's one function: launches its kernel eagerly, captured and explicitly.
#include <cstdio>
#include <string>

#include "cgrt/cgrt.h"
#include "shared_objects/twin.h"

namespace {

using namespace cgrt;

absl::Status check(const PinnedBuffer& seen, const char* mode) {
  const int value = *seen.as<volatile int>();
  *seen.as<volatile int>() = -1;
  if (value == TWIN) return absl::OkStatus();
  return absl::InternalError(std::string(mode) + ": saw " + std::to_string(value) + ", not " + std::to_string(TWIN));
}

absl::Status run() {
  const DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer seen, PinnedBuffer::create(device, sizeof(int)));
  const auto step = [&](LaunchTarget target) { return launch(target, LaunchConfig{}, twin_kernel(), seen.as<int>()); };
  CGRT_RETURN_IF_ERROR(step(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(check(seen, "eager"));
  CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(device));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));
  for (const Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(check(seen, "graph"));
  }
  return absl::OkStatus();
}

}  // namespace

// 0: right; 1: wrong; 2: no driver, and this library said what to do.
extern "C" __attribute__((visibility("default"))) int run_twin() {
  const absl::Status status = run();
  if (status.ok()) return 0;
  std::printf("twin %d: %s\n", TWIN, status.ToString().c_str());
  return absl::IsUnavailable(status) && status.message().find("river") != absl::string_view::npos ? 2 : 1;
}
