// Kernels: what they run, with what, and their launch attributes.
#include "verdicts/pairs.h"

namespace cgrt::testing {
namespace {

using ir::Rung;
using ir::Update;

Step scale(float factor, LaunchConfig config = kConfig) {
  return [=](const World& w, LaunchTarget target) {
    return launch(target, config, scale_kernel(), w.x(1), w.x(0), factor, kCount);
  };
}
Step width(LaunchAttributes attributes, int to = 0) {
  return [=](const World& w, LaunchTarget target) {
    return launch(target, LaunchConfig{.grid = 8, .block = 32, .attributes = attributes}, cluster_kernel(),
                  reinterpret_cast<int*>(w.x(2 + to)));
  };
}
LaunchConfig with(LaunchAttributes attributes) { return {.grid = 1, .block = 64, .attributes = attributes}; }

// Two kernels, one after the other by an edge of that kind.
Build two_kernels(EdgeKind kind, float factor) {
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const KernelNode first,
                          graph.add_kernel({}, kConfig, scale_kernel(), w.x(1), w.x(0), factor, kCount));
    CGRT_ASSIGN_OR_RETURN(const KernelNode second,
                          graph.add_kernel({}, kConfig, waiting_kernel(), w.x(2), w.x(1), 2.0f, kCount));
    return graph.add_edge(kind == EdgeKind::kProgrammatic ? programmatic(first) : Dependency(first), second);
  };
}

// A graph whose one node is a child graph with that step.
Build child_of(Step step) {
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(kDevice));
    CGRT_RETURN_IF_ERROR(step(w, child.cursor()));
    return graph.add_child({}, child).status();
  };
}
Build nested_child_of(const Step& step) {
  const Build inner = child_of(step);
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(Graph child, Graph::create(kDevice));
    CGRT_RETURN_IF_ERROR(inner(w, child));
    return graph.add_child({}, child).status();
  };
}
Build captured(Step step) {
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(graph, capture(w.stream.ref(), [&](LaunchTarget target) { return step(w, target); }));
    return absl::OkStatus();
  };
}

void add_parameters(std::vector<Pair>& pairs) {
  const auto grid = [](unsigned blocks) {
    return [=](const World& w, LaunchTarget target) {
      return launch(target, LaunchConfig{.grid = blocks, .block = 32}, grid_kernel(), reinterpret_cast<int*>(w.x(2)));
    };
  };
  pairs.push_back(steps("the same graph", scale(2), scale(2), Rung::kNone, Update::kTaken));
  pairs.push_back(steps("another scalar", scale(2), scale(3), Rung::kRebind, Update::kTaken));
  pairs.push_back(steps(
      "another place in a buffer", scale(2),
      [](const World& w, LaunchTarget target) {
        return launch(target, kConfig, scale_kernel(), w.x(3), w.x(0), 2.0f, kCount);
      },
      Rung::kRebind, Update::kTaken));
  pairs.push_back(steps("another grid", grid(2), grid(5), Rung::kRebind, Update::kTaken));
  pairs.push_back(steps(
      "arguments of two kernels and the grid of one",
      [=](const World& w, LaunchTarget target) -> absl::Status {
        CGRT_RETURN_IF_ERROR(scale(2)(w, target));
        return grid(2)(w, target);
      },
      [=](const World& w, LaunchTarget target) -> absl::Status {
        CGRT_RETURN_IF_ERROR(scale(5)(w, target));
        return grid(7)(w, target);
      },
      Rung::kRebind, Update::kTaken));
  pairs.push_back({.name = "another scalar, captured",
                   .a = captured(scale(2)),
                   .b = captured(scale(3)),
                   .step_b = scale(3),
                   .rung = Rung::kRebind,
                   .update = Update::kTaken});
  pairs.push_back(
      steps("another block", scale(2), scale(2, {.grid = 2, .block = 32}), Rung::kSetParams, Update::kTaken));
  pairs.push_back(steps("more dynamic shared memory", scale(2),
                        scale(3, {.grid = 1, .block = 64, .shared_bytes = 4096}), Rung::kSetParams, Update::kTaken));
  pairs.push_back(steps(
      "another function", scale(2),
      [](const World& w, LaunchTarget target) {
        return launch(target, kConfig, shift_kernel(), w.x(1), w.x(0), 2.0f, kCount);
      },
      Rung::kSetParams, Update::kTaken));
  pairs.push_back(steps(
      "a function with other parameters", scale(2),
      [](const World& w, LaunchTarget target) {
        return launch(target, kConfig, add_kernel(), w.x(1), w.x(0), w.x(3), kCount);
      },
      Rung::kSetParams, Update::kTaken));
  pairs.push_back({.name = "a buffer of the same size elsewhere, which a file does not show",
                   .a =
                       [](const World& w, Graph& graph) {
                         return graph.add_kernel({}, kConfig, scale_kernel(), w.h(1), w.h(1), 2.0f, kCount).status();
                       },
                   .b = [](const World&, Graph& graph) -> absl::Status {
                     CGRT_ASSIGN_OR_RETURN(PinnedBuffer other, PinnedBuffer::create(kDevice, World::kWords * 4));
                     float* const place = other.as<float>() + kCount;
                     for (int i = 0; i < kCount; ++i) place[i] = 1;
                     CGRT_RETURN_IF_ERROR(
                         graph.add_kernel({}, kConfig, scale_kernel(), place, place, 2.0f, kCount).status());
                     return graph.keep(std::move(other));
                   },
                   .step_b = nullptr,
                   .rung = Rung::kNone,
                   .update = Update::kTaken,
                   .traits = {.is_moved = true}});
}

