// Driver calls per operation: the one guard of speed that needs no GPU. A number that grows is a
// regression; change it only with a reason.
#include <optional>

#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/loaded_kernels.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {
namespace {

constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

template <class Operation>
std::uint64_t calls(driver::Instrument& instrument, Operation operation) {
  REQUIRE_OK(operation());  // first: what is looked up once is looked up
  instrument.reset_counts();
  REQUIRE_OK(operation());
  return instrument.total();
}

TEST_CASE("each operation makes a fixed number of driver calls", "[driver][calls]") {
  Simulator simulator;
  driver::Instrument instrument;
  const DeviceRef device(0);
  Stream stream = *Stream::create(device);
  Stream side = *Stream::create(device);
  Event event = *Event::create(device);
  DeviceBuffer buffer = *DeviceBuffer::create(device, 256);
  float* x = buffer.as<float>();
  Graph graph = *Graph::create(device);
  KernelNode kernel = *graph.add_kernel({}, kConfig, scale_kernel(), x, x, 1.0f, 64);
  MemcpyNode copied = *graph.add_copy(after(kernel), x, x + 32, 64);
  MemsetNode filled = *graph.add_fill(after(kernel), {x, 0, 4, 8});
  GraphExec exec = *instantiate(graph);
  Cursor cursor = graph.cursor();
  const auto count = [&](auto operation) { return calls(instrument, operation); };
  const auto step = [&](LaunchTarget target) { return launch(target, kConfig, scale_kernel(), x, x, 1.0f, 64); };

  CHECK(count([&] { return step(stream.ref()); }) == 1);
  CHECK(count([&] { return step(LaunchTarget(stream.ref()).programmatic()); }) == 1);
  CHECK(count([&] { return step(stream.ref().get()); }) == 2);  // a bare handle: its context is asked for
  CHECK(count([&] { return step(cursor); }) == 2);              // "is a context current?": see set_kernel_params
  CHECK(count([&] { return step(cursor.programmatic()); }) == 2);
  CHECK(count([&] { return copy(cursor, x, x + 32, 64); }) == 1);
  CHECK(count([&] { return fill32(cursor, x, 0, 8); }) == 1);
  CHECK(count([&] {
          return graph.add_kernel(after(kernel, copied), kConfig, scale_kernel(), x, x, 1.0f, 64).status();
        }) == 2);
  CHECK(count([&] { return graph.add_empty({}).status(); }) == 1);
  CHECK(count([&] {
          return graph
              .add_host(
                  {}, [](void*) {}, nullptr)
              .status();
        }) == 1);
  CHECK(count([&] { return graph.add_event_record({}, event.ref()).status(); }) == 1);
  const LaunchConfig clustered{.grid = 2, .block = 64, .attributes = {.cluster = {2}, .priority = -1}};
  const auto with_attributes = [&](LaunchTarget target) {
    return launch(target, clustered, scale_kernel(), x, x, 1.0f, 64);
  };
  CHECK(count([&] { return with_attributes(stream.ref()); }) == 1);
  CHECK(count([&] { return with_attributes(cursor); }) == 5);  // an add, each attribute, and its position
  CHECK(count([&] {
          return launch_host(
              stream.ref(), [](void*) {}, nullptr);
        }) == 1);
  CHECK(count([&] { return record_event(stream.ref(), event.ref()); }) == 2);
  CHECK(count([&] { return copy(stream.ref(), x, x + 32, 64); }) == 1);
  CHECK(count([&] { return fill32(stream.ref(), x, 0, 8); }) == 1);
  CHECK(count([&] { return write_value(stream.ref(), buffer.as<std::uint32_t>(), 1u); }) == 1);
  CHECK(count([&] { return write_value(cursor, buffer.as<std::uint32_t>(), 1u); }) == 2);
  const TestSemaphore made = *TestSemaphore::create(SemaphoreKind::kTimeline);
  const ExternalSemaphore semaphore = *made.imported();
  CHECK(count([&] { return made.imported().status(); }) == 8);  // push, pop, import and destroy in relaxed modes
  CHECK(count([&] { return signal_semaphore(stream.ref(), semaphore, 1); }) == 1);
  CHECK(count([&] { return wait_semaphore(stream.ref(), semaphore, 1); }) == 1);
  CHECK(count([&] { return wait_semaphore(cursor, semaphore, 1); }) == 1);
  CHECK(count([&]() -> absl::Status {
          CGRT_ASSIGN_OR_RETURN(void* const memory, allocate_async(stream.ref(), 64));
          return free_async(stream.ref(), memory);
        }) == 6);  // with the capture mode of the thread, twice each
  CHECK(count([&] { return step(LaunchTarget(stream.ref()).recording(event.ref(), EdgeKind::kProgrammatic)); }) == 1);
  const Library library = *Library::load(device, loaded_ptx());
  const auto loaded = *library.kernel<loaded_scale>("scale");
  const auto loaded_step = [&](LaunchTarget target) { return launch(target, kConfig, loaded, x, x, 1.0f, 64); };
  CHECK(count([&] { return loaded_step(stream.ref()); }) == 1);
  Graph other = *Graph::create(device);
  Cursor place = other.cursor();
  CHECK(count([&] { return loaded_step(place); }) == 2);  // its code is kept once for the graph
  CHECK(count([&] { return graph.set_params(kernel, kConfig, scale_kernel(), x, x, 2.0f, 64); }) ==
        3);  // one asks for the node's context

  CHECK(count([&] { return exec.launch(stream.ref()); }) == 1);
  CHECK(count([&] { return exec.upload(stream.ref()); }) == 1);
  CHECK(count([&] { return exec.set_params(kernel, kConfig, scale_kernel(), x, x, 2.0f, 64); }) == 2);
  CHECK(count([&] { return exec.set_params(copied, CopyParams{x, x + 32, 64}); }) == 1);
  CHECK(count([&] { return exec.set_params(filled, FillParams{x, 1, 4, 8}); }) == 1);
  Graph same = *Graph::create(device);
  KernelNode first = *same.add_kernel({}, kConfig, scale_kernel(), x, x, 1.0f, 64);
  REQUIRE_OK(same.add_copy(after(first), x, x + 32, 64));
  REQUIRE_OK(same.add_fill(after(first), {x, 0, 4, 8}));
  CHECK(count([&] { return exec.update(same); }) == 1);

  CHECK(count([&] { return stream.ref().record(event.ref()); }) == 1);
  CHECK(count([&] { return side.ref().wait(event.ref()); }) == 1);
  CHECK(count([&] { return stream.ref().synchronize(); }) == 1);
  CHECK(count([&] { return event.ref().synchronize(); }) == 1);
  CHECK(count([&] { return stream.ref().is_capturing().status(); }) == 1);
  CHECK(count([&] { return event.ref().completion().status(); }) == 3);  // the query inside a relaxed capture mode
  CHECK(count([&] { return stream.ref().completion().status(); }) ==
        4);  // and "is it capturing?", else the query kills that capture
  CHECK(count([&] { return suggest_config(scale_kernel(), device, 64).status(); }) == 0);
  CHECK(count([&] { return suggest_config(scale_kernel(), stream.ref(), 64).status(); }) == 0);

  CHECK(count([&] { return Graph::create(device).status(); }) == 2);   // with its destruction
  CHECK(count([&] { return instantiate(same).status(); }) == 9);       // count, push, pop, and twice in a relaxed mode
  CHECK(count([&] { return Stream::create(device).status(); }) == 4);  // push, pop, destroy
  CHECK(count([&] { return DeviceBuffer::create(device, 64).status(); }) == 6);  // push, pop, free in a relaxed mode
  CHECK(count([&] { return capture(stream.ref(), step).status(); }) == 4);       // begin, launch, end, destroy
  CHECK(count([&] { return capture_or_run(stream.ref(), step).status(); }) == 4);
  // What the graph of one node is asked for: the frontier, its nodes twice, the node's dependents.
  CHECK(count([&] { return capture(stream.ref(), step, UnjoinedWork::kJoined).status(); }) == 8);

  SideStreams sides = *SideStreams::create(device, 1);
  CHECK(count([&] { return fork_join(stream.ref(), sides, {step, step}); }) == 6);  // record and wait, twice
  CHECK(count([&] { return fork_join(cursor, sides, {step, step}); }) == 4);
  GraphPool pool = *GraphPool::create(device, 4096);
  void* block = nullptr;
  const auto allocate = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(pool.free(block));
    CGRT_ASSIGN_OR_RETURN(block, pool.allocate(target, 64));
    return absl::OkStatus();
  };
  CHECK(count([&] { return allocate(stream.ref()); }) == 1);  // "is it captured?"
  CHECK(count([&] { return allocate(cursor); }) == 2);        // the graph keeps the pool
}

}  // namespace
}  // namespace cgrt::testing
