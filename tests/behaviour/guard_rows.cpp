// Executables with guarded addresses: a launch is refused when memory of a node is gone.
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// Without the address, which every run has of its own.
void note_launch(Notes& notes, const std::string& name, GraphExec& exec, const Stream& stream) {
  const absl::Status launched = exec.launch(stream);
  std::string text(launched.message());
  if (const std::size_t from = text.find(" at 0x"); from != std::string::npos) {
    text.erase(from, text.find(',', from) - from);
  }
  notes.status(name, launched);
  if (!text.empty()) notes.line("  " + text);
}

struct Scene {
  static absl::StatusOr<Scene> create(World& world) {
    Scene scene;
    CGRT_ASSIGN_OR_RETURN(scene.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(scene.y, device_floats(world, kCount, 2.0f));
    return scene;
  }
  static absl::StatusOr<DeviceBuffer> make(World& world) { return device_floats(world, kCount, 3.0f); }

  Stream stream;
  DeviceBuffer x, y;
};

BEHAVIOUR("a guarded executable is not launched while memory of a node is gone, whatever the node") {
  CGRT_ASSIGN_OR_RETURN(const Scene scene, Scene::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer inner, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer set, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer host, PinnedBuffer::create(world.device(), kBytes));
  CGRT_ASSIGN_OR_RETURN(const PinnedBuffer other_host, PinnedBuffer::create(world.device(), kBytes));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const KernelNode scaled, graph.add_kernel({}, kConfig, scale_kernel(), scene.y.as<float>(),
                                                                  in.as<float>(), 2.0f, kCount));
  CGRT_ASSIGN_OR_RETURN(const KernelNode read,
                        graph.add_kernel({scaled}, kConfig, pair_kernel(), scene.x.as<float>(),
                                         PairOfAddresses{inner.as<float>(), 3}, std::uint64_t{4}));
  CGRT_ASSIGN_OR_RETURN(
      const MemcpyNode copied,
      graph.add_copy({read}, {.destination = scene.y.data(), .source = host.data(), .bytes = kBytes}));
  CGRT_ASSIGN_OR_RETURN(
      const MemsetNode filled,
      graph.add_fill({copied}, {.destination = set.data(), .value = 0, .element_bytes = 4, .count = kCount}));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  note_launch(notes, "all there", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());