void add_attributes(std::vector<Pair>& pairs) {
  const auto lost = [&](const char* name, LaunchAttributes was, LaunchAttributes wanted, Traits traits = {}) {
    pairs.push_back(steps(name, width(was), width(wanted), Rung::kInstantiate, Update::kLost, traits));
  };
  pairs.push_back(steps("arguments of a kernel with a cluster", width({.cluster = {2}}), width({.cluster = {2}}, 1),
                        Rung::kSetParams, Update::kTaken));
  lost("a cluster less", {.cluster = {2}}, {}, {.is_shown = true});
  constexpr const char* kKeepsCluster = "keeps the cluster of an executable";
  pairs.push_back(steps("a cluster more", width({}), width({.cluster = {2}}), Rung::kWholeUpdate, Update::kTaken,
                        {.is_shown = true, .lenient = kKeepsCluster}));
  pairs.push_back(steps("a larger cluster", width({.cluster = {2}}), width({.cluster = {4}}), Rung::kWholeUpdate,
                        Update::kTaken, {.is_shown = true, .lenient = kKeepsCluster}));
  lost("another scheduling of clusters", {.cluster = {2}},
       {.cluster = {2}, .cluster_scheduling = ClusterScheduling::kLoadBalancing});
  lost("another carveout", {}, {.shared_carveout_percent = 50});
  lost("another memory synchronization domain", {}, {.mem_sync_domain = MemSyncDomain::kRemote});
  pairs.push_back(steps(
      "an access policy window", scale(2),
      [](const World& w, LaunchTarget target) {
        return scale(2, with({.access_policy = {.base = w.memory.data(), .bytes = 1024}}))(w, target);
      },
      Rung::kInstantiate, Update::kLost));
  pairs.push_back(steps("a kernel that becomes cooperative", scale(2), scale(2, with({.cooperative = true})),
                        Rung::kInstantiate, Update::kRefused));
  pairs.push_back(steps("a kernel that is cooperative no more", scale(2, with({.cooperative = true})), scale(2),
                        Rung::kInstantiate, Update::kRefused));
  pairs.push_back(steps("another priority", scale(2), scale(2, with({.priority = -1})), Rung::kNone, Update::kTaken));
  pairs.push_back(steps("another priority, in an executable that uses those of nodes", scale(2),
                        scale(2, with({.priority = -1})), Rung::kNone, Update::kTaken,
                        {.flags = InstantiateFlags::kUseNodePriority, .update = Update::kRefused}));
}

void add_edges_and_children(std::vector<Pair>& pairs) {
  const auto add = [&](const char* name, Build a, Build b, Rung rung, Update update, Traits traits = {}) {
    pairs.push_back({name, std::move(a), std::move(b), nullptr, rung, update, traits});
  };
  add("a scalar beside a programmatic edge", two_kernels(EdgeKind::kProgrammatic, 2),
      two_kernels(EdgeKind::kProgrammatic, 3), Rung::kSetParams, Update::kTaken);
  add("a programmatic edge in the place of a full one", two_kernels(EdgeKind::kFull, 2),
      two_kernels(EdgeKind::kProgrammatic, 2), Rung::kInstantiate, Update::kRefused);
  add("a full edge in the place of a programmatic one", two_kernels(EdgeKind::kProgrammatic, 2),
      two_kernels(EdgeKind::kFull, 2), Rung::kInstantiate, Update::kRefused);
  add("a scalar in a child graph", child_of(scale(2)), child_of(scale(3)), Rung::kRebind, Update::kTaken);
  add("a function in a child graph", child_of(scale(2)), child_of([](const World& w, LaunchTarget target) {
        return launch(target, kConfig, shift_kernel(), w.x(1), w.x(0), 2.0f, kCount);
      }),
      Rung::kSetParams, Update::kTaken);
  add("a scalar in a child of a child", nested_child_of(scale(2)), nested_child_of(scale(3)), Rung::kRebind,
      Update::kTaken);
  // Set-params of the child did it in one run of two on driver 580.
  constexpr const char* kAttributesInside = "attributes of kernels inside of a child graph are not spoken of";
  add("a cluster in a child graph", child_of(width({.cluster = {2}})), child_of(width({.cluster = {4}})),
      Rung::kWholeUpdate, Update::kTaken, {.is_shown = true, .documented = kAttributesInside});
  add("a cluster in a child of a child", nested_child_of(width({.cluster = {2}})),
      nested_child_of(width({.cluster = {4}})), Rung::kWholeUpdate, Update::kTaken,
      {.is_shown = true, .documented = kAttributesInside});
  add("a kernel in a child graph that becomes cooperative", child_of(scale(2)),
      child_of(scale(2, with({.cooperative = true}))), Rung::kInstantiate, Update::kRefused);
  add("a longer child graph", child_of(scale(2)), child_of([](const World& w, LaunchTarget target) -> absl::Status {
        CGRT_RETURN_IF_ERROR(scale(2)(w, target));
        return scale(2)(w, target);
      }),
      Rung::kInstantiate, Update::kRefused);
}

}  // namespace

Pair steps(std::string name, Step a, Step b, ir::Rung rung, ir::Update update, Traits traits) {
  const auto build = [](Step step) {
    return [step = std::move(step)](const World& w, Graph& graph) -> absl::Status {
      Cursor cursor = graph.cursor();
      return step(w, cursor);
    };
  };
  return {std::move(name), build(std::move(a)), build(b), b, rung, update, traits};
}

std::vector<Pair> kernel_pairs() {
  std::vector<Pair> pairs;
  add_parameters(pairs);
  add_attributes(pairs);
  add_edges_and_children(pairs);
  return pairs;
}

}  // namespace cgrt::testing
