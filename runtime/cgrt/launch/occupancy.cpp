#include "cgrt/launch/occupancy.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt {
namespace {

// `result` of a call about `kernel`.
[[gnu::cold]] absl::Status kernel_failed(CUresult result, const char* call, KernelRef kernel) {
  if (kernel == KernelRef()) return driver::empty_kernel();
  return driver::annotate(driver::to_status(result, call), absl::StrCat("Kernel \"", kernel.name(), "\""));
}

absl::StatusOr<CUkernel> resolve(KernelRef kernel) {
  if (kernel.identity()->function_context != nullptr) {
    return absl::UnimplementedError(absl::StrCat("Kernel \"", kernel.name(),
                                                 "\" was made from a CUfunction, whose attributes are set by who has "
                                                 "its module: cuFuncSetAttribute."));
  }
  CUkernel handle = nullptr;
  const CUresult result = driver::resolve(*kernel.identity(), &handle);
  if (result != CUDA_SUCCESS) return kernel_failed(result, "cudaGetKernel", kernel);
  return handle;
}

// As the questions about occupancy take it: a CUkernel is a CUfunction to them.
absl::StatusOr<CUfunction> queryable(KernelRef kernel) {
  const driver::KernelIdentity& identity = *kernel.identity();
  if (identity.function_context != nullptr) return static_cast<CUfunction>(const_cast<void*>(identity.symbol));
  CGRT_ASSIGN_OR_RETURN(CUkernel handle, resolve(kernel));
  return reinterpret_cast<CUfunction>(handle);
}

absl::StatusOr<int> attribute(KernelRef kernel, CUfunction_attribute id, CUdevice device) {
  int value = 0;
  if (kernel.identity()->function_context != nullptr) {
    CGRT_ASSIGN_OR_RETURN(const CUfunction function, queryable(kernel));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetAttribute(&value, id, function), "cuFuncGetAttribute"));
    return value;
  }
  CGRT_ASSIGN_OR_RETURN(CUkernel handle, resolve(kernel));
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().KernelGetAttribute(&value, id, handle, device), "cuKernelGetAttribute"));
  return value;
}

// The driver's answer is then a block of 0 threads, and no error.
[[gnu::cold]] absl::Status no_block_fits(KernelRef kernel, std::size_t shared_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "No block of kernel \"", kernel.name(), "\" fits a multiprocessor",
      shared_bytes == 0 ? "."
                        : absl::StrCat(": one of 32 threads asks for ", counted(shared_bytes, "byte"),
                                       " of dynamic shared memory. Ask for less, or, up to the device's limit, "
                                       "call set_max_shared_bytes first.")));
}

absl::StatusOr<int> suggested_block(KernelRef kernel, CUcontext context) {
  static std::mutex mutex;
  static auto& known = *new absl::flat_hash_map<std::tuple<CUfunction, CUcontext, std::uint32_t>, int>();
  CGRT_ASSIGN_OR_RETURN(const CUfunction handle, queryable(kernel));
  const std::tuple key(handle, context, driver::generation());
  const bool is_kept = kernel.identity()->library == nullptr;  // else the handle may be another kernel's one day
  if (is_kept) {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context));
  int grid = 0, block = 0;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().OccupancyMaxPotentialBlockSize(&grid, &block, handle, nullptr, 0, 0),
                        "cuOccupancyMaxPotentialBlockSize"));
  if (block == 0) return no_block_fits(kernel, 0);
  if (!is_kept) return block;
  const std::lock_guard lock(mutex);
  known.emplace(key, block);
  return block;
}

}  // namespace

const char* to_string(OccupancyLimiter limiter) {
  switch (limiter) {
    case OccupancyLimiter::kThreads: return "threads";
    case OccupancyLimiter::kBlocks: return "blocks";
    case OccupancyLimiter::kRegisters: return "registers";
    case OccupancyLimiter::kSharedMemory: return "shared memory";
  }
  return "unknown";
}

