#include "cgrt/launch/launch.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt/stream/capture_watch.h"

namespace cgrt {
namespace {

std::string to_text(const Dim3& dim) { return absl::StrCat("(", dim.x, ", ", dim.y, ", ", dim.z, ")"); }

bool is_multiple(const Dim3& grid, const Dim3& cluster) {
  return cluster.count() != 0 && grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

std::string broken_attribute(const KernelLaunch& launch, const LaunchAttributes& attributes) {
  const KernelRef kernel(launch.kernel);
  const DeviceRef device(0);
  if (!is_multiple(launch.grid, attributes.cluster)) {
    return absl::StrCat(" The grid is not a multiple of the cluster ", to_text(attributes.cluster), ".");
  }
  if (attributes.cluster.count() > 1) {
    const absl::StatusOr<int> largest = max_cluster_size(kernel, device, launch.block, launch.shared_bytes);
    if (largest.ok() && attributes.cluster.count() > static_cast<std::uint64_t>(*largest)) {
      return absl::StrCat(" A cluster of ", attributes.cluster.count(), " blocks exceeds the largest, ", *largest, ".");
    }
  }
  if (attributes.cooperative) {
    const absl::StatusOr<int> most = max_cooperative_blocks(kernel, device, launch.block, launch.shared_bytes);
    if (most.ok() && launch.grid.count() > static_cast<std::uint64_t>(*most)) {
      return absl::StrCat(" A cooperative launch needs all of its ", launch.grid.count(),
                          " blocks at once; the device holds ", *most, " of them.");
    }
  }
  return "";
}

// Limits that hold on every device that CUDA 13 supports, and those of this kernel.
std::string broken_limit(const KernelLaunch& launch) {
  const auto& [kernel, grid, block, shared_bytes, arguments, attributes] = launch;
  if (grid.count() == 0) return " A grid dimension is 0.";
  if (block.count() == 0) return " A block dimension is 0.";
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) return " The grid exceeds (2147483647, 65535, 65535).";
  if (block.x > 1024 || block.y > 1024 || block.z > 64) return " The block exceeds (1024, 1024, 64).";
  if (block.count() > 1024) return absl::StrCat(" The block has ", block.count(), " threads; the limit is 1024.");
  CUkernel handle = nullptr;
  CUdevice device = 0;
  if (driver::resolve(*kernel, &handle) != CUDA_SUCCESS) return "";
  // Limits of the first device: a message, not a decision.
  if (driver::api().DeviceGet(&device, 0) != CUDA_SUCCESS) return "";
  int limit = 0;
  if (driver::api().KernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle, device) ==
          CUDA_SUCCESS &&
      block.count() > static_cast<std::uint64_t>(limit)) {
    return absl::StrCat(" The block has ", block.count(), " threads; this kernel can have ", limit, ".");
  }
  if (driver::api().KernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle, device) ==
          CUDA_SUCCESS &&
      shared_bytes > static_cast<std::uint32_t>(limit)) {
    return absl::StrCat(" Dynamic shared memory of ", shared_bytes, " bytes exceeds the kernel's limit of ", limit,
                        "; raise it with set_max_shared_bytes.");
  }
  return attributes != nullptr ? broken_attribute(launch, *attributes) : "";
}

void set_config(CUlaunchConfig& config, const KernelLaunch& launch, StreamRef stream) {
  config.gridDimX = launch.grid.x;
  config.gridDimY = launch.grid.y;
  config.gridDimZ = launch.grid.z;
  config.blockDimX = launch.block.x;
  config.blockDimY = launch.block.y;
  config.blockDimZ = launch.block.z;
  config.sharedMemBytes = launch.shared_bytes;
  config.hStream = stream.get();
}

void set_programmatic(CUlaunchAttribute& attribute) {
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
}

// Apart, because an array of attributes costs the launches that have none.
absl::Status launch_with_attributes(LaunchTarget target, const KernelLaunch& launch, CUfunction function) {
  internal::CaptureWatch::note_attributes();
  CUlaunchAttribute own[internal::kMaxLaunchAttributes];
  CUlaunchAttribute attributes[internal::kMaxLaunchAttributes + 1];
  CUlaunchConfig config;
  set_config(config, launch, target.stream());
  config.attrs = attributes;
  config.numAttrs = internal::to_driver(*launch.attributes, own);
  std::copy_n(own, config.numAttrs, attributes);
  if (target.edge() == EdgeKind::kProgrammatic) set_programmatic(attributes[config.numAttrs++]);
  const CUresult result = driver::api().LaunchKernelEx(&config, function, launch.arguments, nullptr);
  if (ABSL_PREDICT_TRUE(result == CUDA_SUCCESS)) return absl::OkStatus();
  return explain_launch(driver::to_status(result, "cuLaunchKernelEx"), launch);
}

}  // namespace

absl::Status explain_launch(const absl::Status& status, const KernelLaunch& launch) {
  std::string context = absl::StrCat("Kernel \"", launch.kernel->name, "\" with grid ", to_text(launch.grid),
                                     ", block ", to_text(launch.block), ", ", launch.shared_bytes,
                                     " bytes of dynamic shared memory.", broken_limit(launch));
  context.pop_back();  // annotate() goes on with a colon
  return driver::annotate(status, context);
}

absl::Status launch(LaunchTarget target, const KernelLaunch& launch) {
  if (target.sink() != nullptr) return target.sink()->add_kernel(launch, target.edge());
  const StreamRef stream = target.stream();
  CUcontext context = stream.known_context();
  CUresult result = context != nullptr ? CUDA_SUCCESS : driver::api().StreamGetCtx(stream.get(), &context);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuStreamGetCtx"), launch);
  }
  const driver::ResolvedFunction* resolved = nullptr;
  result = driver::resolve_function(*launch.kernel, context, &resolved);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch);
  }
  if (ABSL_PREDICT_FALSE(launch.attributes != nullptr))
    return launch_with_attributes(target, launch, resolved->function);
  CUlaunchAttribute programmatic;
  CUlaunchConfig config;
  set_config(config, launch, stream);
  config.attrs = nullptr;
  config.numAttrs = 0;
  if (target.edge() == EdgeKind::kProgrammatic) {
    set_programmatic(programmatic);
    config.attrs = &programmatic;
    config.numAttrs = 1;
  }
  result = driver::api().LaunchKernelEx(&config, resolved->function, launch.arguments, nullptr);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuLaunchKernelEx"), launch);
  }
  return absl::OkStatus();
}

}  // namespace cgrt
