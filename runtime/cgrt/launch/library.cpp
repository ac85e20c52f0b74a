#include "cgrt/launch/library.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/destroy.h"
#include "cgrt/driver/status.h"
#include "cgrt/launch/function_name.h"
#include "cgrt/launch/image.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {
namespace internal {
namespace {

CUresult lookup_loaded(const void* symbol, CUkernel* kernel) {
  *kernel = static_cast<CUkernel>(const_cast<void*>(symbol));
  return CUDA_SUCCESS;
}

// A kernel's identity with all that it points to.
struct LoadedKernel {
  LoadedKernel(std::string name_, const void* symbol, const KernelLayout& layout, const LoadedLibrary* library)
      : name(std::move(name_)),
        identity{.name = name.c_str(),
                 .symbol = symbol,
                 .lookup = &lookup_loaded,
                 .host_body = layout.host_body,
                 .resources = layout.resources,
                 .parameter_sizes = nullptr,
                 .parameter_offsets = nullptr,
                 .parameter_count = 0,
                 .library = library} {
    set_layout(layout);
  }
  ~LoadedKernel() {
    for (const driver::ResolvedFunction* one = identity.functions.load(); one != nullptr;) {
      delete std::exchange(one, one->next);
    }
  }
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  void set_layout(const KernelLayout& layout) {
    sizes.assign(layout.sizes, layout.sizes + layout.count);
    offsets.assign(layout.offsets, layout.offsets + layout.count);
    identity.parameter_sizes = sizes.data();
    identity.parameter_offsets = offsets.data();
    identity.parameter_count = layout.count;
  }

  std::string name;
  std::vector<std::uint32_t> sizes, offsets;
  driver::KernelIdentity identity;
};

}  // namespace

// Code that is loaded, and the identities of its kernels. Of somebody else's code it has one identity, and no handle.
class LoadedLibrary : public std::enable_shared_from_this<LoadedLibrary> {
 public:
  LoadedLibrary(CUlibrary library, CUcontext context_, std::string ptx_ = "")
      : context(context_), ptx(std::move(ptx_)), handle_(library) {}
  ~LoadedLibrary() {
    if (handle_ == nullptr) return;
    const RelaxedCaptureMode relaxed;  // unloading would end captures
    driver::unload_library(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  CUlibrary handle() const { return handle_; }

  // `ask(i, &offset, &bytes)` is the driver's answer for parameter i; `layout` as for find_kernel.
  template <class Ask>
  absl::StatusOr<const driver::KernelIdentity*> add(std::string name, const void* symbol, CUcontext function_context,
                                                    const KernelLayout* layout, const char* call, Ask ask);

  CUcontext context;
  const std::string ptx;  // what it was loaded from; empty: no PTX

 private:
  const LoadedKernel* find(const void* symbol, driver::KernelIdentity::HostFunction host_body) const {
    const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& kernel) {
      return kernel->identity.symbol == symbol && kernel->identity.host_body == host_body;
    });
    return found != kernels_.end() ? found->get() : nullptr;
  }

  CUlibrary handle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
};

std::shared_ptr<const void> library_of(const driver::KernelIdentity& kernel) {
  return static_cast<const LoadedLibrary*>(kernel.library)->shared_from_this();
}

absl::Status check_layout(KernelRef kernel, const KernelLayout& layout) {
  const std::vector<KernelParameter> parameters = parameters_of(kernel);
  if (parameters.size() != layout.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel \"", kernel.name(), "\" has ", counted(parameters.size(), "parameter"), ", and ",
                     counted(layout.count, "type"), layout.count == 1 ? " was" : " were", " named for it."));
  }
  for (std::size_t i = 0; i < layout.count; ++i) {
    const auto& [offset, bytes] = parameters[i];
    if (offset == layout.offsets[i] && bytes == layout.sizes[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Parameter ", i, " of kernel \"", kernel.name(), "\", counted from 0, has ",
                     counted(bytes, "byte"), " at byte ", offset, "; the type that was named for it has ",
                     counted(layout.sizes[i], "byte"), " at byte ", layout.offsets[i], "."));
  }
  return absl::OkStatus();
}

