#include "raw.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "own.h"  // the objects of update alone
#include "raw_calls.h"

namespace graphbench::raw {
namespace {

using cgrt::driver::api;
using cgrt::driver::to_status;
using Graphs = std::vector<GraphHandle>;

absl::StatusOr<std::shared_ptr<ExecHandle>> make_exec(const Setup& setup, int nodes, const CUgraphEdgeData& edge = {}) {
  CGRT_ASSIGN_OR_RETURN(const Chain chain, make_chain(setup, nodes, setup.arrays(), edge));
  CGRT_ASSIGN_OR_RETURN(ExecHandle exec, instantiate_once(chain.graph.get()));
  const CUstream stream = setup.stream.ref().get();
  CGRT_RETURN_IF_ERROR(to_status(api().GraphUpload(exec.get(), stream), "cuGraphUpload"));
  CGRT_RETURN_IF_ERROR(to_status(api().StreamSynchronize(stream), "cuStreamSynchronize"));
  return std::make_shared<ExecHandle>(std::move(exec));
}

std::function<absl::Status()> synchronize(const Setup& setup) {
  return
      [stream = setup.stream.ref().get()] { return to_status(api().StreamSynchronize(stream), "cuStreamSynchronize"); };
}

// The first launch after an update takes what the update has left: not of the next interval.
std::function<absl::Status()> launch_after(const Setup& setup, std::shared_ptr<ExecHandle> exec) {
  return [exec = std::move(exec), stream = setup.stream.ref().get()] {
    const CUresult launched = api().GraphLaunch(exec->get(), stream);
    return to_status(launched == CUDA_SUCCESS ? api().StreamSynchronize(stream) : launched,
                     "cuGraphLaunch and cuStreamSynchronize");
  };
}

absl::StatusOr<Side> update(const Setup& setup, int nodes, Setup::Arrays first) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<own::Updated> updated, own::update_objects(setup, nodes, first));
  return Side{.run = [updated, call = api().GraphExecUpdate](int repeats) {
    const CUgraphExec exec = updated->exec.get();
    const CUgraph others[] = {updated->graphs[0].ref().get(), updated->graphs[1].ref().get()};
    return repeat(repeats, "cuGraphExecUpdate", [&](int) {
      CUgraphExecUpdateResultInfo info;
      return call(exec, others[updated->next++ & 1], &info);
    });
  }};
}

}  // namespace

absl::StatusOr<Side> graph_launch(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<ExecHandle> exec, make_exec(setup, nodes));
  return Side{.run =
                  [exec, stream = setup.stream.ref().get(), launch = api().GraphLaunch](int repeats) {
                    return repeat(repeats, "cuGraphLaunch", [&](int) { return launch(exec->get(), stream); });
                  },
              .settle = synchronize(setup)};
}

namespace {

Side launch_and_wait(const Setup& setup, std::shared_ptr<ExecHandle> exec) {
  return Side{.run = [exec = std::move(exec), stream = setup.stream.ref().get(), launch = api().GraphLaunch,
                      wait = api().StreamSynchronize](int repeats) {
    return repeat(repeats, "cuGraphLaunch and cuStreamSynchronize", [&](int) {
      const CUresult launched = launch(exec->get(), stream);
      return launched == CUDA_SUCCESS ? wait(stream) : launched;
    });
  }};
}

}  // namespace

absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<ExecHandle> exec, make_exec(setup, nodes));
  return launch_and_wait(setup, std::move(exec));
}

absl::StatusOr<Side> programmatic_launch_sync(const Setup& setup, int nodes) {
  CUgraphEdgeData edge{};
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<ExecHandle> exec, make_exec(setup, nodes, edge));
  return launch_and_wait(setup, std::move(exec));
}

absl::StatusOr<Side> instantiate(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(Chain made, make_chain(setup, nodes, setup.arrays()));
  auto chain = std::make_shared<Chain>(std::move(made));
  auto execs = std::make_shared<std::vector<ExecHandle>>();
  return Side{.prepare =
                  [execs](int repeats) {
                    execs->reserve(static_cast<std::size_t>(repeats));
                    return absl::OkStatus();
                  },
              .run =
                  [execs, chain, call = api().GraphInstantiateWithParams](int repeats) {
                    return repeat(repeats, "cuGraphInstantiateWithParams", [&](int) {
                      CUDA_GRAPH_INSTANTIATE_PARAMS params{};
                      CUgraphExec exec = nullptr;
                      const CUresult result = call(&exec, chain->graph.get(), &params);
                      execs->emplace_back(exec);
                      return result;
                    });
                  },
              .settle = [execs] { return execs->clear(), absl::OkStatus(); }};
}

