#include "cgrt_kernels/common/plan.h"

#include <cmath>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::kernels {

absl::StatusOr<Machine> machine_of(ContextRef context) {
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(const int sms, device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CGRT_ASSIGN_OR_RETURN(const int per_sm, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  CGRT_ASSIGN_OR_RETURN(const int per_block, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return Machine{.context = context,
                 .device = device,
                 .sms = static_cast<std::uint32_t>(sms),
                 .shared_per_sm = static_cast<std::uint32_t>(per_sm),
                 .shared_per_block = static_cast<std::uint32_t>(per_block)};
}

absl::StatusOr<Machine> machine_of(ContextRef context, KernelRef kernel) {
  CGRT_ASSIGN_OR_RETURN(Machine machine, machine_of(context));
  CGRT_ASSIGN_OR_RETURN(const CUdevice device, machine.device.get());
  CGRT_ASSIGN_OR_RETURN(const int has_clusters, machine.device.attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH));
  CUkernel handle = nullptr;
  // That of the virtual architecture, as in __CUDA_ARCH__. The binary version is the device's own, whatever the code
  // was translated from.
  int version = 0;
  CUresult result = driver::resolve(*kernel.identity(), &handle);
  if (result == CUDA_SUCCESS) {
    result = driver::api().KernelGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, handle, device);
  }
  if (result != CUDA_SUCCESS) {
    return driver::annotate(driver::to_status(result, "cuKernelGetAttribute"),
                            absl::StrCat("Kernel \"", kernel.name(), "\""));
  }
  machine.has_programmatic_edges = version >= 90;
  machine.has_clusters = version >= 90 && has_clusters != 0;
  return machine;
}

absl::StatusOr<bool> has_room_for_cluster(const Machine& machine, KernelRef kernel, const LaunchConfig& config) {
  if (config.attributes.cluster.count() == 1) return true;
  CGRT_ASSIGN_OR_RETURN(const int clusters, max_active_clusters(kernel, machine.context, config.attributes.cluster,
                                                                config.block, config.shared_bytes));
  return clusters > 0;
}

absl::Status allow_shared_bytes(KernelRef kernel, const Machine& machine, std::uint32_t bytes) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  CGRT_ASSIGN_OR_RETURN(const CUdevice device, machine.device.get());
  CUkernel handle = nullptr;
  int limit = 0;
  if (driver::resolve(*kernel.identity(), &handle) == CUDA_SUCCESS &&
      driver::api().KernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle, device) ==
          CUDA_SUCCESS &&
      static_cast<std::int64_t>(limit) >= bytes) {
    return absl::OkStatus();
  }
  return set_max_shared_bytes(kernel, machine.device, bytes);
}

absl::Status refuse(OperationName name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(name.first, name.second, ": ", why));
}

absl::Status check_matrix(OperationName name, std::uint64_t rows, std::uint64_t columns) {
  if (rows != 0 && columns != 0 && rows <= kMaxCount && columns <= kMaxCount) return absl::OkStatus();
  return refuse(name, absl::StrCat(rows, " rows of ", columns, " columns; each must be from 1 to ", kMaxCount, "."));
}

absl::Status check_float(OperationName name, DType type) {
  if (is_float(type)) return absl::OkStatus();
  return refuse_type(name, type, "float32, float16 and bfloat16");
}

absl::Status refuse_type(OperationName name, DType type, absl::string_view others) {
  CGRT_RETURN_IF_ERROR(check_enum(name, "type", type, DType::kInt64));
  return refuse(name, absl::StrCat("there is no kernel for ", to_string(type), ", only for ", others, "."));
}

absl::Status check_not_negative(OperationName name, const char* field, float value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return refuse(name, absl::StrCat(field, " is ", value, "; it must be finite and not negative."));
}

absl::Status check_workspace(OperationName name, const Workspace& workspace, std::size_t needed) {
  if (needed == 0) return absl::OkStatus();
  if (workspace.data == nullptr) {
    return refuse(name, absl::StrCat("workspace is null; the plan needs ", needed,
                                     " bytes of device memory, initialized once by initialize_workspace."));
  }
  if (workspace.bytes < needed) {
    return refuse(name, absl::StrCat("the workspace has ", workspace.bytes, " bytes; the plan needs ", needed, "."));
  }
  return check_pointer(name, "workspace", workspace.data, kWorkspaceAlignment);
}

namespace internal {

absl::Status refuse_pointer(OperationName name, const char* argument, const void* pointer, std::size_t alignment,
                            const char* element) {
  if (pointer == nullptr) return refuse(name, absl::StrCat(argument, " is null."));
  return refuse(name, absl::StrCat(argument, " (0x", absl::Hex(address_bits(pointer)), ") is not aligned to ",
                                   alignment, " bytes", *element != '\0' ? ", the size of " : "", element, "."));
}

absl::Status refuse_enum(OperationName name, const char* field, int value, int last) {
  return refuse(name,
                absl::StrCat(field, " is ", value, ", which the enum does not have: its values are 0 to ", last, "."));
}

}  // namespace internal
}  // namespace cgrt::kernels