template <class Ask>
absl::StatusOr<const driver::KernelIdentity*> LoadedLibrary::add(std::string name, const void* symbol,
                                                                 CUcontext function_context, const KernelLayout* layout,
                                                                 const char* call, Ask ask) {
  const std::lock_guard lock(mutex_);
  if (const LoadedKernel* known = find(symbol, layout != nullptr ? layout->host_body : nullptr); known != nullptr) {
    if (layout != nullptr) CGRT_RETURN_IF_ERROR(check_layout(KernelRef(&known->identity), *layout));
    return &known->identity;
  }
  const KernelLayout none{nullptr, nullptr, 0};
  auto kernel = std::make_unique<LoadedKernel>(std::move(name), symbol, layout != nullptr ? *layout : none, this);
  kernel->identity.function_context = function_context;
  // The simulator, which cannot read every image, learns the layout from this.
  CUkernel resolved = nullptr;
  if (function_context == nullptr) {
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::resolve(kernel->identity, &resolved), "cuLibraryGetKernel"));
  }
  std::vector<std::uint32_t> sizes, offsets;
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, bytes = 0;
    const CUresult result = ask(i, &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // past the last: there is no call that counts them
    if (result != CUDA_SUCCESS) {
      return driver::annotate(driver::to_status(result, call), absl::StrCat("Kernel \"", kernel->name, "\""));
    }
    sizes.push_back(static_cast<std::uint32_t>(bytes));
    offsets.push_back(static_cast<std::uint32_t>(offset));
  }
  kernel->set_layout({sizes.data(), offsets.data(), sizes.size()});
  if (layout != nullptr) CGRT_RETURN_IF_ERROR(check_layout(KernelRef(&kernel->identity), *layout));
  kernels_.push_back(std::move(kernel));
  return &kernels_.back()->identity;
}

namespace {

absl::StatusOr<std::vector<CUkernel>> kernels_in(CUlibrary library) {
  unsigned count = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().LibraryGetKernelCount(&count, library), "cuLibraryGetKernelCount"));
  std::vector<CUkernel> kernels(count);
  if (count == 0) return kernels;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().LibraryEnumerateKernels(kernels.data(), count, library),
                                         "cuLibraryEnumerateKernels"));
  return kernels;
}

absl::StatusOr<std::string> name_of(CUkernel kernel) {
  const char* symbol = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().KernelGetName(&symbol, kernel), "cuKernelGetName"));
  return function_name(symbol);
}

// What the compiler says of PTX that it refuses; empty: nothing. Of the log that is given to cuLibraryLoadData nothing
// comes back, since a library is compiled when it is first asked for a kernel (driver 580).
std::string compiler_log(const std::string& ptx) {
  constexpr std::size_t kLogBytes = 4096;
  std::string log(kLogBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  CUlinkState link = nullptr;
  const driver::Api& api = driver::api();
  if (api.LinkCreate(static_cast<unsigned>(std::size(options)), options, values, &link) != CUDA_SUCCESS) return "";
  api.LinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, "the image", 0, nullptr,
                  nullptr);
  api.LinkDestroy(link);
  log.resize(std::strlen(log.c_str()));
  while (!log.empty() && std::isspace(static_cast<unsigned char>(log.back())) != 0) log.pop_back();
  return log;
}

// The kernel of exactly that name; null: there is none.
absl::StatusOr<CUkernel> get_kernel(CUlibrary library, const std::string& name, const std::string& ptx) {
  CUkernel kernel = nullptr;
  const CUresult result = driver::api().LibraryGetKernel(&kernel, library, name.c_str());
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND) return kernel;
  const absl::Status failure = driver::to_status(result, "cuLibraryGetKernel");
  const std::string log = ptx.empty() ? "" : compiler_log(ptx);
  return log.empty() ? failure : driver::annotate(failure, absl::StrCat("Compiling PTX: ", log));
}

