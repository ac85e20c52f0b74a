#include "cgrt/bundle/code.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/machine.h"
#include "cgrt/bundle/threads.h"
#include "cgrt/device/context.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/occupancy.h"

namespace cgrt::internal {

struct Code::LoadedKernel {
  struct Delete {
    void operator()(const driver::KernelIdentity* kernel) const {
      for (const driver::ResolvedFunction* one = kernel->functions.load(); one != nullptr;) {
        delete std::exchange(one, one->next);
      }
      delete kernel;
    }
  };

  saved::Kernel wanted;
  // It names no library: the code outlives all graphs of the bundle, so that none need keep it, which would cost each
  // of their launches 1.6 us (stream/keep.h). Null: not loaded yet.
  std::unique_ptr<const driver::KernelIdentity, Delete> identity = nullptr;
};

struct Code::LoadedModule {
  Library library = {};
  CUmodule handle = nullptr;                         // null: nobody has asked
  std::map<std::string, LoadedKernel> kernels = {};  // by symbol
};

namespace {

absl::Status set_carveout(KernelRef kernel, DeviceRef device, std::int32_t percent) {
  CGRT_ASSIGN_OR_RETURN(const CUdevice ordinal, device.get());
  const auto handle = static_cast<CUkernel>(const_cast<void*>(kernel.identity()->symbol));
  const CUresult result =
      driver::api().KernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent, handle, ordinal);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return driver::annotate(driver::to_status(result, "cuKernelSetAttribute"),
                          absl::StrCat("A preferred carveout of ", percent, " for kernel \"", kernel.name(), "\""));
}

}  // namespace

Code::Code(const saved::Folder& folder, CUcontext context, DeviceRef device)
    : folder_(folder), context_(context), device_(device) {}

Code::~Code() {
  if (!modules_.empty()) driver::forget_handles();  // of functions that end
}

std::string Code::name_of(std::uint32_t module) const {
  return absl::StrCat("code ", to_string(folder_.manifest().modules[module].code));
}

void Code::want(const saved::Kernel& kernel) {
  const auto [known, is_new] = modules_[kernel.module].kernels.try_emplace(kernel.symbol, LoadedKernel{kernel});
  if (is_new) return;
  saved::Kernel& wanted = known->second.wanted;
  wanted.max_dynamic_shared_bytes = std::max(wanted.max_dynamic_shared_bytes, kernel.max_dynamic_shared_bytes);
  wanted.allows_large_clusters |= kernel.allows_large_clusters;
}

void Code::want_variables(std::uint32_t module) { modules_.try_emplace(module); }

absl::Status Code::load() {
  constexpr std::size_t kMaxThreads = 4;  // more are no quicker: the driver loads one at a time
  constexpr std::uint64_t kBytesPerThread = std::uint64_t{1} << 20;
  std::vector<std::pair<const std::uint32_t, LoadedModule>*> modules;
  std::uint64_t bytes = 0;
  for (auto& module : modules_) {
    modules.push_back(&module);
    bytes += folder_.manifest().modules[module.first].bytes;
  }
  Queue queue(modules.size());
  return in_threads(std::min({kMaxThreads, modules.size() + 1, bytes / kBytesPerThread + 1}), [&]() -> absl::Status {
    absl::Status status;
    for (auto i = queue.next(); i.has_value() && status.ok(); i = queue.next()) {
      status = load(modules[*i]->first, modules[*i]->second);
    }
    if (!status.ok()) queue.stop();
    return status;
  });
}

absl::Status Code::load(std::uint32_t index, LoadedModule& module) const {
  const auto load_all = [&]() -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const std::string image, folder_.read_code(folder_.manifest().modules[index]));
    CGRT_ASSIGN_OR_RETURN(module.library, Library::load(context_, image));
    for (auto& [symbol, kernel] : module.kernels) CGRT_RETURN_IF_ERROR(load(kernel.wanted, module, kernel));
    return absl::OkStatus();
  };
  const absl::Status status = load_all();
  if (status.ok() || absl::IsDataLoss(status)) return status;
  return explain_refused_code(driver::annotate(status, absl::StrCat("The ", name_of(index))),
                              folder_.manifest().machine);
}