absl::StatusOr<Side> update_unchanged(const Setup& setup, int nodes) { return update(setup, nodes, setup.arrays()); }

absl::StatusOr<Side> update_pointers(const Setup& setup, int nodes) {
  return update(setup, nodes, setup.swapped_arrays());
}

absl::StatusOr<Side> eager_launch(const Setup& setup, int) {
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  return Side{.run =
                  [function, &setup, launch = api().LaunchKernelEx](int repeats) {
                    Arguments arguments(setup, setup.arrays());
                    const CUlaunchConfig config = launch_config(setup);
                    return repeat(repeats, "cuLaunchKernelEx",
                                  [&](int) { return launch(&config, function, arguments.packed, nullptr); });
                  },
              .settle = synchronize(setup)};
}

absl::StatusOr<Side> eager_chain(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  return Side{
      .run = [function, nodes, &setup, launch = api().LaunchKernelEx, wait = api().StreamSynchronize](int repeats) {
        Arguments arguments(setup, setup.arrays());
        const CUlaunchConfig config = launch_config(setup);
        return repeat(repeats, "cuLaunchKernelEx and cuStreamSynchronize", [&](int) {
          for (int node = 0; node < nodes; ++node) {
            const CUresult launched = launch(&config, function, arguments.packed, nullptr);
            if (launched != CUDA_SUCCESS) return launched;
          }
          return wait(config.hStream);
        });
      }};
}

absl::StatusOr<Side> event_query(const Setup& setup, int) {
  return Side{.prepare = without_eager_work(setup),
              .run = [event = setup.event.ref().get(), query = api().EventQuery](int repeats) {
                return repeat(repeats, "cuEventQuery", [&](int) { return query(event); });
              }};
}

