// Launch attributes on every target, and what keeps them.
#include "behaviour/cluster_probe.h"
#include "cgrt/ir/describe.h"

namespace cgrt::testing {
namespace {

LaunchConfig with(LaunchAttributes attributes, std::uint32_t grid = 8) {
  return {.grid = grid, .block = 64, .attributes = attributes};
}

absl::Status note_attributes(Notes& notes, const std::string& name, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(const ir::GraphIr shot, snapshot(graph));
  for (const ir::Node& node : shot.nodes) {
    const auto* kernel = std::get_if<ir::KernelParams>(&node.params);
    if (kernel != nullptr) notes.line(name + ": " + ir::describe(shot, kernel->attributes));
  }
  return absl::OkStatus();
}

BEHAVIOUR("launch attributes are the same on every target, and survive clone, child and copy") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer window, DeviceBuffer::create(world.device(), 4096));
  const std::pair<const char*, LaunchAttributes> cases[] = {
      {"none", {}},
      {"cluster", {.cluster = {4}}},
      {"cooperative", {.cooperative = true}},
      {"both", {.cooperative = true, .cluster = {2}}},
      {"priority", {.priority = -2}},
      {"domain", {.mem_sync_domain = MemSyncDomain::kRemote}},
      {"carveout", {.shared_carveout_percent = 50}},
      {"window", {.access_policy = {window.data(), 2048, 0.5f}}},
  };
  for (const auto& [name, attributes] : cases) {
    const auto step = [&](LaunchTarget target) { return probe.launch(target, with(attributes)); };
    *probe.data() = -1;
    notes.status(std::string(name) + ", eager", step(probe.stream.ref()));
    CGRT_RETURN_IF_ERROR(probe.stream.ref().synchronize());
    notes.line(std::string(name) + ", eager: cluster of " + std::to_string(*probe.data()));
    CGRT_ASSIGN_OR_RETURN(Graph captured, capture(probe.stream.ref(), step));
    CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(step(built.cursor()));
    CGRT_ASSIGN_OR_RETURN(Graph clone, built.clone());
    CGRT_ASSIGN_OR_RETURN(Graph parent, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(parent.add_child({}, built).status());
    CGRT_ASSIGN_OR_RETURN(Graph filled, Graph::create(world.device()));
    Cursor place = filled.cursor();
    CGRT_RETURN_IF_ERROR(capture_into(place, probe.stream.ref(), step));
    const std::pair<const char*, const Graph*> graphs[] = {
        {"captured", &captured}, {"built", &built}, {"clone", &clone}, {"child", &parent}, {"filled", &filled}};
    for (const auto& [kind, graph] : graphs) {
      const std::string full = std::string(name) + ", " + kind;
      CGRT_RETURN_IF_ERROR(note_attributes(notes, full, *graph));
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
      CGRT_RETURN_IF_ERROR(probe.note(notes, full, exec));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("attributes that no device can give are refused on every target and leave no node") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const std::pair<const char*, LaunchConfig> cases[] = {
      {"grid no multiple of the cluster", with({.cluster = {3}})},
      {"cluster of 16", with({.cluster = {16}}, 32)},
      {"cluster of 0", with({.cluster = {0}})},
      {"cooperative, too many blocks", with({.cooperative = true}, 100000)},
  };
  for (const auto& [name, config] : cases) {
    const auto step = [&](LaunchTarget target) { return probe.launch(target, config); };
    notes.status(std::string(name) + ", eager", step(probe.stream.ref()));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    const absl::Status refused = step(graph.cursor());
    notes.status(std::string(name) + ", explicit", refused);
    EXPECT(refused.message().find("cluster_size") != std::string::npos);
    CGRT_ASSIGN_OR_RETURN(std::size_t nodes, graph.node_count());
    EXPECT(nodes == 0);
  }
  return probe.stream.ref().synchronize();
}

BEHAVIOUR("a grid that is no multiple of a compiled-in cluster is refused as such") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto step = [&](LaunchTarget target) { return launch(target, with({}, 3), paired_kernel(), probe.data()); };
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  const absl::Status refused = step(probe.stream);
  notes.status("eager", refused);
  EXPECT(refused.message().find("not a multiple of the cluster (2, 1, 1)") != std::string::npos);
  notes.status("explicit", step(graph.cursor()));
  notes.status("instantiate", instantiate(graph).status());
  return absl::OkStatus();
}

BEHAVIOUR("an update that would lose launch attributes is refused by name") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  const auto build = [&](LaunchAttributes attributes, bool captured) -> absl::StatusOr<Graph> {
    const auto step = [&](LaunchTarget target) { return probe.launch(target, with(attributes)); };
    if (captured) return capture(probe.stream.ref(), step);
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_RETURN_IF_ERROR(step(graph.cursor()));
    return graph;
  };
  for (const bool captured : {false, true}) {
    CGRT_ASSIGN_OR_RETURN(Graph plain, build({}, captured));
    CGRT_ASSIGN_OR_RETURN(Graph two, build({.cluster = {2}}, captured));
    CGRT_ASSIGN_OR_RETURN(Graph four, build({.cluster = {4}}, captured));
    CGRT_ASSIGN_OR_RETURN(Graph cooperative, build({.cooperative = true}, captured));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(two));
    const auto update = [&](const char* name, const Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(UpdateReport report, exec.try_update(graph));
      notes.line(std::string(name) + ": " + to_string(report.refusal));
      if (report.rung == UpdateRung::kRefused) EXPECT(report.text.find("cluster_size") != std::string::npos);
      return probe.note(notes, name, exec);
    };
    CGRT_RETURN_IF_ERROR(update("itself", two));
    CGRT_RETURN_IF_ERROR(update("no cluster", plain));
    CGRT_RETURN_IF_ERROR(update("another cluster", four));
    CGRT_RETURN_IF_ERROR(update("cooperative", cooperative));
  }
  return absl::OkStatus();
}

