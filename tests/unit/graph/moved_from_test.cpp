// Objects that own nothing: by default, and after a move.
#include <utility>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

const auto kRefused = [] { return StatusIs(absl::StatusCode::kFailedPrecondition, "is empty: it was moved from"); };

TEST_CASE("an empty graph says so", "[graph]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0));
  Graph other = std::move(graph);
  Graph unset;

  for (Graph* empty : {&graph, &unset}) {
    CHECK_THAT(empty->add_empty({}).status(), kRefused());
    CHECK_THAT(empty->node_count().status(), kRefused());
    CHECK_THAT(empty->clone().status(), kRefused());
    CHECK_THAT(empty->cursor().add_empty(), kRefused());
    CHECK_THAT(other.add_child({}, *empty).status(), kRefused());
    CHECK_THAT(other.cursor().add_child(std::move(*empty)), kRefused());
    CHECK_THAT(snapshot(*empty).status(), kRefused());
    CHECK_THAT(instantiate(*empty).status(), kRefused());
  }
  CHECK_THAT(Graph::adopt(nullptr, DeviceRef(0)).status(), StatusIs(absl::StatusCode::kInvalidArgument, "null"));
}

TEST_CASE("an empty executable says so", "[exec]") {
  Simulator simulator;
  Stream stream = *Stream::create(DeviceRef(0));
  Graph graph = *Graph::create(DeviceRef(0));
  const Event event = *Event::create(DeviceRef(0));
  EventWaitNode node = *graph.add_event_wait({}, event);
  GraphExec exec = *instantiate(graph);
  const GraphExec other = std::move(exec);
  GraphExec unset;

  for (GraphExec* empty : {&exec, &unset}) {
    CHECK_THAT(empty->launch(stream), kRefused());
    CHECK_THAT(empty->upload(stream), kRefused());
    CHECK_THAT(empty->update(graph), kRefused());
    CHECK_THAT(empty->try_update(graph).status(), kRefused());
    CHECK_THAT(empty->update_or_instantiate(graph).status(), kRefused());
    CHECK_THAT(empty->enabled(node).status(), kRefused());
  }
}

TEST_CASE("an empty stream takes no work, and is not the default stream", "[stream]") {
  Simulator simulator;
  CUcontext context = *ContextRef(DeviceRef(0)).get();
  const ScopedContext current = *ScopedContext::enter(context);  // so that the default stream would do
  Stream stream = *Stream::create(DeviceRef(0));
  const Stream other = std::move(stream);
  const Stream unset;
  const Event event = *Event::create(DeviceRef(0));
  const PinnedBuffer x = *PinnedBuffer::create(DeviceRef(0), 64);
  Graph graph = *Graph::create(DeviceRef(0));
  GraphExec exec = *instantiate(graph);
  driver::Instrument instrument;

  for (const Stream* empty : std::initializer_list<const Stream*>{&stream, &unset}) {
    const StreamRef ref = *empty;
    CHECK_FALSE(ref == StreamRef::legacy_default());
    CHECK_THAT(ref.completion().status(), kRefused());
    CHECK_THAT(ref.is_complete().status(), kRefused());
    CHECK_THAT(ref.is_capturing().status(), kRefused());
    CHECK_THAT(ref.synchronize(), kRefused());
    CHECK_THAT(ref.record(event), kRefused());
    CHECK_THAT(ref.wait(event), kRefused());
    CHECK_THAT(ref.context().status(), kRefused());
    CHECK_THAT(record_event(ref, event), kRefused());
    CHECK_THAT(wait_event(ref, event), kRefused());
    CHECK_THAT(launch(ref, LaunchConfig{}, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1), kRefused());
    CHECK_THAT(suggest_config(scale_kernel(), LaunchTarget(ref), 1).status(), kRefused());
    CHECK_THAT(copy(ref, x.data(), x.as<char>() + 32, 8), kRefused());
    CHECK_THAT(copy(ref, CopyParams{.destination = x.data(), .source = x.as<char>() + 32, .bytes = 4, .height = 2}),
               kRefused());
    CHECK_THAT(fill32(ref, x.data(), 0, 1), kRefused());
    CHECK_THAT(launch_host(ref, [] {}), kRefused());
    CHECK_THAT(launch_host(
                   ref, [](void*) {}, nullptr),
               kRefused());
    CHECK_THAT(capture(ref, [](StreamRef) { return absl::OkStatus(); }).status(), kRefused());
    CHECK_THAT(exec.launch(ref), kRefused());
    CHECK_THAT(exec.upload(ref), kRefused());
  }
  CHECK(instrument.total() == 0);  // no call of the driver's took it for the default stream
}

