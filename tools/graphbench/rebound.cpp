#include "rebound.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bench_kernels.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/alternatives.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/launch/launch.h"
#include "own_chain.h"

namespace graphbench::own {

using cgrt::Graph;
using cgrt::GraphExec;
using cgrt::LaunchTarget;
using cgrt::StreamRef;
using Arrays = Setup::Arrays;

namespace {

struct Rebindable {
  GraphExec exec;
  unsigned next = 0;
  std::vector<cgrt::Binding> bindings = {};  // that next chooses from
};

absl::StatusOr<std::shared_ptr<Rebindable>> make_rebindable(const Setup& setup, Graph graph) {
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, cgrt::instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(setup.stream.ref()));
  CGRT_RETURN_IF_ERROR(setup.stream.ref().synchronize());
  return std::make_shared<Rebindable>(Rebindable{std::move(exec)});
}

absl::StatusOr<std::shared_ptr<Rebindable>> make_rebindable(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, make_chain(setup, nodes, setup.arrays()));
  return make_rebindable(setup, std::move(graph));
}

// Every other time the kernels read what they write.
absl::Status rebind_pointers(const Setup& setup, Rebindable& chain, int nodes) {
  Arrays arrays = setup.arrays();
  if ((++chain.next & 1) != 0) arrays.in = arrays.out;
  return chain.exec.rebind([&](LaunchTarget target) { return launch_chain(setup, target, nodes, arrays); });
}

absl::Status launch_grids(const Setup& setup, LaunchTarget target, int nodes, std::uint32_t more) {
  const auto& [desc, kernel, config] = setup.plan;
  const auto& [out, in] = setup.arrays();
  cgrt::LaunchConfig larger = config;
  larger.grid.x += more;
  for (int i = 0; i < nodes; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, larger, kernel, out, in, nullptr, kAlpha, desc.count));
  }
  return absl::OkStatus();
}

absl::Status rebind_grids(const Setup& setup, Rebindable& chain, int nodes) {
  const std::uint32_t more = ++chain.next & 1;
  return chain.exec.rebind([&](LaunchTarget target) { return launch_grids(setup, target, nodes, more); });
}

absl::Status rebind_prepared(const Setup&, Rebindable& chain, int) {
  return chain.exec.rebind(chain.bindings[++chain.next % chain.bindings.size()]);
}

absl::StatusOr<std::shared_ptr<Rebindable>> prepare_pointers(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  const Arrays arrays = setup.arrays();
  for (const float* in : {arrays.in, static_cast<const float*>(arrays.out)}) {
    CGRT_ASSIGN_OR_RETURN(cgrt::Binding binding, chain->exec.prepare([&](LaunchTarget target) {
      return launch_chain(setup, target, nodes, {arrays.out, in});
    }));
    chain->bindings.push_back(std::move(binding));
  }
  return chain;
}

absl::StatusOr<std::shared_ptr<Rebindable>> prepare_grids(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  for (const std::uint32_t more : {0u, 1u}) {
    CGRT_ASSIGN_OR_RETURN(cgrt::Binding binding, chain->exec.prepare([&](LaunchTarget target) {
      return launch_grids(setup, target, nodes, more);
    }));
    chain->bindings.push_back(std::move(binding));
  }
  return chain;
}

using Rebind = absl::Status (*)(const Setup& setup, Rebindable& chain, int nodes);

Side rebound(const Setup& setup, const std::shared_ptr<Rebindable>& chain, int nodes, Rebind rebind) {
  return Side{.prepare = [chain, &setup, nodes, rebind](int) { return rebind(setup, *chain, nodes); },
              .run = [chain, stream = setup.stream.ref()](int) -> absl::Status {
                CGRT_RETURN_IF_ERROR(chain->exec.launch(stream));
                return stream.synchronize();
              }};
}

// With the rebind in the time.
Side rebind_launch_sync(const Setup& setup, const std::shared_ptr<Rebindable>& chain, int nodes, Rebind rebind) {
  return Side{.run = [chain, &setup, nodes, rebind, stream = setup.stream.ref()](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      CGRT_RETURN_IF_ERROR(rebind(setup, *chain, nodes));
      CGRT_RETURN_IF_ERROR(chain->exec.launch(stream));
      CGRT_RETURN_IF_ERROR(stream.synchronize());
    }
    return absl::OkStatus();
  }};
}

