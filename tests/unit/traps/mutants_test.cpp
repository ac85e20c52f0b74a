// Mistakes that no other test noticed when they were put into the library by hand (tests/scripts/mutants.py
// does it by machine for the best known): captures, executables, what is remembered. Each case says which.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "unit/traps/traps.h"

namespace cgrt::testing {
namespace {

TEST_CASE_METHOD(TrapsTest, "a node may wait for more nodes than a small array holds", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  std::vector<Dependency> all;
  for (int i = 0; i < 100; ++i) all.emplace_back(*graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1));

  CHECK_OK(graph.add_empty(all));
  for (Dependency& one : all) one.kind = EdgeKind::kProgrammatic;
  CHECK_OK(graph.add_kernel(all, kPlain, scale_kernel(), x, x, 1.0f, 1));

  const ir::GraphIr shot = *snapshot(graph);
  REQUIRE(shot.edges.size() == 200);
  for (const ir::Edge& edge : shot.edges) {
    CHECK((edge.type == ir::EdgeType::kProgrammatic) == (edge.to == 101));
    CHECK(edge.from < 100);
  }
}

// ---- callbacks that fail (trap 7)

TEST_CASE_METHOD(TrapsTest, "a callback that throws ends its capture", "[traps]") {
  const std::size_t before = simulator.live_handles();

  CHECK_THROWS_AS(static_cast<void>(capture(stream.ref(),
                                            [&](StreamRef s) -> absl::Status {
                                              CGRT_RETURN_IF_ERROR(step(s));
                                              throw std::runtime_error("no");
                                            })),
                  std::runtime_error);

  CHECK_FALSE(*stream.ref().is_capturing());
  CHECK(simulator.live_handles() == before);
  CHECK_OK(capture(stream.ref(), [&](StreamRef s) { return step(s); }));
}

TEST_CASE_METHOD(TrapsTest, "unjoined work is named also after an inner capture has failed", "[traps]") {
  Stream side = *Stream::create(kDevice);

  const absl::Status unjoined =
      capture(stream.ref(), [&](StreamRef s) -> absl::Status {
        CHECK_FALSE(capture(other.ref(), [](StreamRef) -> absl::Status { return absl::AbortedError("enough"); }).ok());
        CGRT_RETURN_IF_ERROR(step(s));
        CGRT_RETURN_IF_ERROR(s.record(event.ref()));
        CGRT_RETURN_IF_ERROR(side.ref().wait(event.ref()));
        return step(side.ref());
      }).status();

  CHECK_THAT(unjoined, StatusIs(absl::StatusCode::kFailedPrecondition, "cgrt::testing::scale"));
}

// ---- an executable in flight (trap 9)

TEST_CASE_METHOD(TrapsTest, "launches in flight keep their values and their switched-on nodes", "[traps]") {
  Graph one = *Graph::create(kDevice), two = *Graph::create(kDevice);
  KernelNode node = *one.add_kernel({}, kPlain, scale_kernel(), x, x, 3.0f, 1);
  REQUIRE_OK(two.add_kernel({}, kPlain, scale_kernel(), x, x, 5.0f, 1));
  REQUIRE_OK(fill32(stream.ref(), x, 0x3f800000u, 1));
  REQUIRE_OK(stream.ref().synchronize());
  GraphExec exec = *instantiate(one);

  simulator.hold(stream.ref().get());
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK_OK(exec.update(two));
  CHECK_OK(exec.set_enabled(node, NodeState::kDisabled));
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK_OK(exec.set_enabled(node, NodeState::kEnabled));
  REQUIRE_OK(exec.launch(stream.ref()));
  CHECK_OK(exec.set_enabled(node, NodeState::kDisabled));
  simulator.release(stream.ref().get());
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(*x == 15.0f);
}

TEST_CASE_METHOD(TrapsTest, "a call on an executable waits until another thread's call has returned", "[traps]") {
  Graph graph = *Graph::create(kDevice);
  KernelNode node = *graph.add_kernel({}, kPlain, scale_kernel(), x, x, 1.0f, 1);
  GraphExec exec = *instantiate(graph);
  driver::Instrument instrument;
  std::atomic<bool> is_first = true, is_through = false, was_through = false;
  std::thread late;
  instrument.trace([&](const char* entry, CUresult) {
    if (!std::string_view(entry).starts_with("cuGraph") || !is_first.exchange(false)) return;
    late = std::thread([&] {
      static_cast<void>(exec.enabled(node));
      is_through = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    was_through = is_through.load();
  });
  const auto is_alone = [&](const absl::Status& status) {
    late.join();
    CHECK_OK(status);
    is_first = true;
    is_through = false;
    return !was_through;
  };

  CHECK(is_alone(exec.update(graph)));
  CHECK(is_alone(exec.launch(stream.ref())));
  CHECK(is_alone(exec.upload(stream.ref())));
  CHECK(is_alone(exec.set_params(node, kPlain, scale_kernel(), x, x, 2.0f, 1)));
  CHECK(is_alone(exec.set_enabled(node, NodeState::kDisabled)));
  is_first = false;
}

// ---- what is remembered (traps 10 and 15)

TEST_CASE("a suggestion is asked for in each context", "[traps]") {
  Simulator simulator({.device_count = 2});
  driver::Instrument instrument;

  for (const int device : {0, 1, 0, 1}) REQUIRE_OK(suggest_config(scale_kernel(), DeviceRef(device), 100));

  CHECK(instrument.count("cuOccupancyMaxPotentialBlockSize") == 2);
}

TEST_CASE_METHOD(TrapsTest, "kernels, functions and suggestions are asked for again after forget_contexts", "[traps]") {
  driver::Instrument instrument;
  const auto use = [&] {
    REQUIRE_OK(step(stream.ref()));
    REQUIRE_OK(suggest_config(scale_kernel(), kDevice, 100));
  };
  use();
  for (const bool forgets : {false, true, true}) {
    instrument.reset_counts();
    if (forgets) forget_contexts();
    use();
    for (const char* entry : {"ResolveKernel", "cuKernelGetFunction", "cuOccupancyMaxPotentialBlockSize"}) {
      INFO(entry);
      CHECK(instrument.count(entry) == (forgets ? 1 : 0));
    }
  }
}

// ---- children (trap 11)

TEST_CASE_METHOD(TrapsTest, "a child that cannot be moved in stays the caller's", "[traps]") {
  Graph graph = *Graph::create(kDevice), foreign = *Graph::create(kDevice);
  EmptyNode theirs = *foreign.add_empty({});
  const std::size_t before = simulator.live_handles();
  {
    Graph child = captured({{.cluster = {2}}});

    CHECK_THAT(graph.add_child(after(theirs), std::move(child)).status(), StatusIs(absl::StatusCode::kInvalidArgument));
    REQUIRE(child.state() != nullptr);
    CHECK(*child.node_count() == 1);
    CHECK_THAT(graph.cursor(after(theirs)).add_child(std::move(child)), StatusIs(absl::StatusCode::kInvalidArgument));
    REQUIRE(child.state() != nullptr);
    CHECK(*child.node_count() == 1);
    CHECK_OK(instantiate(child));
  }
  CHECK(simulator.live_handles() == before);
}

// ---- other threads' captures (trap 16)

TEST_CASE_METHOD(TrapsTest, "what graphs let go may free memory while streams are captured", "[traps]") {
  struct Freed {
    CUdeviceptr address = 0;
    ~Freed() { CHECK(driver::api().MemFree(address) == CUDA_SUCCESS); }
  };
  const auto graph_with_memory = [&] {
    auto memory = std::make_shared<Freed>();
    ScopedContext current = *ScopedContext::enter(*ContextRef(kDevice).get());
    REQUIRE(driver::api().MemAlloc(&memory->address, 64) == CUDA_SUCCESS);
    std::optional<Graph> graph = *Graph::create(kDevice);
    REQUIRE_OK(graph->keep(std::shared_ptr<const void>(std::move(memory))));
    return graph;
  };
  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal}) {
    std::optional<Graph> mine = graph_with_memory(), of_other = graph_with_memory();
    std::size_t released = 0;

    CHECK_OK(capture(
        stream.ref(),
        [&](StreamRef s) {
          mine.reset();
          released += collect_released();
          of_other.reset();
          std::thread([&] { released += collect_released(); }).join();
          return step(s);
        },
        mode));

    CHECK(released == 2);
  }
}

TEST_CASE_METHOD(TrapsTest, "a capture of the default mode does not mind what other threads do", "[traps]") {
  const absl::StatusOr<Graph> graph = capture(stream.ref(), [&](StreamRef s) {
    std::thread([&] {
      CHECK_OK(DeviceBuffer::create(kDevice, 64));
      CHECK_OK(other.ref().synchronize());
    }).join();
    return step(s);
  });

  CHECK_OK(graph);
}

TEST_CASE_METHOD(TrapsTest, "an event that is recorded outside of a live capture is no longer captured", "[traps]") {
  CHECK_OK(capture(stream.ref(), [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(s));
    CGRT_RETURN_IF_ERROR(s.record(event.ref()));
    CHECK(*event.ref().completion() == Completion::kCaptured);
    CGRT_RETURN_IF_ERROR(other.ref().record(event.ref()));
    CHECK(*event.ref().completion() != Completion::kCaptured);
    return absl::OkStatus();
  }));
}

// ---- what is not put back (trap 17)

TEST_CASE_METHOD(TrapsTest, "a query leaves the thread's capture mode as it was, however it ends", "[traps]") {
  const auto exchange = [](CUstreamCaptureMode mode) {
    REQUIRE(driver::api().ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    return mode;
  };
  driver::Instrument instrument;
  for (const CUstreamCaptureMode mine : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    const CUstreamCaptureMode before = exchange(mine);
    for (const CUresult answer :
         {CUDA_SUCCESS, CUDA_ERROR_NOT_READY, CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_ILLEGAL_ADDRESS}) {
      INFO("mode " << mine << ", answer " << answer);
      instrument.fail_entry("cuEventQuery", answer);
      instrument.fail_entry("cuStreamQuery", answer);
      static_cast<void>(event.ref().completion());
      CHECK(exchange(mine) == mine);
      static_cast<void>(stream.ref().completion());
      CHECK(exchange(mine) == mine);
      { const DeviceBuffer freed = *DeviceBuffer::create(kDevice, 64); }
      CHECK(exchange(mine) == mine);
    }
    exchange(before);
  }
}

}  // namespace
}  // namespace cgrt::testing
