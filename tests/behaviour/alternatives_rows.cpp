// Graphs that hold the nodes of several steps, of which an executable runs one at each launch.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kWide{.grid = 1, .block = 64}, kNarrow{.grid = 2, .block = 32};

struct Arrays {
  DeviceBuffer x, y, z;
  static absl::StatusOr<Arrays> create(World& world) {
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 0.0f));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer z, device_floats(world, kCount, 0.0f));
    return Arrays{std::move(x), std::move(y), std::move(z)};
  }
};

// y = i x, z = y + y ...; each step has other kernels, blocks and copies.
absl::Status step(LaunchTarget target, const Arrays& a, std::size_t i, float factor) {
  float* const x = a.x.as<float>();
  float* const y = a.y.as<float>();
  float* const z = a.z.as<float>();
  switch (i) {
    case 0:
      CGRT_RETURN_IF_ERROR(launch(target, kWide, scale_kernel(), y, x, factor, kCount));
      return launch(target, kWide, add_kernel(), z, y, x, kCount);
    case 1:
      CGRT_RETURN_IF_ERROR(launch(target, kNarrow, scale_kernel(), y, x, factor, kCount));
      CGRT_RETURN_IF_ERROR(copy(target, z, x, kCount * sizeof(float)));
      return launch(target, kWide, add_kernel(), z, y, z, kCount);
    case 2:
      CGRT_RETURN_IF_ERROR(copy(target, y, x, kCount * sizeof(float)));
      CGRT_RETURN_IF_ERROR(launch(target, kWide, scale_kernel(), y, y, factor, kCount));
      return launch(target, kWide, scale_kernel(), z, y, factor, kCount);
    default: {  // as a library, whose kernels depend on the size
      const auto call = [&](CUstream s) -> absl::Status {
        CGRT_RETURN_IF_ERROR(launch(s, kNarrow, scale_kernel(), y, x, factor, kCount));
        return launch(s, kWide, add_kernel(), z, x, y, kCount);
      };
      return target.sink() != nullptr ? target.sink()->add_captured(call, {}) : call(target.stream().get());
    }
  }
}

absl::Status note_floats(World& world, Notes& notes, const std::string& name, const Arrays& a) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> y, read_floats(world, a.y));
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> z, read_floats(world, a.z));
  notes.line(absl::StrCat(name, ": y = ", y.front(), ", ", y.back(), ", z = ", z.front(), ", ", z.back()));
  return absl::OkStatus();
}

BEHAVIOUR("one executable runs steps of other kernels, one at each launch") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Arrays a, Arrays::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(world.device(), 4, [&](LaunchTarget target, std::size_t i) {
                          const Scope scope(i == 2 ? "two" : "others");
                          return step(target, a, i, 2.0f);
                        }));
  CGRT_RETURN_IF_ERROR(notes.graph("four steps", graph));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto run = [&](const std::string& name) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(stream, a.y.data(), 0, kCount));
    CGRT_RETURN_IF_ERROR(fill32(stream, a.z.data(), 0, kCount));
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    return note_floats(world, notes, name, a);
  };
  CGRT_RETURN_IF_ERROR(run("before a rebind"));
  for (const std::size_t i : {1u, 2u, 3u, 0u, 2u, 1u, 0u, 3u}) {
    const float factor = 3.0f + static_cast<float>(i);
    CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, a, i, factor); }));
    CGRT_RETURN_IF_ERROR(run(absl::StrCat("step ", i)));
  }
  CGRT_RETURN_IF_ERROR(run("the same again"));
  // Steps that none of them is, but whose calls come in the same order.
  notes.status("a part of a step", exec.rebind([&](LaunchTarget target) {
    return launch(target, kWide, add_kernel(), a.z.as<float>(), a.x.as<float>(), a.x.as<float>(), kCount);
  }));
  CGRT_RETURN_IF_ERROR(run("a part of a step"));
  notes.status("nothing", exec.rebind([](LaunchTarget) { return absl::OkStatus(); }));
  CGRT_RETURN_IF_ERROR(run("nothing"));

  const absl::Status unknown = exec.rebind([&](LaunchTarget target) {
    return launch(target, {.grid = 1, .block = 128}, scale_kernel(), a.y.as<float>(), a.x.as<float>(), 1.0f, kCount);
  });
  notes.status("a block that no step has", unknown);
  for (const char* word : {"Call 1", "scale", "block"}) EXPECT(absl::StrContains(unknown.message(), word));
  const absl::Status order = exec.rebind([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step(target, a, 0, 2.0f));
    return step(target, a, 1, 2.0f);
  });
  notes.status("two steps in one", order);
  EXPECT(absl::StrContains(order.message(), "Call 3"));
  CGRT_RETURN_IF_ERROR(run("after refusals"));
  notes.status("plain", instantiate(graph).status());
  return absl::OkStatus();
}