BEHAVIOUR("parameters of a node with attributes can be set, its attributes cannot") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode node, graph.add_kernel({}, with({.cluster = {2}}), cluster_kernel(), probe.data()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));

  notes.status("another grid", exec.set_params(node, with({.cluster = {2}}, 16), cluster_kernel(), probe.data()));
  CGRT_RETURN_IF_ERROR(probe.note(notes, "another grid", exec));
  notes.status("grid of 15", exec.set_params(node, with({.cluster = {2}}, 15), cluster_kernel(), probe.data()));
  notes.status("another cluster", exec.set_params(node, with({.cluster = {4}}), cluster_kernel(), probe.data()));
  notes.status("no cluster", exec.set_params(node, with({}), cluster_kernel(), probe.data()));
  return probe.note(notes, "after the refusals", exec);
}

BEHAVIOUR("a kernel may start when its predecessor's blocks have begun") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(KernelNode first, graph.add_kernel({}, with({}), cluster_kernel(), probe.data()));

  notes.status("add", graph.add_kernel({launched(first)}, with({}), cluster_kernel(), probe.data()).status());
  notes.status("instantiate", instantiate(graph).status());
  return notes.graph("graph", graph);
}

BEHAVIOUR("only kernels can be waited for, and can wait, before their predecessor has ended") {
  CGRT_ASSIGN_OR_RETURN(const ClusterProbe probe, ClusterProbe::create(world));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, 64, 1.0f));
  for (const EdgeKind kind : {EdgeKind::kProgrammatic, EdgeKind::kLaunchCompletion}) {
    const std::string name = kind == EdgeKind::kProgrammatic ? "programmatic" : "launch completion";
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(KernelNode first, graph.add_kernel({}, with({}), cluster_kernel(), probe.data()));
    const Dependency early(first, kind);
    notes.status(name + " into a memset", graph.add_fill({early}, {x.data(), 0, 4, 64}).status());
    notes.status(name + " into a copy", graph.add_copy({early}, x.data(), x.as<float>() + 32, 64).status());
    notes.status(name + " into a host function", graph.add_host({early}, [] {}).status());
    notes.status(name + " into an empty node", graph.add_empty({early}).status());
    CGRT_ASSIGN_OR_RETURN(MemsetNode filled, graph.add_fill({}, {x.data(), 0, 4, 64}));
    const Dependency from_memset(KernelNode(filled.get()), kind);
    notes.status(name + " out of a memset",
                 graph.add_kernel({from_memset}, with({}), cluster_kernel(), probe.data()).status());
    CGRT_RETURN_IF_ERROR(notes.graph(name, graph));
    notes.status(name + ", instantiate", instantiate(graph).status());
  }
  return absl::OkStatus();
}

