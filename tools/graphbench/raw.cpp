#include "raw.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "own.h"  // the objects of update alone
#include "raw_patch.h"

namespace graphbench::raw {
namespace {

using cgrt::driver::api;
using cgrt::driver::to_status;
using GraphHandle = cgrt::UniqueHandle<CUgraph, cgrt::driver::destroy_graph>;
using ExecHandle = cgrt::UniqueHandle<CUgraphExec, cgrt::driver::destroy_graph_exec>;
using Graphs = std::vector<GraphHandle>;

// Entry points that cgrt's table lacks. Measured on an H200: cuGraphAddKernelNode 120 ns a node
// (cuGraphAddNode 125), cuGraphExecKernelNodeSetParams 265 ns (the generic call 274).
struct MoreCalls {
  PFN_cuKernelGetFunction_v12000 KernelGetFunction = nullptr;
  PFN_cuStreamBeginCapture_v10010 StreamBeginCapture = nullptr;
  PFN_cuStreamBeginCaptureToGraph_v12030 StreamBeginCaptureToGraph = nullptr;
  PFN_cuGraphAddKernelNode_v12000 GraphAddKernelNode = nullptr;
  PFN_cuGraphExecKernelNodeSetParams_v12000 GraphExecKernelNodeSetParams = nullptr;
};

absl::StatusOr<MoreCalls> load_more_calls() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError("libcuda.so.1 could not be loaded.");
  const auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return absl::UnavailableError("libcuda.so.1 has no cuGetProcAddress_v2.");
  MoreCalls calls;
  const auto load = [&](const char* name, int version, auto& slot) -> absl::Status {
    void* found = nullptr;
    CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CGRT_RETURN_IF_ERROR(to_status(get(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &query), name));
    if (found == nullptr) return absl::UnimplementedError(std::string("The driver has no ") + name + ".");
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(found);
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(load("cuStreamBeginCapture", 10010, calls.StreamBeginCapture));
  CGRT_RETURN_IF_ERROR(load("cuStreamBeginCaptureToGraph", 12030, calls.StreamBeginCaptureToGraph));
  CGRT_RETURN_IF_ERROR(load("cuKernelGetFunction", 12000, calls.KernelGetFunction));
  CGRT_RETURN_IF_ERROR(load("cuGraphAddKernelNode", 12000, calls.GraphAddKernelNode));
  CGRT_RETURN_IF_ERROR(load("cuGraphExecKernelNodeSetParams", 12000, calls.GraphExecKernelNodeSetParams));
  return calls;
}

absl::StatusOr<MoreCalls> more_calls() {
  static const absl::StatusOr<MoreCalls>& calls = *new absl::StatusOr<MoreCalls>(load_more_calls());
  return calls;
}

// The kernel's arguments, packed once as the driver takes them. Stays where it is made.
struct Arguments {
  Arguments(const Setup& setup, Setup::Arrays arrays) : out(arrays.out), in(arrays.in), count(setup.plan.desc.count) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  float* out;
  const float* in;
  const float* second = nullptr;
  float alpha = kAlpha;
  std::uint64_t count;
  void* packed[5] = {&out, &in, &second, &alpha, &count};
};

// The context's own function: nodes and launches made from it are cheaper than from the CUkernel.
absl::StatusOr<CUfunction> function_of(const Setup& setup) {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CGRT_RETURN_IF_ERROR(to_status(cgrt::driver::resolve(*setup.plan.kernel.identity(), &kernel), "cudaGetKernel"));
  if (api().simulated) return reinterpret_cast<CUfunction>(kernel);
  CGRT_ASSIGN_OR_RETURN(MoreCalls calls, more_calls());
  CGRT_RETURN_IF_ERROR(to_status(calls.KernelGetFunction(&function, kernel), "cuKernelGetFunction"));
  return function;
}

CUlaunchConfig launch_config(const Setup& setup) {
  const cgrt::LaunchConfig& shape = setup.plan.config;
  CUlaunchConfig config{};
  config.gridDimX = shape.grid.x;
  config.gridDimY = shape.grid.y;
  config.gridDimZ = shape.grid.z;
  config.blockDimX = shape.block.x;
  config.blockDimY = shape.block.y;
  config.blockDimZ = shape.block.z;
  config.sharedMemBytes = shape.shared_bytes;
  config.hStream = setup.stream.ref().get();
  return config;
}

template <class Params>
Params node_params(const Setup& setup, CUfunction function, Arguments& arguments) {
  const cgrt::LaunchConfig& shape = setup.plan.config;
  Params params{};
  params.func = function;
  params.gridDimX = shape.grid.x;
  params.gridDimY = shape.grid.y;
  params.gridDimZ = shape.grid.z;
  params.blockDimX = shape.block.x;
  params.blockDimY = shape.block.y;
  params.blockDimZ = shape.block.z;
  params.sharedMemBytes = shape.shared_bytes;
  params.kernelParams = arguments.packed;
  return params;
}

// Graphs that are only measured upon, not measured themselves: through the table, so that the
// simulator can make them too. `last` is its last node.
struct Chain {
  GraphHandle graph;
  CUgraphNode last = nullptr;
};

absl::StatusOr<Chain> make_chain(const Setup& setup, int nodes, Setup::Arrays arrays) {
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  Arguments arguments(setup, arrays);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel = node_params<CUDA_KERNEL_NODE_PARAMS_v3>(setup, function, arguments);
  CUgraph graph = nullptr;
  CGRT_RETURN_IF_ERROR(to_status(api().GraphCreate(&graph, 0), "cuGraphCreate"));
  Chain chain{GraphHandle(graph)};
  for (int i = 0; i < nodes; ++i) {
    const CUgraphNode before = chain.last;
    CGRT_RETURN_IF_ERROR(
        to_status(api().GraphAddNode(&chain.last, graph, &before, nullptr, i == 0 ? 0 : 1, &params), "cuGraphAddNode"));
  }
  return chain;
}

absl::StatusOr<ExecHandle> instantiate_once(CUgraph graph) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CUgraphExec exec = nullptr;
  CGRT_RETURN_IF_ERROR(
      to_status(api().GraphInstantiateWithParams(&exec, graph, &params), "cuGraphInstantiateWithParams"));
  return ExecHandle(exec);
}

absl::StatusOr<std::shared_ptr<ExecHandle>> make_exec(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(const Chain chain, make_chain(setup, nodes, setup.arrays()));
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

// Does `call` that many times; stops at the first error. The calls are made through pointers that
// were read from the table before, so that nothing but the driver is in the loop.
template <class Call>
absl::Status repeat(int repeats, const char* name, Call call) {
  for (int i = 0; i < repeats; ++i) {
    if (const CUresult result = call(i); result != CUDA_SUCCESS) return to_status(result, name);
  }
  return absl::OkStatus();
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

absl::StatusOr<Side> graph_launch_sync(const Setup& setup, int nodes) {
  CGRT_ASSIGN_OR_RETURN(std::shared_ptr<ExecHandle> exec, make_exec(setup, nodes));
  return Side{.run = [exec, stream = setup.stream.ref().get(), launch = api().GraphLaunch,
                      wait = api().StreamSynchronize](int repeats) {
    return repeat(repeats, "cuGraphLaunch and cuStreamSynchronize", [&](int) {
      const CUresult launched = launch(exec->get(), stream);
      return launched == CUDA_SUCCESS ? wait(stream) : launched;
    });
  }};
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

namespace {

// Arguments in the order of the kernel's parameters: `in` is the second.
constexpr std::uint32_t kOffsetOfIn = 8;

template <std::size_t kCapacity>
absl::StatusOr<Side> rebound(const Setup& setup, int nodes, std::uint32_t offset, std::uint64_t first,
                             std::uint64_t second) {
  using List = RawPatches<kCapacity>;
  struct Patched {
    Chain chain;
    ExecHandle exec;
    std::vector<List> lists;
    unsigned next = 0;
  };
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  CUkernel kernel = nullptr;
  CUfunction patch = nullptr;
  CGRT_RETURN_IF_ERROR(
      to_status(cgrt::driver::resolve(*raw_patch_kernel<kCapacity>().identity(), &kernel), "cudaGetKernel"));
  CGRT_RETURN_IF_ERROR(to_status(calls.KernelGetFunction(&patch, kernel), "cuKernelGetFunction"));
  auto patched = std::make_shared<Patched>();
  CGRT_ASSIGN_OR_RETURN(patched->chain, make_chain(setup, nodes, setup.arrays()));
  const CUgraph graph = patched->chain.graph.get();
  std::size_t count = static_cast<std::size_t>(nodes);
  std::vector<CUgraphNode> all(count);
  CGRT_RETURN_IF_ERROR(to_status(api().GraphGetNodes(graph, all.data(), &count), "cuGraphGetNodes"));
  for (std::size_t i = 0; i < count; ++i) {
    CUlaunchAttributeValue value{};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CGRT_RETURN_IF_ERROR(
        to_status(api().GraphKernelNodeSetAttribute(all[i], CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
                  "cuGraphKernelNodeSetAttribute"));
    if (i % kCapacity == 0) patched->lists.push_back({.count = 0, .offset = offset, .patches = {}});
    List& list = patched->lists.back();
    list.patches[list.count++].node = value.deviceUpdatableKernelNode.devNode;
  }
  CGRT_ASSIGN_OR_RETURN(patched->exec, instantiate_once(graph));
  const CUstream stream = setup.stream.ref().get();
  CGRT_RETURN_IF_ERROR(to_status(api().GraphLaunch(patched->exec.get(), stream), "cuGraphLaunch"));
  CGRT_RETURN_IF_ERROR(to_status(api().StreamSynchronize(stream), "cuStreamSynchronize"));
  return Side{.prepare =
                  [patched, first, second](int) {
                    const std::uint64_t value = (++patched->next & 1) != 0 ? second : first;
                    for (List& list : patched->lists) {
                      for (std::uint32_t i = 0; i < list.count; ++i) list.patches[i].value = value;
                    }
                    return absl::OkStatus();
                  },
              .run =
                  [patched, patch, stream, launch = api().GraphLaunch, wait = api().StreamSynchronize,
                   kernel_launch = api().LaunchKernelEx](int) {
                    for (List& list : patched->lists) {
                      CUlaunchConfig config{};
                      config.gridDimX = (list.count + 31) / 32;
                      config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
                      config.blockDimX = 32;
                      config.hStream = stream;
                      void* arguments[] = {&list};
                      const CUresult result = kernel_launch(&config, patch, arguments, nullptr);
                      if (result != CUDA_SUCCESS) return to_status(result, "cuLaunchKernelEx");
                    }
                    const CUresult launched = launch(patched->exec.get(), stream);
                    return to_status(launched == CUDA_SUCCESS ? wait(stream) : launched,
                                     "cuGraphLaunch and cuStreamSynchronize");
                  }};
}

absl::StatusOr<Side> rebound_with(const Setup& setup, int nodes, std::uint32_t offset, std::uint64_t first,
                                  std::uint64_t second) {
  const auto count = static_cast<std::size_t>(nodes);
  return count <= kFewRaw        ? rebound<kFewRaw>(setup, nodes, offset, first, second)
         : count <= kThousandRaw ? rebound<kThousandRaw>(setup, nodes, offset, first, second)
                                 : rebound<kMostRaw>(setup, nodes, offset, first, second);
}

}  // namespace

absl::StatusOr<Side> rebound_pointers(const Setup& setup, int nodes) {
  return rebound_with(setup, nodes, kOffsetOfIn, reinterpret_cast<std::uint64_t>(setup.arrays().in),
                      reinterpret_cast<std::uint64_t>(setup.arrays().out));
}

absl::StatusOr<Side> rebound_grids(const Setup& setup, int nodes) {
  const std::uint32_t grid = setup.plan.config.grid.x;
  return rebound_with(setup, nodes, kGridOffset, grid, grid + 1);
}

namespace {

enum class Change { kPointers, kGrids };

// Sets the parameters of every node, in turn to one value and to another; `launch`: and launches, and waits.
absl::StatusOr<Side> set_all(const Setup& setup, int nodes, Change change, bool launch) {
  CGRT_ASSIGN_OR_RETURN(const MoreCalls calls, more_calls());
  CGRT_ASSIGN_OR_RETURN(CUfunction function, function_of(setup));
  CGRT_ASSIGN_OR_RETURN(Chain made, make_chain(setup, nodes, setup.arrays()));
  CGRT_ASSIGN_OR_RETURN(ExecHandle instantiated, instantiate_once(made.graph.get()));
  auto chain = std::make_shared<Chain>(std::move(made));  // its nodes' handles live as long as it
  auto exec = std::make_shared<ExecHandle>(std::move(instantiated));
  std::size_t count = static_cast<std::size_t>(nodes);
  std::vector<CUgraphNode> all(count);
  CGRT_RETURN_IF_ERROR(to_status(api().GraphGetNodes(chain->graph.get(), all.data(), &count), "cuGraphGetNodes"));
  auto turn = std::make_shared<unsigned>(0);
  return Side{.run = [chain, exec, all, turn, set = calls.GraphExecKernelNodeSetParams, function, change, launch,
                      stream = setup.stream.ref().get(), &setup](int repeats) {
    Arguments other(setup, change == Change::kPointers ? setup.swapped_arrays() : setup.arrays());
    Arguments plain(setup, setup.arrays());
    CUDA_KERNEL_NODE_PARAMS_v2 values[] = {
        node_params<CUDA_KERNEL_NODE_PARAMS_v2>(setup, function, other),
        node_params<CUDA_KERNEL_NODE_PARAMS_v2>(setup, function, plain),
    };
    if (change == Change::kGrids) ++values[0].gridDimX;
    return repeat(repeats, "cuGraphExecKernelNodeSetParams", [&](int) {
      const CUDA_KERNEL_NODE_PARAMS_v2& next = values[(*turn)++ & 1];
      for (CUgraphNode node : all) {
        if (const CUresult result = set(exec->get(), node, &next); result != CUDA_SUCCESS) return result;
      }
      if (!launch) return CUDA_SUCCESS;
      const CUresult result = api().GraphLaunch(exec->get(), stream);
      return result == CUDA_SUCCESS ? api().StreamSynchronize(stream) : result;
    });
  }};
}

}  // namespace

absl::StatusOr<Side> set_all_params(const Setup& setup, int nodes) {
  return set_all(setup, nodes, Change::kPointers, false);
}

absl::StatusOr<Side> set_pointers_launch_sync(const Setup& setup, int nodes) {
  return set_all(setup, nodes, Change::kPointers, true);
}

absl::StatusOr<Side> set_grids_launch_sync(const Setup& setup, int nodes) {
  return set_all(setup, nodes, Change::kGrids, true);
}

}  // namespace graphbench::raw
