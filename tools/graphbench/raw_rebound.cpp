#include "raw_rebound.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "raw_calls.h"
#include "raw_patch.h"

namespace graphbench::raw {

using cgrt::driver::api;
using cgrt::driver::to_status;

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