BEHAVIOUR("launches in flight keep the step that they were rebound to, from prepared bindings") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  std::vector<Arrays> arrays;
  for (int i = 0; i < 4; ++i) {
    CGRT_ASSIGN_OR_RETURN(Arrays one, Arrays::create(world));
    arrays.push_back(std::move(one));
  }
  CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(world.device(), 4, [&](LaunchTarget target, std::size_t i) {
                          return step(target, arrays[0], i, 2.0f);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < 4; ++i) {
    CGRT_ASSIGN_OR_RETURN(Binding binding, exec.prepare([&](LaunchTarget target) {
      return step(target, arrays[i], i, 10.0f + static_cast<float>(i));
    }));
    bindings.push_back(std::move(binding));
  }
  // Copies are switched by the host, which launches in flight do not see either.
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
    for (const Binding& binding : bindings) {
      CGRT_RETURN_IF_ERROR(exec.rebind(binding));
      CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    }
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  for (std::size_t i = 0; i < 4; ++i) {
    CGRT_RETURN_IF_ERROR(note_floats(world, notes, absl::StrCat("step ", i), arrays[i]));
  }
  return absl::OkStatus();
}

// With so much shared memory that a multiprocessor has room for one of its blocks.
struct Meeting {
  static constexpr std::uint32_t kShared = 160 * 1024, kBlock = 64;

  static absl::StatusOr<Meeting> create(World& world) {
    Meeting meeting;
    CGRT_RETURN_IF_ERROR(set_max_shared_bytes(meet_kernel(), world.device(), kShared));
    CGRT_ASSIGN_OR_RETURN(meeting.arrived, DeviceBuffer::create(world.device(), sizeof(int)));
    CGRT_ASSIGN_OR_RETURN(meeting.out, PinnedBuffer::create(world.device(), 8 * sizeof(int)));
    for (const std::uint32_t cluster : {2u, 4u}) {
      CGRT_ASSIGN_OR_RETURN(const int count,
                            max_active_clusters(meet_kernel(), world.device(), Dim3(cluster), Dim3(kBlock), kShared));
      meeting.blocks[cluster] = static_cast<std::uint32_t>(count) * cluster;
    }
    return meeting;
  }
  // out[at] = value, or -value when not all blocks ran at once, which is as many as there is room for over `share`.
  absl::Status launch(LaunchTarget target, std::uint32_t cluster, int at, int value, std::uint32_t share = 1) const {
    CGRT_RETURN_IF_ERROR(fill32(target, arrived.data(), 0, 1));
    const std::uint32_t grid = blocks.at(cluster) / (share * cluster) * cluster;
    return cgrt::launch(target,
                        {.grid = grid, .block = kBlock, .shared_bytes = kShared, .attributes = {.cluster = {cluster}}},
                        meet_kernel(), arrived.as<int>(), out.as<int>() + at, value);
  }
  DeviceBuffer arrived;
  PinnedBuffer out;
  std::map<std::uint32_t, std::uint32_t> blocks;  // by cluster
};

BEHAVIOUR("kernels with clusters are switched and get other grids, and have all multiprocessors still") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Meeting meeting, Meeting::create(world));
  const int* const out = meeting.out.as<int>();
  const auto step = [&](LaunchTarget target, std::size_t i, int at, int value) {
    return meeting.launch(target, i == 0 ? 2 : 4, at, value);
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(world.device(), 2, [&](LaunchTarget target, std::size_t i) {
                          return step(target, i, 0, 1);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto run = [&](const std::string& name, GraphExec& of) -> absl::Status {
    CGRT_RETURN_IF_ERROR(of.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    notes.line(absl::StrCat(name, ": ", out[0]));
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(run("before a rebind", exec));
  for (const std::size_t i : {1u, 0u, 1u, 1u, 0u}) {
    CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, i, 0, static_cast<int>(i) + 2); }));
    CGRT_RETURN_IF_ERROR(run(absl::StrCat("step ", i), exec));
  }
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
    for (int at = 0; at < 8; ++at) {
      const std::size_t i = at / 2 % 2 == 0 ? 0 : 1;
      CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return step(target, i, at, 10 + at); }));
      CGRT_RETURN_IF_ERROR(exec.launch(stream));
    }
  }
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  for (int at = 0; at < 8; ++at) notes.line(absl::StrCat("in flight ", at, ": ", out[at]));

  CGRT_ASSIGN_OR_RETURN(Graph one, Graph::create(world.device()));
  Cursor cursor = one.cursor();
  CGRT_RETURN_IF_ERROR(meeting.launch(cursor, 4, 0, 20));
  CGRT_ASSIGN_OR_RETURN(GraphExec alone, instantiate_rebindable(one));
  for (const std::uint32_t share : {1u, 2u, 1u, 3u, 1u}) {
    CGRT_RETURN_IF_ERROR(alone.rebind(
        [&](LaunchTarget target) { return meeting.launch(target, 4, 0, 20 + static_cast<int>(share), share); }));
    CGRT_RETURN_IF_ERROR(run(absl::StrCat("a share of ", share), alone));
  }
  CGRT_ASSIGN_OR_RETURN(const KernelNode kernel, find_node<KernelNode>(one, {.name = "meet"}));
  CGRT_RETURN_IF_ERROR(alone.set_enabled(kernel, NodeState::kDisabled));
  meeting.out.as<int>()[0] = 5;
  CGRT_RETURN_IF_ERROR(run("disabled", alone));
  CGRT_RETURN_IF_ERROR(alone.set_enabled(kernel, NodeState::kEnabled));
  CGRT_RETURN_IF_ERROR(run("enabled", alone));
  CGRT_RETURN_IF_ERROR(alone.set_grid(kernel, Dim3(8)));
  CGRT_RETURN_IF_ERROR(run("eight blocks", alone));
  return absl::OkStatus();
}