absl::StatusOr<CUkernel> handle_of(CUlibrary library, const std::string& name, const std::string& ptx) {
  CGRT_ASSIGN_OR_RETURN(const CUkernel exact, get_kernel(library, name, ptx));
  if (exact != nullptr) return exact;
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUkernel> kernels, kernels_in(library));
  std::vector<std::string> all, matching;
  CUkernel found = nullptr;
  for (CUkernel kernel : kernels) {
    CGRT_ASSIGN_OR_RETURN(std::string one, name_of(kernel));
    if (has_name(one, name)) {
      matching.push_back(one);
      found = kernel;
    }
    all.push_back(std::move(one));
  }
  if (matching.size() == 1) return found;
  constexpr std::size_t kMaxNames = 8;
  std::vector<std::string>& listed = matching.empty() ? all : matching;
  const std::size_t more = listed.size() > kMaxNames ? listed.size() - kMaxNames : 0;
  listed.resize(listed.size() - more);
  const std::string names =
      absl::StrCat(absl::StrJoin(listed, ", "), more != 0 ? absl::StrCat(" and ", more, " more") : "", ".");
  if (!matching.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("The library has several kernels named \"", name, "\": ", names));
  }
  return absl::NotFoundError(absl::StrCat("The library has no kernel named \"", name, "\". ",
                                          all.empty() ? "It has no kernels." : "It has " + names));
}

}  // namespace

absl::StatusOr<const driver::KernelIdentity*> find_kernel(const std::shared_ptr<LoadedLibrary>& library,
                                                          std::string_view name, const KernelLayout* layout) {
  if (library == nullptr) return driver::empty_object("Library");
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(library->context));
  CGRT_ASSIGN_OR_RETURN(const CUkernel handle, handle_of(library->handle(), std::string(name), library->ptx));
  CGRT_ASSIGN_OR_RETURN(std::string full_name, name_of(handle));
  return library->add(std::move(full_name), handle, nullptr, layout, "cuKernelGetParamInfo",
                      [&](std::size_t i, std::size_t* offset, std::size_t* bytes) {
                        return driver::api().KernelGetParamInfo(handle, i, offset, bytes);
                      });
}

namespace {

enum class ImageKind { kUnknown, kElf, kFatbin, kText };

ImageKind kind_of(std::string_view image) {
  if (image.starts_with(std::string_view(ELFMAG, SELFMAG))) return ImageKind::kElf;
  if (image.starts_with("\x50\xed\x55\xba")) return ImageKind::kFatbin;
  return image.find(".version") != std::string_view::npos ? ImageKind::kText : ImageKind::kUnknown;
}

// What the head of `image` speaks of; nullopt: it is damaged.
template <class Header>
std::optional<std::uint64_t> wanted_bytes(std::string_view image) {
  Header header;
  if (image.size() < sizeof(header)) return sizeof(header);
  std::memcpy(&header, image.data(), sizeof(header));
  return image_bytes(header);
}

// A driver is given an address and no size, and reads as far as the image says.
absl::Status check_image(std::string_view image, ImageKind kind) {
  if (kind == ImageKind::kUnknown) {
    return absl::InvalidArgumentError(absl::StrCat("An image of ", counted(image.size(), "byte"),
                                                   " is no cubin, no fatbin and no PTX: it has none of their heads."));
  }
  std::optional<std::uint64_t> wanted = 0;
  if (kind == ImageKind::kElf) wanted = wanted_bytes<Elf64_Ehdr>(image);
  if (kind == ImageKind::kFatbin) wanted = wanted_bytes<FatbinHeader>(image);
  if (!wanted.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("The image is damaged: it has ", counted(image.size(), "byte"),
                                                   ", and its head speaks of 2^64 or more."));
  }
  if (image.size() >= *wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("The image is cut short: it has ", counted(image.size(), "byte"),
                                                 ", and its head speaks of ", *wanted, "."));
}

absl::StatusOr<CUlibrary> load_image(const char* image) {
  CUlibrary library = nullptr;
  const CUresult result = driver::api().LibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) return library;
  return driver::annotate(driver::to_status(result, "cuLibraryLoadData"), "Loading a library");
}

}  // namespace
}  // namespace internal