absl::StatusOr<Occupancy> occupancy(KernelRef kernel, ContextRef context, Dim3 block, std::uint32_t shared_bytes) {
  const std::uint64_t threads = block.count();
  CGRT_ASSIGN_OR_RETURN(DeviceRef device, context.device());
  CGRT_ASSIGN_OR_RETURN(CUdevice ordinal, device.get());
  CGRT_ASSIGN_OR_RETURN(const CUfunction handle, queryable(kernel));
  CGRT_ASSIGN_OR_RETURN(int max_threads, attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal));
  if (threads == 0 || threads > static_cast<std::uint64_t>(max_threads)) {
    return absl::InvalidArgumentError(absl::StrCat("A block of ", threads, " threads is outside 1 to ", max_threads,
                                                   ", the range of kernel \"", kernel.name(), "\" on device ",
                                                   device.ordinal(), "."));
  }
  if (block.z > 64) {
    return absl::InvalidArgumentError(absl::StrCat("A block of (", block.x, ", ", block.y, ", ", block.z,
                                                   ") threads exceeds (1024, 1024, 64) for kernel \"", kernel.name(),
                                                   "\"."));
  }
  CGRT_ASSIGN_OR_RETURN(int static_shared, attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, ordinal));
  CGRT_ASSIGN_OR_RETURN(int optin, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  if (std::uint64_t{shared_bytes} + static_cast<std::uint64_t>(static_shared) > static_cast<std::uint64_t>(optin)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Dynamic shared memory (", counted(shared_bytes, "byte"), ") exceeds what is left (", optin - static_shared,
        " bytes) to a block of kernel \"", kernel.name(), "\" on device ", device.ordinal(), "."));
  }

  CGRT_ASSIGN_OR_RETURN(CUcontext current_context, context.get());
  int blocks = 0;
  {
    CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(current_context));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().OccupancyMaxActiveBlocksPerMultiprocessor(
                                               &blocks, handle, static_cast<int>(threads), shared_bytes),
                                           "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
  }
  if (blocks == 0) {
    return absl::InvalidArgumentError(absl::StrCat("Not one block of ", counted(threads, "thread"), " and ",
                                                   counted(shared_bytes, "byte"),
                                                   " of dynamic shared memory of kernel \"", kernel.name(),
                                                   "\" fits a multiprocessor of device ", device.ordinal(), "."));
  }

  // The limiter is the resource with the smallest quotient; the driver's count includes allocation
  // granularity, so only which one is smallest is taken from here.
  CGRT_ASSIGN_OR_RETURN(int sm_threads, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  CGRT_ASSIGN_OR_RETURN(int sm_blocks, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
  CGRT_ASSIGN_OR_RETURN(int sm_registers, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
  CGRT_ASSIGN_OR_RETURN(int sm_shared, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  CGRT_ASSIGN_OR_RETURN(int reserved, device.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  CGRT_ASSIGN_OR_RETURN(int registers, attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS, ordinal));
  constexpr int kWarp = 32;
  const int warps = static_cast<int>((threads + kWarp - 1) / kWarp);
  const int sm_warps = sm_threads / kWarp;
  const double by_threads = static_cast<double>(sm_warps) / warps;
  const double by_registers = static_cast<double>(sm_registers) / std::max(1.0, double(registers) * warps * kWarp);
  const double by_shared =
      static_cast<double>(sm_shared) / std::max(1.0, double(static_shared) + shared_bytes + reserved);
  Occupancy result;
  result.blocks_per_sm = blocks;
  result.active_warps = blocks * warps;
  result.max_warps = sm_threads / kWarp;
  result.ratio = static_cast<double>(result.active_warps) / result.max_warps;
  double lowest = by_threads;
  const auto consider = [&](double quotient, OccupancyLimiter limiter) {
    if (quotient < lowest) {
      lowest = quotient;
      result.limiter = limiter;
    }
  };
  consider(sm_blocks, OccupancyLimiter::kBlocks);
  consider(by_registers, OccupancyLimiter::kRegisters);
  consider(by_shared, OccupancyLimiter::kSharedMemory);
  return result;
}

namespace {

// What the driver would take as an int.
absl::Status check_block(KernelRef kernel, const Dim3& block) {
  if (block.count() != 0 && block.count() <= 1024) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("A block of (", block.x, ", ", block.y, ", ", block.z,
                                                 ") threads for kernel \"", kernel.name(),
                                                 "\" is outside 1 to 1024 threads."));
}

absl::StatusOr<LaunchConfig> cover(KernelRef kernel, std::uint64_t count, int block) {
  const std::uint64_t threads = static_cast<std::uint64_t>(block);
  const std::uint64_t blocks = count / threads + (count % threads != 0 ? 1 : 0);
  if (blocks == 0 || blocks > 2147483647u) {
    return absl::InvalidArgumentError(absl::StrCat("No grid of blocks of ",
                                                   counted(static_cast<std::uint64_t>(block), "thread"), " covers ",
                                                   counted(count, "element"), " for kernel \"", kernel.name(),
                                                   "\": it would have ", blocks, " blocks, outside 1 to 2147483647."));
  }
  LaunchConfig config;
  config.grid = Dim3(static_cast<std::uint32_t>(blocks));
  config.block = Dim3(static_cast<std::uint32_t>(block));
  return config;
}

// Asks in the context about the kernel's function there.
template <class Question>
absl::Status ask(KernelRef kernel, ContextRef context, const char* call, Question question) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const CUfunction function, queryable(kernel));
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  const CUresult result = question(function);
  return result == CUDA_SUCCESS ? absl::OkStatus() : kernel_failed(result, call, kernel);
}

CUlaunchConfig driver_config(Dim3 grid, Dim3 block, std::uint32_t shared_bytes) {
  CUlaunchConfig config{};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = shared_bytes;
  return config;
}

}  // namespace

absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, ContextRef context, std::uint64_t count) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(int block, suggested_block(kernel, handle));
  return cover(kernel, count, block);
}

absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, ContextRef context, std::uint64_t count,
                                            std::size_t (*shared_bytes_of_block)(int threads)) {
  int grid = 0, block = 0;
  CGRT_RETURN_IF_ERROR(ask(kernel, context, "cuOccupancyMaxPotentialBlockSize", [&](CUfunction function) {
    return driver::api().OccupancyMaxPotentialBlockSize(&grid, &block, function, shared_bytes_of_block, 0, 0);
  }));
  if (block == 0) return no_block_fits(kernel, shared_bytes_of_block(32));
  const std::size_t shared_bytes = shared_bytes_of_block(block);
  // The driver takes the low 32 bits alone (driver 580).
  if (shared_bytes > std::numeric_limits<std::uint32_t>::max()) return no_block_fits(kernel, shared_bytes_of_block(32));
  CGRT_ASSIGN_OR_RETURN(LaunchConfig config, cover(kernel, count, block));
  config.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  return config;
}

absl::StatusOr<std::size_t> available_shared_bytes(KernelRef kernel, ContextRef context, Dim3 block,
                                                   int blocks_per_sm) {
  CGRT_RETURN_IF_ERROR(check_block(kernel, block));
  std::size_t bytes = 0;
  CGRT_RETURN_IF_ERROR(ask(kernel, context, "cuOccupancyAvailableDynamicSMemPerBlock", [&](CUfunction function) {
    return driver::api().OccupancyAvailableDynamicSMemPerBlock(&bytes, function, blocks_per_sm,
                                                               static_cast<int>(block.count()));
  }));
  return bytes;
}