absl::Status Code::load(const saved::Kernel& wanted, LoadedModule& module, LoadedKernel& kernel) const {
  CGRT_ASSIGN_OR_RETURN(const KernelRef found, module.library.kernel_ref(wanted.symbol));
  // A name of a source may be that of one kernel with another symbol.
  const char* name = nullptr;
  const auto handle = static_cast<CUkernel>(const_cast<void*>(found.identity()->symbol));
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().KernelGetName(&name, handle), "cuKernelGetName"));
  if (name != wanted.symbol) return absl::NotFoundError(absl::StrCat("It has no kernel \"", wanted.symbol, "\"."));
  const driver::KernelIdentity& identity = *found.identity();
  kernel.identity.reset(new driver::KernelIdentity{.name = identity.name,
                                                   .symbol = identity.symbol,
                                                   .lookup = identity.lookup,
                                                   .host_body = identity.host_body,
                                                   .resources = identity.resources,
                                                   .parameter_sizes = identity.parameter_sizes,
                                                   .parameter_offsets = identity.parameter_offsets,
                                                   .parameter_count = identity.parameter_count});
  return set_attributes(wanted, kernel);
}

absl::Status Code::set_attributes(const saved::Kernel& wanted, LoadedKernel& kernel) const {
  const KernelRef ref(kernel.identity.get());
  if (wanted.max_dynamic_shared_bytes.has_value()) {
    CGRT_RETURN_IF_ERROR(set_max_shared_bytes(ref, device_, *wanted.max_dynamic_shared_bytes));
  }
  if (wanted.preferred_carveout_percent.has_value()) {
    CGRT_RETURN_IF_ERROR(set_carveout(ref, device_, *wanted.preferred_carveout_percent));
  }
  return wanted.allows_large_clusters ? allow_large_clusters(ref, device_) : absl::OkStatus();
}

KernelRef Code::kernel(const saved::Kernel& wanted) const {
  return KernelRef(modules_.at(wanted.module).kernels.at(wanted.symbol).identity.get());
}

// By way of a kernel: a library does not name its module.
absl::StatusOr<CUmodule> Code::handle_of(LoadedModule& module) const {
  if (module.handle != nullptr) return module.handle;
  KernelRef kernel;
  if (!module.kernels.empty()) {
    kernel = KernelRef(module.kernels.begin()->second.identity.get());
  } else {
    CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, module.library.kernel_names());
    if (names.empty()) return absl::NotFoundError("It has no kernel, by which its variables are found.");
    CGRT_ASSIGN_OR_RETURN(kernel, module.library.kernel_ref(names.front()));
  }
  const driver::ResolvedFunction* function = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::resolve_function(*kernel.identity(), context_, &function), "cuKernelGetFunction"));
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context_));
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().FuncGetModule(&module.handle, function->function), "cuFuncGetModule"));
  return module.handle;
}

absl::StatusOr<CUdeviceptr> Code::variable(const saved::Block& block) {
  const absl::StatusOr<CUmodule> module = handle_of(modules_.at(block.module));
  if (!module.ok()) return driver::annotate(module.status(), absl::StrCat("The ", name_of(block.module)));
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context_));
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult result = driver::api().ModuleGetGlobal(&address, &bytes, *module, block.variable.c_str());
  if (result != CUDA_SUCCESS) {
    return driver::annotate(driver::to_status(result, "cuModuleGetGlobal"),
                            absl::StrCat("Variable \"", block.variable, "\" of the ", name_of(block.module)));
  }
  if (bytes == block.bytes) return address;
  return absl::InvalidArgumentError(absl::StrCat("Variable \"", block.variable, "\" has ", counted(bytes, "byte"),
                                                 " in its code, and in the bundle's memory ", block.bytes, "."));
}

}  // namespace cgrt::internal
