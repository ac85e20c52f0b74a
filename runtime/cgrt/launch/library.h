// Library: kernels that are loaded while the program runs, from a cubin, a fatbin, PTX or what NVRTC made of source.
// ForeignKernel: a kernel that somebody else loaded.
//
//   CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(DeviceRef(0), image));
//   CGRT_ASSIGN_OR_RETURN(const auto scale, library.kernel<float*, const float*, float, int>("scale"));
//   CGRT_RETURN_IF_ERROR(launch(stream, config, scale, y, x, 2.0f, n));   // and into every other target
//
// What a kernel takes is asked of the driver and compared with the types that are named for it: a kernel whose
// parameters are others than the program believes is refused, and none is launched with a wrong buffer.
//
// The code stays loaded while a Library of it lives, and while a graph may run it: graphs that are built or captured
// here keep it (Graph::keep), and so do executables whose nodes are set to it, which wait for their launches when they
// are destroyed. A capture that was begun by cuStreamBeginCapture keeps nothing. Thread-safe; a Library must not be
// assigned or destroyed beside other calls on it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/kernel.h"

namespace cgrt {

struct KernelParameter {
  std::size_t offset, bytes;  // in the parameter buffer
};

// Without a question to the driver. Empty for an empty kernel.
std::vector<KernelParameter> parameters_of(KernelRef kernel);

namespace internal {

class LoadedLibrary;

struct KernelLayout {
  const std::uint32_t* sizes;
  const std::uint32_t* offsets;
  std::size_t count;
  driver::KernelIdentity::HostFunction host_body = nullptr;
  KernelResources resources = {};
};

template <class... Args>
KernelLayout layout_of() {
  return {parameter_layout<Args...>.sizes, parameter_layout<Args...>.offsets, sizeof...(Args)};
}

template <auto kHostFunction, KernelResources kResources, class Function = decltype(kHostFunction)>
struct HostTraits;
template <auto kHostFunction, KernelResources kResources, class... Args>
struct HostTraits<kHostFunction, kResources, void (*)(HostGrid, Args...)> {
  using Type = Kernel<Args...>;
  template <std::size_t... kIndex>
  static void run(const HostGrid& grid, void* const* arguments, std::index_sequence<kIndex...>) {
    kHostFunction(grid, *static_cast<std::remove_const_t<Args>*>(arguments[kIndex])...);
  }
  static void run_on_host(const HostGrid& grid, void* const* arguments) {
    run(grid, arguments, std::index_sequence_for<Args...>{});
  }
  static KernelLayout layout() {
    KernelLayout layout = layout_of<Args...>();
    layout.host_body = &run_on_host;
    layout.resources = kResources;
    return layout;
  }
};

// Null: the kernel's own layout is taken as it is.
absl::StatusOr<const driver::KernelIdentity*> find_kernel(const std::shared_ptr<LoadedLibrary>& library,
                                                          std::string_view name, const KernelLayout* layout);
absl::Status check_layout(KernelRef kernel, const KernelLayout& layout);

// What keeps the code of a kernel loaded whose identity has a library.
std::shared_ptr<const void> library_of(const driver::KernelIdentity& kernel);

}  // namespace internal

// A shared handle: copies name the same code. Empty by default and when moved from.
class Library {
 public:
  Library() = default;

  // `image` is a cubin, a fatbin or PTX; it may be gone afterwards. Blocks while the code is loaded and, from PTX,
  // compiled; disturbs no capture. kInvalidArgument when it is none of these, is cut short, has a damaged head or
  // does not compile, then with the compiler's words; kUnimplemented when it has no code for the device of `context`.
  static absl::StatusOr<Library> load(ContextRef context, std::string_view image);

  // The kernel of that name: as in the image, or as in its source, with or without its namespaces and its template
  // arguments where that is one kernel only. Valid as long as its code is loaded (see above). kNotFound lists the
  // kernels that there are; kInvalidArgument names what is ambiguous, or the parameter that differs from its type.
  template <class... Args>
  absl::StatusOr<Kernel<Args...>> kernel(std::string_view name) const {
    return typed<Kernel<Args...>>(internal::layout_of<Args...>(), name);
  }
  // The same with the host body that the simulator runs in its stead, which has the types:
  // library.kernel<scale_on_host>("scale"). See launch/kernel.h.
  template <auto kHostFunction, KernelResources kResources = KernelResources{}>
  auto kernel(std::string_view name) const {
    using Traits = internal::HostTraits<kHostFunction, kResources>;
    return typed<typename Traits::Type>(Traits::layout(), name);
  }
  // With whatever parameters it has, for arguments that the caller packs: see parameters_of, and launch of a
  // KernelLaunch.
  absl::StatusOr<KernelRef> kernel_ref(std::string_view name) const;

  // As they may be asked for, ascending.
  absl::StatusOr<std::vector<std::string>> kernel_names() const;

 private:
  explicit Library(std::shared_ptr<internal::LoadedLibrary> library) : library_(std::move(library)) {}
  template <class AnyKernel>
  absl::StatusOr<AnyKernel> typed(const internal::KernelLayout& layout, std::string_view name) const {
    absl::StatusOr<const driver::KernelIdentity*> found = internal::find_kernel(library_, name, &layout);
    if (!found.ok()) return std::move(found).status();
    return AnyKernel(*found);
  }

  std::shared_ptr<internal::LoadedLibrary> library_;
};

// Owns nothing of theirs: their module or library must stay loaded as long as the kernel is used. The kernels that it
// gives are valid as long as a copy of it lives, or a graph that was built with them.
class ForeignKernel {
 public:
  // Of cuLibraryGetKernel or cudaGetKernel.
  static absl::StatusOr<ForeignKernel> adopt(CUkernel kernel, ContextRef context);
  // Of cuModuleGetFunction or cudaGetFuncBySymbol, made in `context`, which is no green one; launched elsewhere it is
  // kFailedPrecondition. Its attributes are set by who has the module: set_max_shared_bytes is kUnimplemented.
  static absl::StatusOr<ForeignKernel> adopt(CUfunction function, ContextRef context);

  KernelRef ref() const { return kernel_; }
  // kInvalidArgument names the parameter that differs from its type.
  template <class... Args>
  absl::StatusOr<Kernel<Args...>> as() const {
    const absl::Status status = internal::check_layout(kernel_, internal::layout_of<Args...>());
    if (!status.ok()) return status;
    return Kernel<Args...>(kernel_.identity());
  }

 private:
  explicit ForeignKernel(std::shared_ptr<internal::LoadedLibrary> library);
  std::shared_ptr<internal::LoadedLibrary> library_;
  KernelRef kernel_;
};

}  // namespace cgrt