absl::StatusOr<int> max_cluster_size(KernelRef kernel, ContextRef context, Dim3 block, std::uint32_t shared_bytes) {
  CGRT_RETURN_IF_ERROR(check_block(kernel, block));
  int size = 0;
  const CUlaunchConfig config = driver_config(Dim3(64), block, shared_bytes);
  CGRT_RETURN_IF_ERROR(ask(kernel, context, "cuOccupancyMaxPotentialClusterSize", [&](CUfunction function) {
    return driver::api().OccupancyMaxPotentialClusterSize(&size, function, &config);
  }));
  return size;
}

absl::StatusOr<int> max_active_clusters(KernelRef kernel, ContextRef context, Dim3 cluster, Dim3 block,
                                        std::uint32_t shared_bytes) {
  CGRT_RETURN_IF_ERROR(check_block(kernel, block));
  int clusters = 0;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {cluster.x, cluster.y, cluster.z};
  CUlaunchConfig config = driver_config(cluster, block, shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CGRT_RETURN_IF_ERROR(ask(kernel, context, "cuOccupancyMaxActiveClusters", [&](CUfunction function) {
    return driver::api().OccupancyMaxActiveClusters(&clusters, function, &config);
  }));
  return clusters;
}

absl::StatusOr<int> max_cooperative_blocks(KernelRef kernel, ContextRef context, Dim3 block,
                                           std::uint32_t shared_bytes) {
  CGRT_ASSIGN_OR_RETURN(Occupancy per_sm, occupancy(kernel, context, block, shared_bytes));
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  CUdevResource multiprocessors{};  // a green context has some of the device's
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().CtxGetDevResource(handle, &multiprocessors, CU_DEV_RESOURCE_TYPE_SM), "cuCtxGetDevResource"));
  return per_sm.blocks_per_sm * static_cast<int>(multiprocessors.sm.smCount);
}

absl::Status preload(KernelRef kernel, ContextRef context) {
  CGRT_ASSIGN_OR_RETURN(CUcontext handle, context.get());
  const driver::ResolvedFunction* resolved = nullptr;
  const CUresult found = driver::resolve_function(*kernel.identity(), handle, &resolved);
  if (found != CUDA_SUCCESS) return kernel_failed(found, "cuKernelGetFunction", kernel);
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(handle));
  const CUresult loaded = driver::api().FuncLoad(resolved->function);
  return loaded == CUDA_SUCCESS ? absl::OkStatus() : kernel_failed(loaded, "cuFuncLoad", kernel);
}

absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, LaunchTarget target, std::uint64_t count) {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, target.context());
  return suggest_config(kernel, ContextRef(context), count);
}

absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, LaunchTarget target, std::uint64_t count,
                                            std::size_t (*shared_bytes_of_block)(int threads)) {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, target.context());
  return suggest_config(kernel, ContextRef(context), count, shared_bytes_of_block);
}

absl::Status set_max_shared_bytes(KernelRef kernel, DeviceRef device, std::uint32_t shared_bytes) {
  CGRT_ASSIGN_OR_RETURN(CUdevice ordinal, device.get());
  CGRT_ASSIGN_OR_RETURN(CUkernel handle, resolve(kernel));
  const CUresult result = driver::api().KernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                           static_cast<int>(shared_bytes), handle, ordinal);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(int optin, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return driver::annotate(
      driver::to_status(result, "cuKernelSetAttribute"),
      absl::StrCat("Dynamic shared memory of ", counted(shared_bytes, "byte"), " for kernel \"", kernel.name(),
                   "\" on device ", device.ordinal(), ", whose blocks have at most ", optin));
}

absl::Status allow_large_clusters(KernelRef kernel, DeviceRef device) {
  CGRT_ASSIGN_OR_RETURN(CUdevice ordinal, device.get());
  CGRT_ASSIGN_OR_RETURN(CUkernel handle, resolve(kernel));
  const CUresult result =
      driver::api().KernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, handle, ordinal);
  return result == CUDA_SUCCESS ? absl::OkStatus() : kernel_failed(result, "cuKernelSetAttribute", kernel);
}

}  // namespace cgrt
