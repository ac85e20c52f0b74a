// Threads that capture at the same time. What they share shows under tsan.
#include <thread>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

// Captures a fork and a join, and asks an event during each of the captures.
absl::Status capture_often(int times) {
  const DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(const Stream main, Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const Stream side, Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const Event forked, Event::create(device));
  CGRT_ASSIGN_OR_RETURN(const Event joined, Event::create(device));
  CGRT_ASSIGN_OR_RETURN(const DeviceBuffer x, DeviceBuffer::create(device, 256));
  const auto step = [&](StreamRef stream) -> absl::Status {
    CGRT_RETURN_IF_ERROR(stream.record(forked.ref()));
    CGRT_RETURN_IF_ERROR(side.ref().wait(forked.ref()));
    CGRT_RETURN_IF_ERROR(launch(side, LaunchConfig{}, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1));
    CGRT_RETURN_IF_ERROR(side.ref().record(joined.ref()));
    CGRT_ASSIGN_OR_RETURN(const Completion completion, joined.ref().completion());
    if (completion != Completion::kCaptured) return absl::InternalError("An event of a capture is not captured");
    return stream.wait(joined.ref());
  };
  for (int i = 0; i < times; ++i) {
    CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(main, step));
    CGRT_RETURN_IF_ERROR(instantiate(graph).status());
  }
  return absl::OkStatus();
}

TEST_CASE("threads capture with forks and joins at the same time", "[capture][threads]") {
  Simulator simulator;
  absl::Status first, second;
  std::thread other([&] { second = capture_often(200); });
  first = capture_often(200);
  other.join();

  CHECK_OK(first);
  CHECK_OK(second);
}

}  // namespace
}  // namespace cgrt::testing
