// What the raw twins are written with: calls that cgrt's table lacks, the kernel's parameters as the driver takes them,
// chains of it. For raw.cpp and raw_rebound.cpp.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/base/unique_handle.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "setup.h"

namespace graphbench::raw {

using GraphHandle = cgrt::UniqueHandle<CUgraph, cgrt::driver::destroy_graph>;
using ExecHandle = cgrt::UniqueHandle<CUgraphExec, cgrt::driver::destroy_graph_exec>;

// Entry points that cgrt's table lacks. Measured on an H200: cuGraphAddKernelNode 120 ns a node
// (cuGraphAddNode 125), cuGraphExecKernelNodeSetParams 265 ns (the generic call 274).
struct MoreCalls {
  PFN_cuKernelGetFunction_v12000 KernelGetFunction = nullptr;
  PFN_cuStreamBeginCapture_v10010 StreamBeginCapture = nullptr;
  PFN_cuStreamBeginCaptureToGraph_v12030 StreamBeginCaptureToGraph = nullptr;
  PFN_cuGraphAddKernelNode_v12000 GraphAddKernelNode = nullptr;
  PFN_cuGraphExecKernelNodeSetParams_v12000 GraphExecKernelNodeSetParams = nullptr;
};

absl::StatusOr<MoreCalls> more_calls();  // kUnavailable where there is no driver

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
absl::StatusOr<CUfunction> function_of(const Setup& setup);

CUlaunchConfig launch_config(const Setup& setup);

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

absl::StatusOr<Chain> make_chain(const Setup& setup, int nodes, Setup::Arrays arrays, const CUgraphEdgeData& edge = {});
absl::StatusOr<ExecHandle> instantiate_once(CUgraph graph);

// Does `call` that many times; stops at the first error. The calls are made through pointers that
// were read from the table before, so that nothing but the driver is in the loop.
template <class Call>
absl::Status repeat(int repeats, const char* name, Call call) {
  for (int i = 0; i < repeats; ++i) {
    if (const CUresult result = call(i); result != CUDA_SUCCESS) return cgrt::driver::to_status(result, name);
  }
  return absl::OkStatus();
}

}  // namespace graphbench::raw
