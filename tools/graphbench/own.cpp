#include "own.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/programmatic.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/diff.h"
#include "cgrt/launch/launch.h"
#include "cgrt/launch/occupancy.h"
#include "own_chain.h"

namespace graphbench::own {
namespace {

using cgrt::Completion;
using cgrt::Cursor;
using cgrt::Graph;
using cgrt::GraphExec;
using cgrt::KernelNode;
using cgrt::StreamRef;
using Arrays = Setup::Arrays;

absl::StatusOr<std::shared_ptr<GraphExec>> make_exec(const Setup& setup, const Graph& graph) {
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.upload(setup.stream.ref()));
  CGRT_RETURN_IF_ERROR(setup.stream.ref().synchronize());
  return std::make_shared<GraphExec>(std::move(exec));
}

absl::StatusOr<std::shared_ptr<GraphExec>> make_exec(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const Graph graph, make_chain(setup, nodes, setup.arrays()));
  return make_exec(setup, graph);
}

absl::Status make_edges_programmatic(Graph& graph, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::ProgrammaticEdges edges, cgrt::add_programmatic_edges(graph));
  if (edges.added + 1 == static_cast<std::size_t>(nodes)) return absl::OkStatus();
  return absl::InternalError("An edge of the chain is not programmatic.");
}

auto synchronize(const Setup& setup) {
  return [stream = setup.stream.ref()] { return stream.synchronize(); };
}

absl::StatusOr<Side> update(const Setup& setup, int nodes, Arrays first) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<Updated> updated, update_objects(setup, nodes, first));
  return Side{.run = [updated](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      CGRT_RETURN_IF_ERROR(updated->exec.update(updated->graphs[updated->next++ & 1]));
    }
    return absl::OkStatus();
  }};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Updated>> update_objects(const Setup& setup, int nodes, Setup::Arrays first) {
  // Kept as long as a side uses it: the second side of a case gets what the first made.
  static std::weak_ptr<Updated> latest;
  std::shared_ptr<Updated> found = latest.lock();
  if (found != nullptr && found->nodes == nodes && found->first.out == first.out) return found;
  CGRT_ASSIGN_OR_RETURN(Graph a, make_chain(setup, nodes, first));
  CGRT_ASSIGN_OR_RETURN(Graph b, make_chain(setup, nodes, setup.arrays()));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, cgrt::instantiate(b));
  // Uploaded only, it would slow the graphs of all later cases (GraphExec::upload).
  CGRT_RETURN_IF_ERROR(exec.launch(setup.stream.ref()));
  CGRT_RETURN_IF_ERROR(setup.stream.ref().synchronize());
  std::vector<Graph> graphs;
  graphs.push_back(std::move(a));
  graphs.push_back(std::move(b));
  found = std::make_shared<Updated>(Updated{nodes, first, std::move(exec), std::move(graphs)});
  latest = found;
  return found;
}

absl::StatusOr<Side> graph_launch(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphExec> exec, make_exec(setup, nodes));
  return Side{.run = [exec, stream = setup.stream.ref()](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) CGRT_RETURN_IF_ERROR(exec->launch(stream));
                return absl::OkStatus();
              },
              .settle = synchronize(setup)};
}

absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphExec> exec, make_exec(setup, nodes));
  return launch_and_wait(setup, std::move(exec));
}

absl::StatusOr<Side> programmatic_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, make_chain(setup, nodes, setup.arrays()));
  CGRT_RETURN_IF_ERROR(make_edges_programmatic(graph, nodes));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphExec> exec, make_exec(setup, graph));
  return launch_and_wait(setup, std::move(exec));
}

namespace {

constexpr int kLargeKernels = 64;

// A chain of kernels that read and write 16 MiB each, with arrays of its own.
absl::StatusOr<Side> launch_large(bool is_programmatic) {
  struct Large {
    Setup setup;
    std::shared_ptr<GraphExec> exec = nullptr;
  };
  CGRT_ASSIGN_OR_RETURN(Setup setup, Setup::create((16 << 20) / sizeof(float)));
  auto large = std::make_shared<Large>(Large{std::move(setup)});
  CGRT_ASSIGN_OR_RETURN(Graph graph, make_chain(large->setup, kLargeKernels, large->setup.arrays()));
  if (is_programmatic) CGRT_RETURN_IF_ERROR(make_edges_programmatic(graph, kLargeKernels));
  CGRT_ASSIGN_OR_RETURN(large->exec, make_exec(large->setup, graph));
  return launch_and_wait(large->setup, std::shared_ptr<GraphExec>(large, large->exec.get()));
}

}  // namespace