BEHAVIOUR("steps with other kernels with clusters run one after the other, in whatever streams") {
  CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer widths, PinnedBuffer::create(world.device(), 3 * sizeof(int)));
  int* const out = widths.as<int>();
  std::fill_n(out, 3, 0);
  const auto with = [&](LaunchTarget target, std::initializer_list<std::uint32_t> clusters) -> absl::Status {
    int at = 0;
    for (const std::uint32_t cluster : clusters) {
      const LaunchConfig config{.grid = 8, .block = 64, .attributes = {.cluster = {cluster}}};
      CGRT_RETURN_IF_ERROR(launch(target, config, cluster_kernel(), out + at++));
    }
    return absl::OkStatus();
  };
  const auto step = [&](LaunchTarget target, std::size_t i) {
    return i == 0 ? with(target, {2, 4}) : with(target, {4, 8});
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(world.device(), 2, step));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto rebind = [&](std::size_t i) { return exec.rebind([&](LaunchTarget target) { return step(target, i); }); };
  const auto note = [&](const char* name) { notes.line(absl::StrCat(name, ": ", out[0], " ", out[1], " ", out[2])); };
  for (const std::size_t i : {1u, 0u}) {
    CGRT_RETURN_IF_ERROR(rebind(i));
    CGRT_RETURN_IF_ERROR(exec.launch(a));
    CGRT_RETURN_IF_ERROR(a.ref().synchronize());
    note(i == 0 ? "first step" : "second step");
  }
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, a.ref()));
    CGRT_RETURN_IF_ERROR(exec.launch(a));
    CGRT_RETURN_IF_ERROR(rebind(1));
    CGRT_RETURN_IF_ERROR(exec.launch(b));
    notes.completion("b while a is held", b.ref().completion());
  }
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());
  note("the second behind the first");
  CGRT_RETURN_IF_ERROR(exec.rebind([&](LaunchTarget target) { return with(target, {2, 4, 8}); }));
  CGRT_RETURN_IF_ERROR(exec.launch(b));
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());
  note("what is no step");
  CGRT_RETURN_IF_ERROR(rebind(0));
  CGRT_RETURN_IF_ERROR(exec.launch(b));
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());
  note("the first again");
  return absl::OkStatus();
}

BEHAVIOUR("steps that cannot be alternatives are refused by name") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Arrays a, Arrays::create(world));
  const auto refused = [&](const char* name, std::vector<const char*> words, auto make) {
    const absl::Status status = build_alternatives(world.device(), 2, make).status();
    notes.status(name, status);
    for (const char* word : words) {
      if (!absl::StrContains(status.message(), word)) notes.line(std::string(status.message()));
      EXPECT(absl::StrContains(status.message(), word));
    }
  };
  refused("a host function in one of them", {"host", "1 of 2 steps"},
          [&](LaunchTarget target, std::size_t i) -> absl::Status {
            if (i == 1) CGRT_RETURN_IF_ERROR(launch_host(target, [] {}));
            return step(target, a, 0, 1.0f);
          });
  refused("a memset in one of them", {"memset", "1 of 2 steps"},
          [&](LaunchTarget target, std::size_t i) -> absl::Status {
            if (i == 1) CGRT_RETURN_IF_ERROR(fill32(target, a.y.data(), 0, kCount));
            return step(target, a, 0, 1.0f);
          });
  refused("a failing step", {"mine"},
          [&](LaunchTarget, std::size_t i) { return i == 1 ? absl::AbortedError("mine") : absl::OkStatus(); });
  notes.status("no step", build_alternatives(world.device(), 0, [](LaunchTarget, std::size_t) {
                            return absl::OkStatus();
                          }).status());
  // In all of them it stays where it is.
  int calls = 0;
  CGRT_ASSIGN_OR_RETURN(Graph graph, build_alternatives(world.device(), 2, [&](LaunchTarget target, std::size_t i) {
                          CGRT_RETURN_IF_ERROR(fill32(target, a.y.data(), 0, kCount));
                          CGRT_RETURN_IF_ERROR(step(target, a, i, 2.0f));
                          return launch_host(
                              target, [](void* data) { ++*static_cast<int*>(data); }, &calls);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  const absl::Status left_out = exec.rebind([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(fill32(target, a.y.data(), 0, kCount));
    return step(target, a, 1, 2.0f);
  });
  notes.status("left out by a rebind", left_out);
  EXPECT(absl::StrContains(left_out.message(), "host"));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line(absl::StrCat("calls: ", calls));
  CGRT_ASSIGN_OR_RETURN(Graph outer, Graph::create(world.device()));
  notes.status("as a child graph", outer.add_child({}, graph).status());
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
