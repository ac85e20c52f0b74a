#include "cgrt/bundle/machine.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/ir/describe.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {
namespace {

std::string capability_text(std::uint32_t major, std::uint32_t minor) { return absl::StrCat(major, ".", minor); }

// As CUDA writes it: 13000 is "13.0".
std::string driver_text(std::uint32_t version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

absl::StatusOr<bool> has_ptx_alone(const saved::Folder& folder) {
  for (const saved::Module& module : folder.manifest().modules) {
    CGRT_ASSIGN_OR_RETURN(const std::string image, folder.read_code(module));
    const bool is_binary = image.find('\0') < image.size() - 1;  // PTX may end in one
    if (is_binary || !absl::StrContains(image, ".version")) return false;
  }
  return true;
}

const char* name_of(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: return "stack of a thread";
    case CU_LIMIT_PRINTF_FIFO_SIZE: return "buffer of printf";
    default: return "heap of the device";
  }
}

}  // namespace

absl::Status check_architecture(const saved::Folder& folder, DeviceRef device) {
  const saved::Machine& machine = folder.manifest().machine;
  CGRT_ASSIGN_OR_RETURN(const int major, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CGRT_ASSIGN_OR_RETURN(const int minor, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const auto has_major = static_cast<std::uint32_t>(major), has_minor = static_cast<std::uint32_t>(minor);
  if (has_major == machine.major && has_minor >= machine.minor) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const bool is_for_all, has_ptx_alone(folder));
  if (is_for_all) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const std::string name, device.name());
  return absl::FailedPreconditionError(absl::StrCat(
      "The bundle was saved on ", machine.device, ", of compute capability ",
      capability_text(machine.major, machine.minor), ", and its code does not run on device ", device.ordinal(), " (",
      name, "), which has ", capability_text(has_major, has_minor), ". Save it again on such a device."));
}

absl::Status check_multiprocessors(const saved::Machine& machine, const ir::GraphIr& graph, CUcontext context) {
  CUdevResource resource{};
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM),
                                         "cuCtxGetDevResource"));
  if (resource.sm.smCount >= machine.multiprocessors) return absl::OkStatus();
  for (std::uint32_t id = 0; id < graph.nodes.size(); ++id) {
    const auto* const kernel = std::get_if<ir::KernelParams>(&graph.nodes[id].params);
    if (kernel == nullptr) continue;
    const bool is_cooperative = kernel->attributes.cooperative;
    if (!is_cooperative && kernel->attributes.cluster == ir::Dim3()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(ir::node_label(graph, id), " ", is_cooperative ? "is cooperative" : "has clusters",
                     ", and was saved on a device with ", counted(machine.multiprocessors, "multiprocessor"),
                     "; this context has ", resource.sm.smCount,
                     ", and may not run as many blocks at once. Load the bundle on a whole device of that kind, "
                     "or save it again on this one."));
  }
  return absl::OkStatus();
}

absl::Status explain_refused_code(const absl::Status& refused, const saved::Machine& machine) {
  int version = 0;
  const bool is_older =
      driver::api().DriverGetVersion(&version) == CUDA_SUCCESS && static_cast<std::uint32_t>(version) < machine.driver;
  if (!is_older) return refused;
  return driver::annotate(refused, absl::StrCat("The bundle was saved with a driver for CUDA ",
                                                driver_text(machine.driver), ", and this one is older (CUDA ",
                                                driver_text(static_cast<std::uint32_t>(version)), "); update it"));
}

absl::StatusOr<RaisedLimits> RaisedLimits::raise(const saved::Machine& machine, CUcontext context) {
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  RaisedLimits raised;
  raised.context_ = context;
  const std::pair<CUlimit, std::uint64_t> wanted[] = {{CU_LIMIT_STACK_SIZE, machine.stack_bytes},
                                                      {CU_LIMIT_PRINTF_FIFO_SIZE, machine.printf_bytes},
                                                      {CU_LIMIT_MALLOC_HEAP_SIZE, machine.heap_bytes}};
  for (const auto& [limit, bytes] : wanted) {
    std::size_t now = 0;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetLimit(&now, limit), "cuCtxGetLimit"));
    if (now >= bytes) continue;
    if (const CUresult result = driver::api().CtxSetLimit(limit, bytes); result != CUDA_SUCCESS) {
      return driver::annotate(driver::to_status(result, "cuCtxSetLimit"),
                              absl::StrCat("Raising the ", name_of(limit), " from ", now, " to ",
                                           counted(bytes, "byte"), ", as the bundle was saved with"));
    }
    raised.before_.emplace_back(limit, now);
  }
  return raised;
}

RaisedLimits::~RaisedLimits() {
  if (before_.empty()) return;
  const absl::StatusOr<ScopedContext> current = ScopedContext::enter(context_);
  const RelaxedCaptureMode relaxed;
  // A heap that kernels have used stays as it is.
  for (const auto& [limit, bytes] : before_) driver::api().CtxSetLimit(limit, bytes);
}

}  // namespace cgrt::internal
