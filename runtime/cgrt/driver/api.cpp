#include "cgrt/driver/api.h"

#include <dlfcn.h>
#include <pthread.h>

#include <mutex>
#include <string>
#include <unordered_map>

namespace cgrt::driver {
namespace internal {

std::atomic<const Api*> current{nullptr};
std::atomic<std::uint32_t> generation{1};
std::atomic<std::uint32_t> table_number{1};

}  // namespace internal

namespace {

CUresult resolve_through_cudart(CUkernel* kernel, const KernelIdentity* identity) {
  return identity->lookup(identity->symbol, kernel);
}

struct Loaded {
  Api table;
  std::string error;
};

void load_entry(PFN_cuGetProcAddress_v12000 get, const char* name, int version, Need need, void** slot, void* missing,
                std::string& absent) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  // Some stub libraries return an error and leave the pointer null: both are checked.
  const CUresult result = get(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  if (result == CUDA_SUCCESS && found != nullptr) {
    *slot = found;
    return;
  }
  *slot = missing;
  if (need == Need::kRequired && absent.empty()) absent = name;
}

Loaded load_driver() {
  Loaded loaded;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.error =
        "No CUDA driver: libcuda.so.1 could not be loaded. Install the NVIDIA driver (580 or newer for CUDA 13), "
        "or, inside a container, start it with the GPU made visible (docker run --gpus all).";
    return loaded;
  }
  const auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    loaded.error =
        "The CUDA driver is older than 12.0: libcuda.so.1 has no cuGetProcAddress_v2. Install driver 580 or newer.";
    return loaded;
  }
  std::string absent;
  Api table;
#define CGRT_ENTRY(name, version, need)                                                   \
  load_entry(get, "cu" #name, version, Need::need, reinterpret_cast<void**>(&table.name), \
             reinterpret_cast<void*>(&internal::Stub<PFN_cu##name##_v##version>::not_in_driver), absent);
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  if (!absent.empty()) {
    loaded.error = "The CUDA driver lacks " + absent +
                   ", which cgrt needs: it is a stub library or older than 12.4. Install driver 580 or newer.";
    return loaded;
  }
  table.ResolveKernel = &resolve_through_cudart;
  // Not an entry of the table: called here and nowhere else.
  PFN_cuInit_v2000 init = &internal::Stub<PFN_cuInit_v2000>::not_in_driver;
  load_entry(get, "cuInit", 2000, Need::kRequired, reinterpret_cast<void**>(&init),
             reinterpret_cast<void*>(&internal::Stub<PFN_cuInit_v2000>::not_in_driver), absent);
  const CUresult started = init(0);
  if (started != CUDA_SUCCESS) {
    const char* text = nullptr;
    table.GetErrorString(started, &text);
    loaded.error = std::string("The CUDA driver is installed but cuInit failed: ") +
                   (text != nullptr ? text : "unknown error") + " (CUresult " +
                   std::to_string(static_cast<int>(started)) +
                   "). Check that nvidia-smi lists a device and that CUDA_VISIBLE_DEVICES does not hide it.";
    return loaded;
  }
  loaded.table = table;
  return loaded;
}

// Never destroyed, as the driver's table.
struct KnownKernels {
  struct Entry {
    std::uint32_t generation;
    const KernelIdentity* kernel;
  };
  std::mutex mutex;
  std::unordered_map<CUfunction, Entry> by_function;
};
KnownKernels& known_kernels() {
  static KnownKernels& known = *new KnownKernels();
  return known;
}

// Calls `ask` while `context` is current.
template <class Ask>
CUresult in_context(CUcontext context, Ask ask) {
  CUresult result = api().CtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = ask();
  CUcontext popped = nullptr;
  const CUresult restored = api().CtxPopCurrent(&popped);
  return result == CUDA_SUCCESS ? restored : result;
}

// Whether the primary context of `device` has the same function for `kernel`, as it has for its green contexts. Those
// keep it active; one that is not is left alone, since retaining it would make it and release it again (175 ms).
CUresult is_shared_with_primary(CUcontext context, CUkernel kernel, CUdevice device, CUfunction function,
                                bool* is_shared) {
  unsigned flags = 0;
  int is_active = 0;
  CUresult result = api().DevicePrimaryCtxGetState(device, &flags, &is_active);
  if (result != CUDA_SUCCESS || is_active == 0) return result;
  CUcontext primary = nullptr;
  result = api().DevicePrimaryCtxRetain(&primary, device);
  if (result != CUDA_SUCCESS) return result;
  CUfunction in_primary = nullptr;
  if (primary != context) result = in_context(primary, [&] { return api().KernelGetFunction(&in_primary, kernel); });
  *is_shared = function == in_primary;
  const CUresult released = api().DevicePrimaryCtxRelease(device);
  return result == CUDA_SUCCESS ? released : result;
}

// CUDA does not survive a fork: calls in the child fail, and some crash. So none is made there.
Api table_after_fork() {
  Api table;
#define CGRT_ENTRY(name, version, need) table.name = &internal::Stub<PFN_cu##name##_v##version>::after_fork;
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  table.ResolveKernel = &internal::Stub<PFN_ResolveKernel>::after_fork;
  return table;
}

const Loaded& driver_table();

void leave_driver_to_parent() {
  static const Api& forked = *new Api(table_after_fork());
  const Api* driver = &driver_table().table;
  if (internal::current.compare_exchange_strong(driver, &forked)) forget_handles();
}

// Never destroyed: handles may be given back after main has returned.
const Loaded& driver_table() {
  static const Loaded& loaded = *[] {
    auto* made = new Loaded(load_driver());
    if (made->error.empty()) pthread_atfork(nullptr, nullptr, &leave_driver_to_parent);
    return made;
  }();
  return loaded;
}

}  // namespace

namespace internal {

const Api& load() {
  const Api& table = driver_table().table;
  const Api* expected = nullptr;
  current.compare_exchange_strong(expected, &table);
  return *current.load();
}

CUresult resolve_function_slow(const KernelIdentity& identity, CUcontext context, const ResolvedFunction** found) {
  const std::uint32_t now = driver::generation();
  const bool is_function = identity.function_context != nullptr;
  if (is_function && identity.function_context != context) return CUDA_ERROR_INVALID_CONTEXT;
  CUkernel kernel = nullptr;
  if (!is_function) {
    if (const CUresult result = resolve(identity, &kernel); result != CUDA_SUCCESS) return result;
  }
  CUfunction function = is_function ? static_cast<CUfunction>(const_cast<void*>(identity.symbol)) : nullptr;
  CUdevice device = 0;
  Dim3 cluster;
  int ptx_version = 0;
  CUresult result = in_context(context, [&] {
    CUresult asked = is_function ? CUDA_SUCCESS : api().KernelGetFunction(&function, kernel);
    if (asked == CUDA_SUCCESS) asked = api().CtxGetDevice(&device);
    if (asked == CUDA_SUCCESS) asked = api().FuncGetAttribute(&ptx_version, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
    return asked == CUDA_SUCCESS ? compiled_cluster(function, &cluster) : asked;
  });
  if (result != CUDA_SUCCESS) return result;
  bool is_shared = false;
  if (!is_function) result = is_shared_with_primary(context, kernel, device, function, &is_shared);
  if (result != CUDA_SUCCESS) return result;
  auto* entry =
      new ResolvedFunction{now, context, function, is_shared, cluster, ptx_version >= 90, identity.functions.load()};
  while (!identity.functions.compare_exchange_weak(entry->next, entry)) {
  }
  if (identity.library == nullptr) {  // others end
    KnownKernels& known = known_kernels();
    const std::lock_guard lock(known.mutex);
    known.by_function.insert_or_assign(function, KnownKernels::Entry{now, &identity});
  }
  *found = entry;
  return CUDA_SUCCESS;
}

}  // namespace internal

const KernelIdentity* kernel_of(CUfunction function) {
  KnownKernels& known = known_kernels();
  const std::lock_guard lock(known.mutex);
  const auto found = known.by_function.find(function);
  return found != known.by_function.end() && found->second.generation == generation() ? found->second.kernel : nullptr;
}

CUresult compiled_cluster(CUfunction function, Dim3* cluster) {
  int size[3] = {};
  const CUfunction_attribute ids[] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                      CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                      CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
  for (int i = 0; i < 3; ++i) {
    const CUresult result = api().FuncGetAttribute(&size[i], ids[i], function);
    if (result != CUDA_SUCCESS) return result;
    if (size[0] == 0) return CUDA_SUCCESS;
  }
  *cluster = Dim3(static_cast<std::uint32_t>(size[0]), static_cast<std::uint32_t>(size[1]),
                  static_cast<std::uint32_t>(size[2]));
  return CUDA_SUCCESS;
}

void forget_handles() { internal::generation.fetch_add(1); }

const Api& install(const Api& table) {
  const Api& previous = api();
  restore(table);
  return previous;
}

void restore(const Api& table) {
  internal::current.store(&table);
  internal::table_number.fetch_add(1);
  forget_handles();
}

const char* load_error() { return driver_table().error.c_str(); }

}  // namespace cgrt::driver