absl::StatusOr<Side> stream_query(const Setup& setup, int) {
  return Side{.prepare = without_eager_work(setup),
              .run = [stream = setup.stream.ref().get(), query = api().StreamQuery](int repeats) {
                return repeat(repeats, "cuStreamQuery", [&](int) { return query(stream); });
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
  return Side{
      .run = [event = setup.event.ref().get(), stream = setup.stream.ref().get(), record = api().EventRecord](
                 int repeats) { return repeat(repeats, "cuEventRecord", [&](int) { return record(event, stream); }); },
      .settle = synchronize(setup)};
}

absl::StatusOr<Side> occupancy_suggest(const Setup& setup, int) {
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  return Side{.run = [function, suggest = api().OccupancyMaxPotentialBlockSize](int repeats) {
    return repeat(repeats, "cuOccupancyMaxPotentialBlockSize", [&](int) {
      int grid = 0, block = 0;
      return suggest(&grid, &block, function, nullptr, 0, 0);
    });
  }};
}

absl::StatusOr<Side> explicit_add(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  auto graphs = std::make_shared<Graphs>();
  return Side{.prepare =
                  [graphs](int repeats) {
                    return repeat(repeats, "cuGraphCreate", [&](int) {
                      CUgraph graph = nullptr;
                      const CUresult result = api().GraphCreate(&graph, 0);
                      graphs->emplace_back(graph);
                      return result;
                    });
                  },
              .run =
                  [graphs, add = calls.GraphAddKernelNode, function, nodes, &setup](int repeats) {
                    Arguments arguments(setup, setup.arrays());
                    const auto params = node_params<CUDA_KERNEL_NODE_PARAMS_v2>(setup, function, arguments);
                    return repeat(repeats, "cuGraphAddKernelNode", [&](int i) {
                      const CUgraph graph = (*graphs)[static_cast<std::size_t>(i)].get();
                      CUgraphNode last = nullptr;
                      for (int node = 0; node < nodes; ++node) {
                        const CUgraphNode before = last;
                        const CUresult result = add(&last, graph, &before, node == 0 ? 0 : 1, &params);
                        if (result != CUDA_SUCCESS) return result;
                      }
                      return CUDA_SUCCESS;
                    });
                  },
              .settle = [graphs] { return graphs->clear(), absl::OkStatus(); }};
}

namespace {

// `begin`: of a capture from the stream; into a graph of its own, or into one that it makes.
template <class Begin>
absl::StatusOr<Side> capture_by(const Setup& setup, int nodes, Begin begin) {
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  auto graphs = std::make_shared<Graphs>();
  return Side{.prepare =
                  [graphs](int repeats) {
                    graphs->reserve(static_cast<std::size_t>(repeats));
                    return absl::OkStatus();
                  },
              .run =
                  [graphs, begin, launch = api().LaunchKernelEx, end = api().StreamEndCapture, function, nodes,
                   &setup](int repeats) {
                    Arguments arguments(setup, setup.arrays());
                    const CUlaunchConfig config = launch_config(setup);
                    return repeat(repeats, "A call of the raw capture", [&](int) {
                      CUresult result = begin(config.hStream);
                      for (int node = 0; node < nodes && result == CUDA_SUCCESS; ++node) {
                        result = launch(&config, function, arguments.packed, nullptr);
                      }
                      CUgraph graph = nullptr;
                      const CUresult ended = end(config.hStream, &graph);
                      graphs->emplace_back(graph);
                      return result == CUDA_SUCCESS ? ended : result;
                    });
                  },
              .settle = [graphs] { return graphs->clear(), absl::OkStatus(); }};
}

}  // namespace

absl::StatusOr<Side> capture(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  return capture_by(setup, nodes, [begin = calls.StreamBeginCapture](CUstream stream) {
    return begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  });
}

absl::StatusOr<Side> capture_into(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  return capture_by(setup, nodes, [begin = calls.StreamBeginCaptureToGraph](CUstream stream) {
    CUgraph graph = nullptr;
    const CUresult created = api().GraphCreate(&graph, 0);
    if (created != CUDA_SUCCESS) return created;
    return begin(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  });
}

absl::StatusOr<Side> recapture_and_update(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<ExecHandle> exec, make_exec(setup, nodes));
  return Side{.run =
                  [exec, begin = calls.StreamBeginCapture, launch = api().LaunchKernelEx, end = api().StreamEndCapture,
                   update = api().GraphExecUpdate, destroy = api().GraphDestroy, function, nodes, &setup](int repeats) {
                    const CUlaunchConfig config = launch_config(setup);
                    return repeat(repeats, "A call of the raw capture and update", [&](int i) {
                      Arguments arguments(setup, i % 2 == 0 ? setup.swapped_arrays() : setup.arrays());
                      CUresult result = begin(config.hStream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
                      for (int node = 0; node < nodes && result == CUDA_SUCCESS; ++node) {
                        result = launch(&config, function, arguments.packed, nullptr);
                      }
                      CUgraph graph = nullptr;
                      const CUresult ended = end(config.hStream, &graph);
                      CUgraphExecUpdateResultInfo info{};
                      if (result == CUDA_SUCCESS) result = ended;
                      if (result == CUDA_SUCCESS) result = update(exec->get(), graph, &info);
                      destroy(graph);
                      return result;
                    });
                  },
              .settle = launch_after(setup, exec)};
}

absl::StatusOr<Side> set_params(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  CGRT_ASSIGN_OR_RETURN(Chain made, make_chain(setup, nodes, setup.arrays()));
  CGRT_ASSIGN_OR_RETURN(ExecHandle instantiated, instantiate_once(made.graph.get()));
  auto chain = std::make_shared<Chain>(std::move(made));  // its node's handle lives as long as it
  auto exec = std::make_shared<ExecHandle>(std::move(instantiated));
  return Side{.run = [chain, exec, set = calls.GraphExecKernelNodeSetParams, function, &setup](int repeats) {
    Arguments swapped(setup, setup.swapped_arrays()), plain(setup, setup.arrays());
    const CUDA_KERNEL_NODE_PARAMS_v2 values[] = {
        node_params<CUDA_KERNEL_NODE_PARAMS_v2>(setup, function, swapped),
        node_params<CUDA_KERNEL_NODE_PARAMS_v2>(setup, function, plain),
    };
    return repeat(repeats, "cuGraphExecKernelNodeSetParams",
                  [&](int i) { return set(exec->get(), chain->last, &values[i & 1]); });
  }};
}

}  // namespace graphbench::raw
