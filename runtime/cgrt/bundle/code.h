// The code of a bundle: its modules, the kernels in them and their variables. Internal to bundle/.
//
//   Code code(folder, context, device);
//   code.want(saved.kernels[0]);
//   CGRT_RETURN_IF_ERROR(code.load());
//   const KernelRef kernel = code.kernel(saved.kernels[0]);
//
// Not thread-safe. Kernels are valid as long as this is.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/launch/kernel.h"
#include "cgrt/launch/library.h"
#include "cgrt/saved/folder.h"

namespace cgrt::internal {

class Code {
 public:
  Code(const saved::Folder& folder, CUcontext context, DeviceRef device);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // What is to be loaded. Of a kernel that several graphs have the attributes that all need.
  void want(const saved::Kernel& kernel);
  void want_variables(std::uint32_t module);

  // Several modules side by side where there is much code. kFailedPrecondition: the driver refuses a module and is
  // older than the one that it was saved with; kNotFound: a module lacks a kernel.
  absl::Status load();

  // Once they are loaded.
  KernelRef kernel(const saved::Kernel& wanted) const;
  // kInvalidArgument: it has another size; kNotFound: the module has none of that name.
  absl::StatusOr<CUdeviceptr> variable(const saved::Block& block);

 private:
  struct LoadedKernel;
  struct LoadedModule;

  absl::Status load(std::uint32_t index, LoadedModule& module) const;
  absl::Status load(const saved::Kernel& wanted, LoadedModule& module, LoadedKernel& kernel) const;
  absl::Status set_attributes(const saved::Kernel& wanted, LoadedKernel& kernel) const;
  absl::StatusOr<CUmodule> handle_of(LoadedModule& module) const;
  std::string name_of(std::uint32_t module) const;

  const saved::Folder& folder_;
  CUcontext context_;
  DeviceRef device_;
  std::map<std::uint32_t, LoadedModule> modules_;
};

}  // namespace cgrt::internal
