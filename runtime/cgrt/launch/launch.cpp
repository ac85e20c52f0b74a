#include "cgrt/launch/launch.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/library.h"
#include "cgrt/launch/occupancy.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace {

using internal::to_text;

bool is_multiple(const Dim3& grid, const Dim3& cluster) {
  return cluster.count() != 0 && grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

// A limit that a launch breaks.
struct BrokenLimit {
  std::string text;         // a sentence after a space; empty: none was found
  bool is_invalid = false;  // on every device
};

BrokenLimit broken_attribute(const KernelLaunch& launch, const LaunchAttributes& attributes, ContextRef context) {
  const KernelRef kernel(launch.kernel);
  const Dim3& cluster = attributes.cluster;
  if (cluster.count() == 0) return {absl::StrCat(" A dimension of the cluster ", to_text(cluster), " is 0."), true};
  if (!is_multiple(launch.grid, cluster)) {
    return {absl::StrCat(" The grid is not a multiple of the cluster ", to_text(cluster), "."), true};
  }
  if (cluster.count() > 1) {
    const absl::StatusOr<int> max = max_cluster_size(kernel, context, launch.block, launch.shared_bytes);
    if (max.ok() && cluster.count() > static_cast<std::uint64_t>(*max)) {
      return {absl::StrCat(" A cluster of ", cluster.count(), " blocks exceeds the largest, ", *max,
                           cluster.count() <= 16 ? "; allow_large_clusters may allow more." : ".")};
    }
  }
  if (attributes.cooperative) {
    const absl::StatusOr<int> max = max_cooperative_blocks(kernel, context, launch.block, launch.shared_bytes);
    if (max.ok() && launch.grid.count() > static_cast<std::uint64_t>(*max)) {
      return {absl::StrCat(" A cooperative launch needs all of its ", counted(launch.grid.count(), "block"),
                           " at once; there is room for ", *max, " of them.")};
    }
  }
  return {};
}

// Limits that hold on every device that CUDA 13 supports, and those of this kernel where it was to run.
BrokenLimit broken_limit(const KernelLaunch& launch, CUcontext context) {
  const auto& [kernel, grid, block, shared_bytes, arguments, attributes] = launch;
  if (grid.count() == 0) return {" A grid dimension is 0.", true};
  if (block.count() == 0) return {" A block dimension is 0.", true};
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
    return {" The grid exceeds (2147483647, 65535, 65535).", true};
  }
  if (block.x > 1024 || block.y > 1024 || block.z > 64) return {" The block exceeds (1024, 1024, 64).", true};
  if (block.count() > 1024) {
    return {absl::StrCat(" The block has ", block.count(), " threads; the limit is 1024."), true};
  }
  CUkernel handle = nullptr;
  if (context == nullptr || driver::resolve(*kernel, &handle) != CUDA_SUCCESS) return {};
  const absl::StatusOr<DeviceRef> device = ContextRef(context).device();
  const absl::StatusOr<CUdevice> ordinal = device.ok() ? device->get() : device.status();
  if (!ordinal.ok()) return {};
  int limit = 0;
  if (driver::api().KernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle, *ordinal) ==
          CUDA_SUCCESS &&
      block.count() > static_cast<std::uint64_t>(limit)) {
    return {absl::StrCat(" The block has ", block.count(), " threads; this kernel can have ", limit, ".")};
  }
  if (driver::api().KernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle, *ordinal) ==
          CUDA_SUCCESS &&
      shared_bytes > static_cast<std::uint32_t>(limit)) {
    return {absl::StrCat(" Dynamic shared memory of ", counted(shared_bytes, "byte"), " exceeds the kernel's limit of ",
                         limit, "; raise it with set_max_shared_bytes.")};
  }
  const driver::ResolvedFunction* resolved = nullptr;
  if (driver::resolve_function(*kernel, context, &resolved) != CUDA_SUCCESS) return {};
  const LaunchAttributes normal =
      internal::normal_form(attributes != nullptr ? *attributes : LaunchAttributes{}, resolved->cluster);
  return broken_attribute(launch, normal, context);
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

void set_event(CUlaunchAttribute& attribute, CUevent event, EdgeKind when) {
  attribute = {};
  if (when == EdgeKind::kProgrammatic) {
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
    attribute.value.programmaticEvent.event = event;
  } else {
    attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    attribute.value.launchCompletionEvent.event = event;
  }
}