absl::StatusOr<Side> large_launch_sync(const Setup&, int) { return launch_large(false); }
absl::StatusOr<Side> programmatic_large_launch_sync(const Setup&, int) { return launch_large(true); }

absl::StatusOr<Side> snapshot(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph chain, make_chain(setup, nodes, setup.arrays()));
  auto graph = std::make_shared<Graph>(std::move(chain));
  auto made = std::make_shared<std::vector<cgrt::ir::GraphIr>>();
  return Side{.run = [graph, made](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(*graph));
                  made->push_back(std::move(ir));
                }
                return absl::OkStatus();
              },
              .settle = [made] { return made->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> compare_equal(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const Graph graph, make_chain(setup, nodes, setup.arrays()));
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(graph));
  auto a = std::make_shared<const cgrt::ir::GraphIr>(std::move(ir));
  auto b = std::make_shared<const cgrt::ir::GraphIr>(*a);
  return Side{.run = [a, b](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      if (cgrt::ir::first_difference(*a, *b).has_value()) return absl::InternalError("Equal graphs differ.");
    }
    return absl::OkStatus();
  }};
}

absl::StatusOr<Side> diff(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const Graph graph, make_chain(setup, nodes, setup.arrays()));
  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(graph));
  auto a = std::make_shared<const cgrt::ir::GraphIr>(ir);
  ++std::get<cgrt::ir::KernelParams>(ir.nodes[ir.nodes.size() / 2].params).grid.x;
  auto b = std::make_shared<const cgrt::ir::GraphIr>(std::move(ir));
  return Side{.run = [a, b](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      const cgrt::ir::Differences found = cgrt::ir::differences(*a, *b);
      if (found.changes.size() != 1) return absl::InternalError("Not the one grid that differs was found.");
    }
    return absl::OkStatus();
  }};
}