TEST_CASE("an empty event is not asked", "[stream]") {
  Simulator simulator;
  const Stream stream = *Stream::create(DeviceRef(0));
  Event event = *Event::create(DeviceRef(0));
  const Event other = std::move(event);
  Graph graph = *Graph::create(DeviceRef(0));

  CHECK_THAT(event.ref().completion().status(), kRefused());
  CHECK_THAT(event.ref().synchronize(), kRefused());
  CHECK_THAT(stream.ref().record(event), kRefused());
  CHECK_THAT(stream.ref().wait(event), kRefused());
  CHECK_THAT(elapsed_time(other, event).status(), kRefused());
  CHECK_THAT(graph.add_event_record({}, event).status(), kRefused());
  CHECK_THAT(graph.add_event_wait({}, event).status(), kRefused());
}

TEST_CASE("an empty kernel is refused wherever one is taken", "[launch]") {
  Simulator simulator;
  const DeviceRef device(0);
  const Stream stream = *Stream::create(device);
  const PinnedBuffer x = *PinnedBuffer::create(device, 64);
  const LaunchConfig config{.grid = 1, .block = 1};
  Graph graph = *Graph::create(device);
  const KernelNode node = *graph.add_kernel({}, config, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1);
  GraphExec exec = *instantiate(graph);
  const auto refused = [] {
    return StatusIs(absl::StatusCode::kFailedPrecondition, "The kernel is empty: nothing was assigned to it yet.");
  };
  const auto into = [&](LaunchTarget target) { return launch(target, config, Kernel<float*>(), x.as<float>()); };
  Cursor cursor = graph.cursor(after(node));
  const Kernel<float*> empty;

  CHECK(empty == KernelRef());
  CHECK_FALSE(KernelRef(scale_kernel()) == empty);
  CHECK_THAT(into(stream), refused());
  CHECK_THAT(into(cursor), refused());
  CHECK_THAT(into(cursor.programmatic()), refused());
  CHECK_THAT(graph.add_kernel({}, config, empty, x.as<float>()).status(), refused());
  CHECK_THAT(exec.set_params(node, config, empty, x.as<float>()), refused());
  CHECK_THAT(preload(empty, device), refused());
  CHECK_THAT(occupancy(empty, device, 64, 0).status(), refused());
  CHECK_THAT(suggest_config(empty, device, 64).status(), refused());
  CHECK_THAT(suggest_config(empty, device, 64, [](int) { return std::size_t{0}; }).status(), refused());
  CHECK_THAT(available_shared_bytes(empty, device, 64, 1).status(), refused());
  CHECK_THAT(max_cluster_size(empty, device, 64, 0).status(), refused());
  CHECK_THAT(max_active_clusters(empty, device, 2, 64, 0).status(), refused());
  CHECK_THAT(max_cooperative_blocks(empty, device, 64, 0).status(), refused());
  CHECK_THAT(set_max_shared_bytes(empty, device, 1024), refused());
  CHECK(*graph.node_count() == 1);
  CHECK_OK(capture(stream, [&](StreamRef s) {
             CHECK_THAT(into(s), refused());
             return absl::OkStatus();  // the driver was not asked, so the capture goes on
           }).status());
}

TEST_CASE("objects are made by assignment in a struct", "[graph]") {
  Simulator simulator;
  struct Step {
    Kernel<float*, const float*, float, int> kernel;
    Stream stream;
    Event event;
    Graph graph;
    GraphExec exec;
  } step;

  step.kernel = scale_kernel();
  step.stream = *Stream::create(DeviceRef(0));
  step.event = *Event::create(DeviceRef(0));
  step.graph = *Graph::create(DeviceRef(0));
  step.exec = *instantiate(step.graph);

  CHECK(step.kernel == scale_kernel());
  CHECK_OK(step.exec.launch(step.stream));  // an owned stream is taken where a raw one is
  CHECK_OK(step.stream.ref().record(step.event));
  CHECK_OK(step.event.ref().synchronize());
}

}  // namespace
}  // namespace cgrt::testing