BEHAVIOUR("occupancy answers for shared memory, clusters and co-residency") {
  const auto note = [&](const std::string& name, const auto& answer) {
    if (answer.ok()) {
      notes.line(name + ": " + std::to_string(*answer));
    } else {
      notes.status(name, answer.status());
    }
  };
  for (const int blocks : {1, 2, 8, 100}) {
    note("shared memory for " + std::to_string(blocks) + " blocks of 256",
         available_shared_bytes(scale_kernel(), world.device(), Dim3(256), blocks));
  }
  note("largest cluster", max_cluster_size(scale_kernel(), world.device(), Dim3(128), 0));
  note("clusters of 1", max_active_clusters(scale_kernel(), world.device(), Dim3(1), Dim3(256), 0));
  note("clusters of 2", max_active_clusters(scale_kernel(), world.device(), Dim3(2), Dim3(256), 0));
  note("clusters of 32", max_active_clusters(scale_kernel(), world.device(), Dim3(32), Dim3(256), 0));
  note("cooperative blocks of 256", max_cooperative_blocks(scale_kernel(), world.device(), Dim3(256), 0));
  note("cooperative blocks of 1024 with 40000 bytes",
       max_cooperative_blocks(scale_kernel(), world.device(), Dim3(1024), 40000));
  CGRT_ASSIGN_OR_RETURN(LaunchConfig config, suggest_config(scale_kernel(), world.device(), 100000, [](int threads) {
                          return std::size_t{16} * static_cast<std::size_t>(threads);
                        }));
  notes.line("with 16 bytes a thread: grid " + std::to_string(config.grid.x) + " block " +
             std::to_string(config.block.x) + " shared " + std::to_string(config.shared_bytes));
  notes.status("preload", preload(scale_kernel(), world.device()));
  return absl::OkStatus();
}

BEHAVIOUR("where no block fits, no configuration is suggested") {
  using SharedBytes = std::size_t (*)(int);
  const std::pair<const char*, SharedBytes> cases[] = {
      {"300 KiB", [](int) { return std::size_t{300} << 10; }},
      {"60 KiB, which needs an opt-in", [](int) { return std::size_t{60} << 10; }},
      {"4 GiB", [](int) { return (std::size_t{1} << 32) + 16; }},
      {"100 bytes a thread", [](int threads) { return std::size_t{100} * static_cast<std::size_t>(threads); }},
  };
  for (const auto& [name, bytes] : cases) {
    const absl::StatusOr<LaunchConfig> config = suggest_config(add_kernel(), world.device(), 1000, bytes);
    notes.status(name, config.status());
    if (config.ok()) {
      notes.line("  block " + std::to_string(config->block.x) + " shared " + std::to_string(config->shared_bytes));
    }
  }
  notes.status("occupancy of 60,000 bytes without an opt-in",
               occupancy(add_kernel(), world.device(), Dim3(64), 60000).status());
  notes.status("a cooperative launch of that",
               max_cooperative_blocks(add_kernel(), world.device(), Dim3(64), 60000).status());
  notes.status("a block of 4 x 10^9 threads",
               available_shared_bytes(add_kernel(), world.device(), Dim3(65536, 65536), 1).status());
  notes.status("with the opt-in", set_max_shared_bytes(add_kernel(), world.device(), 65536));
  notes.status("occupancy of 60,000 bytes", occupancy(add_kernel(), world.device(), Dim3(64), 60000).status());
  return set_max_shared_bytes(add_kernel(), world.device(), 48 << 10);  // as other rows have it
}

BEHAVIOUR("an argument lies at a multiple of its alignment") {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const PinnedBuffer out, PinnedBuffer::create(world.device(), 64));
  Aligned in;
  for (int i = 0; i < 64; ++i) in.bytes[i] = static_cast<unsigned char>(i);
  const auto step = [&](LaunchTarget target) {
    return launch(target, LaunchConfig{.grid = 1, .block = 64}, aligned_kernel(), out.as<unsigned char>(), in);
  };
  CGRT_RETURN_IF_ERROR(step(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("eager: the last byte is " + std::to_string(out.as<unsigned char>()[63]));
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(stream, step));
  out.as<unsigned char>()[63] = 0;
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.line("captured: the last byte is " + std::to_string(out.as<unsigned char>()[63]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