absl::StatusOr<Side> explicit_add(const Setup& setup, int nodes) {
  auto graphs = std::make_shared<std::vector<Graph>>();
  return Side{.prepare = [graphs, &setup](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
                  graphs->push_back(std::move(graph));
                }
                return absl::OkStatus();
              },
              .run = [graphs, &setup, nodes](int) -> absl::Status {
                for (Graph& graph : *graphs) {
                  Cursor cursor = graph.cursor();
                  CGRT_RETURN_IF_ERROR(launch_chain(setup, cursor, nodes, setup.arrays()));
                }
                return absl::OkStatus();
              },
              .settle = [graphs] { return graphs->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> capture(const Setup& setup, int nodes) {
  auto graphs = std::make_shared<std::vector<Graph>>();
  return Side{.prepare =
                  [graphs](int repeats) {
                    graphs->reserve(static_cast<std::size_t>(repeats));
                    return absl::OkStatus();
                  },
              .run = [graphs, &setup, nodes](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(Graph graph, cgrt::capture(setup.stream.ref(), [&](StreamRef stream) {
                                          return launch_chain(setup, stream, nodes, setup.arrays());
                                        }));
                  graphs->push_back(std::move(graph));
                }
                return absl::OkStatus();
              },
              .settle = [graphs] { return graphs->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> capture_into(const Setup& setup, int nodes) {
  auto graphs = std::make_shared<std::vector<Graph>>();
  return Side{.prepare =
                  [graphs](int repeats) {
                    graphs->reserve(static_cast<std::size_t>(repeats));
                    return absl::OkStatus();
                  },
              .run = [graphs, &setup, nodes](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
                  Cursor place = graph.cursor();
                  CGRT_RETURN_IF_ERROR(cgrt::capture_into(place, setup.stream.ref(), [&](StreamRef stream) {
                    return launch_chain(setup, stream, nodes, setup.arrays());
                  }));
                  graphs->push_back(std::move(graph));
                }
                return absl::OkStatus();
              },
              .settle = [graphs] { return graphs->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> instantiate(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Graph chain, make_chain(setup, nodes, setup.arrays()));
  auto graph = std::make_shared<Graph>(std::move(chain));
  auto execs = std::make_shared<std::vector<GraphExec>>();
  return Side{.prepare =
                  [execs](int repeats) {
                    execs->reserve(static_cast<std::size_t>(repeats));
                    return absl::OkStatus();
                  },
              .run = [execs, graph](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(GraphExec exec, cgrt::instantiate(*graph));
                  execs->push_back(std::move(exec));
                }
                return absl::OkStatus();
              },
              .settle = [execs] { return execs->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> set_params(const Setup& setup, int nodes) {
  const auto& [desc, kernel, config] = setup.plan;
  const Arrays arrays = setup.arrays();
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(setup.context));
  Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(launch_chain(setup, cursor, nodes - 1, arrays));
  // The chain's last node by name, for its handle.
  CGRT_ASSIGN_OR_RETURN(const KernelNode node, graph.add_kernel(cursor.frontier(), config, kernel, arrays.out,
                                                                arrays.in, nullptr, kAlpha, desc.count));
  CGRT_ASSIGN_OR_RETURN(GraphExec made, cgrt::instantiate(graph));
  auto exec = std::make_shared<GraphExec>(std::move(made));
  return Side{.run = [exec, node, &setup](int repeats) -> absl::Status {
    const auto& [description, function, shape] = setup.plan;
    const Arrays values[] = {setup.swapped_arrays(), setup.arrays()};
    for (int i = 0; i < repeats; ++i) {
      const Arrays& value = values[i & 1];
      CGRT_RETURN_IF_ERROR(
          exec->set_params(node, shape, function, value.out, value.in, nullptr, kAlpha, description.count));
    }
    return absl::OkStatus();
  }};
}

absl::StatusOr<Side> update_unchanged(const Setup& setup, int nodes) { return update(setup, nodes, setup.arrays()); }

absl::StatusOr<Side> update_pointers(const Setup& setup, int nodes) {
  return update(setup, nodes, setup.swapped_arrays());
}

absl::StatusOr<Side> recapture_and_update(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<GraphExec> exec, make_exec(setup, nodes));
  return Side{.run = [exec, &setup, nodes](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  const Arrays arrays = i % 2 == 0 ? setup.swapped_arrays() : setup.arrays();
                  CGRT_ASSIGN_OR_RETURN(const Graph graph, cgrt::capture(setup.stream.ref(), [&](StreamRef stream) {
                                          return launch_chain(setup, stream, nodes, arrays);
                                        }));
                  CGRT_RETURN_IF_ERROR(exec->update(graph));
                }
                return absl::OkStatus();
              },
              .settle = [exec, stream = setup.stream.ref()]() -> absl::Status {
                CGRT_RETURN_IF_ERROR(exec->launch(stream));
                return stream.synchronize();
              }};
}

absl::StatusOr<Side> eager_launch(const Setup& setup, int) {
  return Side{.run = [&setup](int repeats) { return launch_chain(setup, setup.stream.ref(), repeats, setup.arrays()); },
              .settle = synchronize(setup)};
}

absl::StatusOr<Side> eager_chain(const Setup& setup, int nodes) {
  return Side{.run = [&setup, nodes](int repeats) -> absl::Status {
    const StreamRef stream = setup.stream.ref();
    for (int i = 0; i < repeats; ++i) {
      CGRT_RETURN_IF_ERROR(launch_chain(setup, stream, nodes, setup.arrays()));
      CGRT_RETURN_IF_ERROR(stream.synchronize());
    }
    return absl::OkStatus();
  }};
}

absl::StatusOr<Side> event_query(const Setup& setup, int) {
  return Side{.prepare = without_eager_work(setup), .run = [event = setup.event.ref()](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(const Completion answer, event.completion());
                  if (answer != Completion::kDone) return absl::InternalError("The idle event is not done.");
                }
                return absl::OkStatus();
              }};
}

absl::StatusOr<Side> stream_query(const Setup& setup, int) {
  return Side{.prepare = without_eager_work(setup), .run = [stream = setup.stream.ref()](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) {
                  CGRT_ASSIGN_OR_RETURN(const Completion answer, stream.completion());
                  if (answer != Completion::kDone) return absl::InternalError("The idle stream is not done.");
                }
                return absl::OkStatus();
              }};
}

absl::StatusOr<Side> event_query_after_eager(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Side side, event_query(setup, nodes));
  side.prepare = after_eager_work(setup);
  return side;
}

absl::StatusOr<Side> stream_query_after_eager(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Side side, stream_query(setup, nodes));
  side.prepare = after_eager_work(setup);
  return side;
}

absl::StatusOr<Side> event_record(const Setup& setup, int) {
  return Side{.run = [event = setup.event.ref(), stream = setup.stream.ref()](int repeats) -> absl::Status {
                for (int i = 0; i < repeats; ++i) CGRT_RETURN_IF_ERROR(stream.record(event));
                return absl::OkStatus();
              },
              .settle = synchronize(setup)};
}

absl::StatusOr<Side> occupancy_suggest(const Setup& setup, int) {
  return Side{.run = [&setup](int repeats) -> absl::Status {
    for (int i = 0; i < repeats; ++i) {
      CGRT_RETURN_IF_ERROR(
          cgrt::suggest_config(setup.plan.kernel, cgrt::ContextRef(setup.context), setup.plan.desc.count).status());
    }
    return absl::OkStatus();
  }};
}

}  // namespace graphbench::own