std::vector<KernelParameter> parameters_of(KernelRef kernel) {
  const driver::KernelIdentity& identity = *kernel.identity();
  std::vector<KernelParameter> parameters;
  for (std::size_t i = 0; i < identity.parameter_count; ++i) {
    parameters.push_back({identity.parameter_offsets[i], identity.parameter_sizes[i]});
  }
  return parameters;
}

absl::StatusOr<Library> Library::load(ContextRef context, std::string_view image) {
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  const internal::ImageKind kind = internal::kind_of(image);
  CGRT_RETURN_IF_ERROR(internal::check_image(image, kind));
  const std::string text(kind == internal::ImageKind::kText ? image : "");  // with a 0 at its end
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(handle));
  RelaxedCaptureMode relaxed;  // where it loads at once, it allocates, which would end captures
  CGRT_RETURN_IF_ERROR(relaxed.status());
  CGRT_ASSIGN_OR_RETURN(const CUlibrary library, internal::load_image(text.empty() ? image.data() : text.c_str()));
  auto loaded = std::make_shared<internal::LoadedLibrary>(library, handle, text);
  // PTX is compiled when it is asked for a kernel: here, so that this call tells what is wrong with it.
  if (!text.empty()) CGRT_RETURN_IF_ERROR(internal::get_kernel(library, "", text).status());
  return Library(std::move(loaded));
}

absl::StatusOr<KernelRef> Library::kernel_ref(std::string_view name) const {
  CGRT_ASSIGN_OR_RETURN(const driver::KernelIdentity* found, internal::find_kernel(library_, name, nullptr));
  return KernelRef(found);
}

absl::StatusOr<std::vector<std::string>> Library::kernel_names() const {
  if (library_ == nullptr) return driver::empty_object("Library");
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(library_->context));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUkernel> kernels, internal::kernels_in(library_->handle()));
  std::vector<std::string> names;
  for (CUkernel kernel : kernels) {
    CGRT_ASSIGN_OR_RETURN(std::string name, internal::name_of(kernel));
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

ForeignKernel::ForeignKernel(std::shared_ptr<internal::LoadedLibrary> library) : library_(std::move(library)) {}

absl::StatusOr<ForeignKernel> ForeignKernel::adopt(CUkernel kernel, ContextRef context) {
  if (kernel == nullptr) return absl::InvalidArgumentError("ForeignKernel::adopt: the CUkernel is null.");
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(handle));
  CGRT_ASSIGN_OR_RETURN(std::string name, internal::name_of(kernel));
  ForeignKernel foreign(std::make_shared<internal::LoadedLibrary>(nullptr, handle));
  CGRT_ASSIGN_OR_RETURN(const driver::KernelIdentity* identity,
                        foreign.library_->add(std::move(name), kernel, nullptr, nullptr, "cuKernelGetParamInfo",
                                              [&](std::size_t i, std::size_t* offset, std::size_t* bytes) {
                                                return driver::api().KernelGetParamInfo(kernel, i, offset, bytes);
                                              }));
  foreign.kernel_ = KernelRef(identity);
  return foreign;
}

absl::StatusOr<ForeignKernel> ForeignKernel::adopt(CUfunction function, ContextRef context) {
  if (function == nullptr) return absl::InvalidArgumentError("ForeignKernel::adopt: the CUfunction is null.");
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(handle));
  const char* symbol = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetName(&symbol, function), "cuFuncGetName"));
  ForeignKernel foreign(std::make_shared<internal::LoadedLibrary>(nullptr, handle));
  CGRT_ASSIGN_OR_RETURN(
      const driver::KernelIdentity* identity,
      foreign.library_->add(internal::function_name(symbol), function, handle, nullptr, "cuFuncGetParamInfo",
                            [&](std::size_t i, std::size_t* offset, std::size_t* bytes) {
                              return driver::api().FuncGetParamInfo(function, i, offset, bytes);
                            }));
  foreign.kernel_ = KernelRef(identity);
  return foreign;
}

}  // namespace cgrt