// An event that a launch is to record cannot be.
absl::Status check_event(LaunchTarget target, const KernelLaunch& launch) {
  const char* reason = nullptr;
  if (target.sink() != nullptr) {
    reason =
        "a graph has no event that a launch records. An edge says the same: programmatic(node) or launched(node) as "
        "the dependency of what waits";
  } else if (target.when() == EdgeKind::kFull) {
    reason = "an event behind the whole kernel is recorded by record_event or StreamRef::record";
  } else {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("Kernel \"", launch.kernel->name, "\": ", reason, "."));
}

// Apart, because an array of attributes costs the launches that have none.
[[gnu::noinline]] CUresult launch_with_attributes(LaunchTarget target, const KernelLaunch& launch,
                                                  const driver::ResolvedFunction& resolved) {
  CUlaunchAttribute own[internal::kMaxLaunchAttributes];
  CUlaunchAttribute attributes[internal::kMaxLaunchAttributes + 2];
  CUlaunchConfig config;
  set_config(config, launch, target.stream());
  config.attrs = attributes;
  config.numAttrs = launch.attributes != nullptr ? internal::to_driver(*launch.attributes, own) : 0;
  std::copy_n(own, config.numAttrs, attributes);
  if (target.event() != nullptr) set_event(attributes[config.numAttrs++], target.event(), target.when());
  if (target.edge() == EdgeKind::kProgrammatic && resolved.can_wait) set_programmatic(attributes[config.numAttrs++]);
  return driver::api().LaunchKernelEx(&config, resolved.function, launch.arguments, nullptr);
}

}  // namespace

std::string internal::to_text(const Dim3& dim) { return absl::StrCat("(", dim.x, ", ", dim.y, ", ", dim.z, ")"); }

absl::Status explain_launch(const absl::Status& status, const KernelLaunch& launch, CUcontext context) {
  if (launch.kernel->symbol == nullptr) return driver::empty_kernel();
  const BrokenLimit broken = broken_limit(launch, context);
  std::string text = absl::StrCat("Kernel \"", launch.kernel->name, "\" with grid ", to_text(launch.grid), ", block ",
                                  to_text(launch.block), ", ", counted(launch.shared_bytes, "byte"),
                                  " of dynamic shared memory.", broken.text);
  text.pop_back();  // annotate() goes on with a colon
  absl::Status explained = driver::annotate(status, text);
  if (!broken.is_invalid || explained.code() == absl::StatusCode::kInvalidArgument) return explained;
  return driver::with_code(explained, absl::StatusCode::kInvalidArgument);
}

absl::Status launch(LaunchTarget target, const KernelLaunch& launch) {
  if (ABSL_PREDICT_FALSE(target.event() != nullptr)) CGRT_RETURN_IF_ERROR(check_event(target, launch));
  if (target.sink() != nullptr) return target.sink()->add_kernel(launch, target.edge());
  const StreamRef stream = target.stream();
  CUcontext context = stream.known_context();
  if (ABSL_PREDICT_FALSE(context == nullptr)) {
    if (stream.get() == nullptr) return driver::empty_object("Stream");
    const CUresult asked = driver::api().StreamGetCtx(stream.get(), &context);
    if (asked != CUDA_SUCCESS) return explain_launch(driver::to_status(asked, "cuStreamGetCtx"), launch, nullptr);
  }
  const driver::ResolvedFunction* resolved = nullptr;
  CUresult result = driver::resolve_function(*launch.kernel, context, &resolved);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch, context);
  }
  if (ABSL_PREDICT_FALSE(launch.attributes != nullptr || target.event() != nullptr)) {
    result = launch_with_attributes(target, launch, *resolved);
  } else {
    CUlaunchAttribute programmatic;
    CUlaunchConfig config;
    set_config(config, launch, stream);
    config.attrs = nullptr;
    config.numAttrs = 0;
    if (target.edge() == EdgeKind::kProgrammatic && resolved->can_wait) {
      set_programmatic(programmatic);
      config.attrs = &programmatic;
      config.numAttrs = 1;
    }
    result = driver::api().LaunchKernelEx(&config, resolved->function, launch.arguments, nullptr);
  }
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuLaunchKernelEx"), launch, context);
  }
  internal::CaptureContext::note_kernel(stream.get(), launch.attributes, resolved->cluster);
  if (ABSL_PREDICT_FALSE(launch.kernel->library != nullptr && internal::CaptureContext::is_active())) {
    internal::CaptureContext::keep(internal::library_of(*launch.kernel));
  }
  return absl::OkStatus();
}

}  // namespace cgrt
