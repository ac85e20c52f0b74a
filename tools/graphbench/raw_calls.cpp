#include "raw_calls.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"

namespace graphbench::raw {

using cgrt::driver::api;
using cgrt::driver::to_status;

namespace {

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

}  // namespace

absl::StatusOr<MoreCalls> more_calls() {
  static const absl::StatusOr<MoreCalls>& calls = *new absl::StatusOr<MoreCalls>(load_more_calls());
  return calls;
}

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

absl::StatusOr<Chain> make_chain(const Setup& setup, int nodes, Setup::Arrays arrays, const CUgraphEdgeData& edge) {
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
        to_status(api().GraphAddNode(&chain.last, graph, &before, &edge, i == 0 ? 0 : 1, &params), "cuGraphAddNode"));
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

}  // namespace graphbench::raw