  in = DeviceBuffer();
  note_launch(notes, "argument", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(
      exec.set_params(scaled, kConfig, scale_kernel(), scene.y.as<float>(), scene.x.as<float>(), 2.0f, kCount));
  note_launch(notes, "argument set", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());

  inner = DeviceBuffer();
  note_launch(notes, "in a struct", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(exec.set_params(read, kConfig, pair_kernel(), scene.x.as<float>(),
                                       PairOfAddresses{scene.y.as<float>(), 3}, std::uint64_t{4}));

  host = PinnedBuffer();
  note_launch(notes, "source", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(
      exec.set_params(copied, {.destination = scene.y.data(), .source = other_host.data(), .bytes = kBytes}));

  set = DeviceBuffer();
  note_launch(notes, "destination", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(exec.set_enabled(filled, NodeState::kDisabled));
  note_launch(notes, "destination of a node that is disabled", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(exec.set_enabled(filled, NodeState::kEnabled));
  note_launch(notes, "and enabled", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(
      exec.set_params(filled, {.destination = scene.y.data(), .value = 0, .element_bytes = 4, .count = kCount}));
  note_launch(notes, "all set", exec, scene.stream);
  return scene.stream.ref().synchronize();
}

BEHAVIOUR("memory that was freed and allocated again at one address is other memory to a guarded executable") {
  CGRT_ASSIGN_OR_RETURN(const Scene scene, Scene::create(world));
  std::optional<DeviceBuffer> in;
  CGRT_ASSIGN_OR_RETURN(in, Scene::make(world));
  const void* const address = in->data();
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(
      graph.add_kernel({}, kConfig, scale_kernel(), scene.y.as<float>(), in->as<float>(), 2.0f, kCount).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.guard_addresses());

  in.reset();
  CGRT_ASSIGN_OR_RETURN(in, Scene::make(world));

  const absl::Status launched = exec.launch(scene.stream);
  notes.status("launch", launched);
  EXPECT(absl::StrContains(launched.message(), "and other memory is there now") == (in->data() == address));
  return absl::OkStatus();
}

BEHAVIOUR("a guarded executable follows updates, child graphs and rebinding") {
  CGRT_ASSIGN_OR_RETURN(const Scene scene, Scene::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer first, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer second, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer third, Scene::make(world));
  const auto step = [&](LaunchTarget target, const DeviceBuffer& from) {
    return launch(target, kConfig, scale_kernel(), scene.y.as<float>(), from.as<const float>(), 2.0f, kCount);
  };
  const auto of = [&](const DeviceBuffer& from) {
    return capture(scene.stream, [&](LaunchTarget target) { return step(target, from); });
  };
  CGRT_ASSIGN_OR_RETURN(const Graph with_first, of(first));
  CGRT_ASSIGN_OR_RETURN(const Graph with_second, of(second));
  CGRT_ASSIGN_OR_RETURN(const Graph with_third, of(third));

  CGRT_ASSIGN_OR_RETURN(GraphExec updated, instantiate(with_first));
  CGRT_RETURN_IF_ERROR(updated.guard_addresses());
  CGRT_RETURN_IF_ERROR(updated.update(with_second));

  CGRT_ASSIGN_OR_RETURN(Graph outer, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const EmptyNode before, outer.add_empty({}));
  CGRT_ASSIGN_OR_RETURN(const ChildGraphNode child, outer.add_child({before}, with_first));
  CGRT_ASSIGN_OR_RETURN(GraphExec nested, instantiate(outer));
  CGRT_RETURN_IF_ERROR(nested.guard_addresses());
  CGRT_RETURN_IF_ERROR(nested.set_params(child, with_second));

  CGRT_ASSIGN_OR_RETURN(Graph own, of(first));
  CGRT_ASSIGN_OR_RETURN(GraphExec rebound, instantiate_rebindable(own));
  CGRT_RETURN_IF_ERROR(rebound.guard_addresses());
  CGRT_RETURN_IF_ERROR(rebound.rebind([&](LaunchTarget target) { return step(target, second); }));

  first = DeviceBuffer();
  note_launch(notes, "updated", updated, scene.stream);
  note_launch(notes, "child set", nested, scene.stream);
  note_launch(notes, "rebound", rebound, scene.stream);
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());

  second = DeviceBuffer();
  note_launch(notes, "updated, and freed", updated, scene.stream);
  note_launch(notes, "child set, and freed", nested, scene.stream);
  note_launch(notes, "rebound, and freed", rebound, scene.stream);

  CGRT_RETURN_IF_ERROR(updated.update(with_third));
  CGRT_RETURN_IF_ERROR(nested.set_params(child, with_third));
  CGRT_RETURN_IF_ERROR(rebound.rebind([&](LaunchTarget target) { return step(target, third); }));
  note_launch(notes, "updated again", updated, scene.stream);
  note_launch(notes, "child set again", nested, scene.stream);
  note_launch(notes, "rebound again", rebound, scene.stream);
  return scene.stream.ref().synchronize();
}

BEHAVIOUR("a guarded executable made anew by an update is guarded") {
  CGRT_ASSIGN_OR_RETURN(const Scene scene, Scene::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, Scene::make(world));
  CGRT_ASSIGN_OR_RETURN(Graph one, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(one.add_empty({}).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(one));
  CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  CGRT_ASSIGN_OR_RETURN(Graph other, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(
      other.add_kernel({}, kConfig, scale_kernel(), scene.y.as<float>(), in.as<float>(), 2.0f, kCount).status());
  CGRT_ASSIGN_OR_RETURN(const UpdateReport report, exec.update_or_instantiate(other));
  EXPECT(report.rung == UpdateRung::kInstantiated);

  note_launch(notes, "there", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());
  in = DeviceBuffer();
  note_launch(notes, "gone", exec, scene.stream);
  return absl::OkStatus();
}

BEHAVIOUR("memory of allocation nodes is not guarded, stream-ordered memory is") {
  CGRT_ASSIGN_OR_RETURN(const Scene scene, Scene::create(world));
  const auto with_scratch = [&](LaunchTarget target) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(void* const scratch, allocate_async(target, kBytes));
    CGRT_RETURN_IF_ERROR(
        launch(target, kConfig, scale_kernel(), static_cast<float*>(scratch), scene.x.as<const float>(), 2.0f, kCount));
    CGRT_RETURN_IF_ERROR(copy(target, scene.y.data(), scratch, kBytes));
    return free_async(target, scratch);
  };
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(scene.stream, with_scratch));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.guard_addresses());
  for (int i = 0; i < 2; ++i) note_launch(notes, "memory of its own", exec, scene.stream);
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());

  CGRT_ASSIGN_OR_RETURN(void* const ordered, allocate_async(scene.stream, kBytes));
  CGRT_ASSIGN_OR_RETURN(Graph user, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(user.add_copy({}, {.destination = ordered, .source = scene.x.data(), .bytes = kBytes}).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec uses, instantiate(user));
  CGRT_RETURN_IF_ERROR(uses.guard_addresses());
  note_launch(notes, "stream-ordered", uses, scene.stream);
  CGRT_RETURN_IF_ERROR(free_async(scene.stream, ordered));
  CGRT_RETURN_IF_ERROR(scene.stream.ref().synchronize());
  note_launch(notes, "stream-ordered, and freed", uses, scene.stream);
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
