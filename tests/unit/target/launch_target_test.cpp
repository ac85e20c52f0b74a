// Targets that are to record an event, given to calls that launch no kernel.
#include "cgrt/target/launch_target.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {
namespace {

TEST_CASE("a call that launches no kernel refuses to leave an event unrecorded", "[launch]") {
  const Simulator simulator;
  const DeviceRef device(0);
  const Stream stream = *Stream::create(device);
  const Event event = *Event::create(device), other = *Event::create(device);
  const DeviceBuffer buffer = *DeviceBuffer::create(device, 256);
  auto* const words = buffer.as<std::uint32_t>();
  SideStreams sides = *SideStreams::create(device, 1);
  const TestSemaphore made = *TestSemaphore::create(SemaphoreKind::kTimeline);
  const ExternalSemaphore semaphore = *made.imported();
  const auto launch_once = [&](LaunchTarget target) {
    return launch(target, {.grid = 1, .block = 64}, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 1.0f, 1);
  };
  Graph graph = *Graph::create(device);
  Cursor cursor = graph.cursor();
  for (const LaunchTarget place : {LaunchTarget(stream), LaunchTarget(cursor)}) {
    const LaunchTarget target = place.recording(event, EdgeKind::kProgrammatic);
    const auto refused = [](const char* call) {
      return StatusIs(absl::StatusCode::kInvalidArgument,
                      absl::StrCat("this is ", call, ": only launches of kernels record one"));
    };

    CHECK_THAT(copy(target, words, words + 8, 16), refused("a copy"));
    CHECK_THAT(copy(target, CopyParams{.destination = words,
                                       .source = words + 32,
                                       .bytes = 4,
                                       .height = 2,
                                       .destination_pitch = 8,
                                       .source_pitch = 8}),
               refused("a copy"));
    CHECK_THAT(fill32(target, words, 0, 8), refused("a memset"));
    CHECK_THAT(launch_host(target, [] {}), refused("a host function"));
    CHECK_THAT(launch_host(
                   target, [](void*) {}, nullptr),
               refused("a host function"));
    CHECK_THAT(record_event(target, other), refused("an event record"));
    CHECK_THAT(wait_event(target, other), refused("an event wait"));
    CHECK_THAT(allocate_async(target, 64).status(), refused("an allocation"));
    CHECK_THAT(free_async(target, words), refused("a free"));
    CHECK_THAT(write_value(target, words, 1u), refused("a batch of memory operations"));
    CHECK_THAT(signal_semaphore(target, semaphore, 1), refused("a signal of semaphores"));
    CHECK_THAT(wait_semaphore(target, semaphore, 1), refused("a wait for semaphores"));
    CHECK_THAT(fork_join(target, sides, std::array<Branch, 2>{launch_once, launch_once}), refused("a fork"));
  }
  CHECK(list_nodes(graph)->empty());
}

}  // namespace
}  // namespace cgrt::testing