// A kernel whose arguments are four pointers; every other time they are others.
absl::Status launch_four_pointers(const Setup& setup, LaunchTarget target, int nodes, unsigned turn) {
  float* const x = setup.x.as<float>() + (turn & 1);
  float* const y = setup.y.as<float>() + (turn & 1);
  for (int i = 0; i < nodes; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, {.grid = 1, .block = 32}, four_pointers_kernel(), x, y, y + 2, y + 4));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Rebindable>> make_four_pointers(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
  CGRT_RETURN_IF_ERROR(launch_four_pointers(setup, graph.cursor(), nodes, 0));
  return make_rebindable(setup, std::move(graph));
}

absl::Status rebind_four_pointers(const Setup& setup, Rebindable& chain, int nodes) {
  const unsigned turn = ++chain.next;
  return chain.exec.rebind([&](LaunchTarget target) { return launch_four_pointers(setup, target, nodes, turn); });
}

}  // namespace

absl::StatusOr<Side> rebindable_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  return launch_and_wait(setup, std::shared_ptr<GraphExec>(chain, &chain->exec));
}

absl::StatusOr<Side> rebound_pointers(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  return rebound(setup, chain, nodes, &rebind_pointers);
}

absl::StatusOr<Side> rebound_grids(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  return rebound(setup, chain, nodes, &rebind_grids);
}

absl::StatusOr<Side> rebound_captured_pointers(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, cgrt::capture(setup.stream.ref(), [&](StreamRef stream) {
                          return launch_chain(setup, stream, nodes, setup.arrays());
                        }));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, std::move(graph)));
  return rebound(setup, chain, nodes, &rebind_pointers);
}

absl::StatusOr<Side> rebound_four_pointers(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_four_pointers(setup, nodes));
  return rebound(setup, chain, nodes, &rebind_four_pointers);
}

absl::StatusOr<Side> four_pointers_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_four_pointers(setup, nodes));
  return launch_and_wait(setup, std::shared_ptr<GraphExec>(chain, &chain->exec));
}

absl::StatusOr<Side> rebind_pointers_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  return rebind_launch_sync(setup, chain, nodes, &rebind_pointers);
}

absl::StatusOr<Side> bound_pointers_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, prepare_pointers(setup, nodes));
  return rebind_launch_sync(setup, chain, nodes, &rebind_prepared);
}

absl::StatusOr<Side> bound_grids_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, prepare_grids(setup, nodes));
  return rebind_launch_sync(setup, chain, nodes, &rebind_prepared);
}

absl::StatusOr<Side> rebind(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> chain, make_rebindable(setup, nodes));
  return Side{.run = [chain, &setup, nodes](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) CGRT_RETURN_IF_ERROR(rebind_pointers(setup, *chain, nodes));
                return absl::OkStatus();
              },
              .settle = [chain, stream = setup.stream.ref()]() -> absl::Status {
                CGRT_RETURN_IF_ERROR(chain->exec.launch(stream));
                return stream.synchronize();
              }};
}

namespace {

constexpr int kPlaces = 500;

absl::Status launch_variants(const Setup& setup, LaunchTarget target, int variant) {
  const auto& [out, in] = setup.arrays();
  for (int i = 0; i < kPlaces; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, {.grid = 1, .block = 32}, variant_kernel(variant), out, in));
  }
  return absl::OkStatus();
}

// 500 places with as many kernels each as there are bindings, of which each enables another one.
absl::StatusOr<std::shared_ptr<Rebindable>> make_alternatives(const Setup& setup, int variants) {
  const auto step = [&](LaunchTarget target, std::size_t i) {
    return launch_variants(setup, target, static_cast<int>(i));
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, cgrt::build_alternatives(setup.context, static_cast<std::size_t>(variants), step));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> made, make_rebindable(setup, std::move(graph)));
  for (int i = 0; i < variants; ++i) {
    CGRT_ASSIGN_OR_RETURN(cgrt::Binding binding,
                          made->exec.prepare([&](LaunchTarget target) { return launch_variants(setup, target, i); }));
    made->bindings.push_back(std::move(binding));
  }
  return made;
}

}  // namespace

absl::StatusOr<Side> switched_alternatives(const Setup& setup, int variants) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> made, make_alternatives(setup, variants));
  return rebound(setup, made, kPlaces, &rebind_prepared);
}

absl::StatusOr<Side> alternatives_launch_sync(const Setup& setup, int variants) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Rebindable> made, make_alternatives(setup, variants));
  return launch_and_wait(setup, std::shared_ptr<GraphExec>(made, &made->exec));
}

absl::StatusOr<Side> places_launch_sync(const Setup& setup, int) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
  CGRT_RETURN_IF_ERROR(launch_variants(setup, graph.cursor(), 0));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(setup.stream.ref()));
  CGRT_RETURN_IF_ERROR(setup.stream.ref().synchronize());
  return launch_and_wait(setup, std::make_shared<GraphExec>(std::move(exec)));
}

}  // namespace graphbench::own
