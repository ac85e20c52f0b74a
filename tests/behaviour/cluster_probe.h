// A kernel's word for the cluster that it ran in: what a launch or a node really had.
#pragma once

#include <string>

#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::testing {

inline constexpr LaunchConfig kPlain{.grid = 8, .block = 64};
inline constexpr LaunchConfig kTwo{.grid = 8, .block = 64, .attributes = {.cluster = {2}}};
inline constexpr LaunchConfig kFour{.grid = 8, .block = 64, .attributes = {.cluster = {4}}};

struct ClusterProbe {
  static absl::StatusOr<ClusterProbe> create(World& world) {
    ClusterProbe probe;
    CGRT_ASSIGN_OR_RETURN(probe.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(probe.buffer, PinnedBuffer::create(world.device(), sizeof(int)));
    return probe;
  }
  int* data() const { return buffer.as<int>(); }
  absl::Status launch(LaunchTarget target, const LaunchConfig& config) const {
    return cgrt::launch(target, config, cluster_kernel(), data());
  }
  absl::Status note(Notes& notes, const std::string& name, GraphExec& exec) const {
    *data() = -1;
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    notes.line(name + ": cluster of " + std::to_string(*data()));
    return absl::OkStatus();
  }
  Stream stream;
  PinnedBuffer buffer;
};

// As another library launches: not through this one.
inline absl::Status launch_raw(StreamRef stream, const LaunchConfig& config, int* out) {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  const driver::ResolvedFunction* function = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve_function(*cluster_kernel().identity(), context, &function),
                                         "cuKernelGetFunction"));
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {config.attributes.cluster.x, 1, 1};
  CUlaunchConfig raw{};
  raw.gridDimX = config.grid.x;
  raw.gridDimY = raw.gridDimZ = 1;
  raw.blockDimX = config.block.x;
  raw.blockDimY = raw.blockDimZ = 1;
  raw.hStream = stream.get();
  raw.attrs = &cluster;
  raw.numAttrs = 1;
  void* arguments[] = {&out};
  return driver::to_status(driver::api().LaunchKernelEx(&raw, function->function, arguments, nullptr),
                           "cuLaunchKernelEx");
}

}  // namespace cgrt::testing
