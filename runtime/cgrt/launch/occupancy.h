// Occupancy: how much of a multiprocessor a launch can fill, what limits it, and the launch
// configuration that follows.
//
//   CGRT_ASSIGN_OR_RETURN(LaunchConfig config, suggest_config(kernel, DeviceRef(0), count));
//   CGRT_ASSIGN_OR_RETURN(Occupancy o, occupancy(kernel, DeviceRef(0), config.block, 0));
//   // o.ratio, o.limiter
//
// The answers are the driver's. Suggested block sizes are kept per kernel of the program and context after the
// first question.
// `shared_bytes` is dynamic shared memory of a block. Thread-safe. Never launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/launch/kernel.h"
#include "cgrt/launch/launch.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// What ends first when one more block is put on a multiprocessor.
enum class OccupancyLimiter { kThreads, kBlocks, kRegisters, kSharedMemory };
const char* to_string(OccupancyLimiter limiter);  // "threads", "blocks", "registers", "shared memory"

struct Occupancy {
  int blocks_per_sm = 0;
  int active_warps = 0;  // blocks_per_sm times the warps of a block
  int max_warps = 0;     // of a multiprocessor
  double ratio = 0;      // active_warps / max_warps
  OccupancyLimiter limiter = OccupancyLimiter::kThreads;
};

// kInvalidArgument, with the limit, when not even one block of that shape fits.
absl::StatusOr<Occupancy> occupancy(KernelRef kernel, ContextRef context, Dim3 block, std::uint32_t shared_bytes);

// One thread per element, in blocks of the size that fills a multiprocessor best. A grid for
// `count` elements; kInvalidArgument for 0 or more than 2^31 - 1 blocks' worth of them.
absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, ContextRef context, std::uint64_t count);

// The same for the context in which the target's work runs.
absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, LaunchTarget target, std::uint64_t count);

// The same where a block's dynamic shared memory depends on its size: `shared_bytes_of_block` maps
// threads to bytes, and the answer has those of the block chosen. Where they may exceed 48 KiB, call
// set_max_shared_bytes first. Not kept: the driver is asked each time.
absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, ContextRef context, std::uint64_t count,
                                            std::size_t (*shared_bytes_of_block)(int threads));
absl::StatusOr<LaunchConfig> suggest_config(KernelRef kernel, LaunchTarget target, std::uint64_t count,
                                            std::size_t (*shared_bytes_of_block)(int threads));

// Bytes of dynamic shared memory that each block may use while `blocks_per_sm` of them fit a multiprocessor.
// kInvalidArgument when that many do not fit even without any.
absl::StatusOr<std::size_t> available_shared_bytes(KernelRef kernel, ContextRef context, Dim3 block, int blocks_per_sm);

// Blocks in the largest cluster that the device can run (8 where CUDA promises no more).
absl::StatusOr<int> max_cluster_size(KernelRef kernel, ContextRef context, Dim3 block, std::uint32_t shared_bytes);

// Clusters of `cluster` blocks, of `block` threads each, that run at once on the whole device.
absl::StatusOr<int> max_active_clusters(KernelRef kernel, ContextRef context, Dim3 cluster, Dim3 block,
                                        std::uint32_t shared_bytes);

// Max blocks of a cooperative launch: those that run at once in the context, which may have only a part of the device.
absl::StatusOr<int> max_cooperative_blocks(KernelRef kernel, ContextRef context, Dim3 block,
                                           std::uint32_t shared_bytes);

// Loads the kernel into the context now, instead of at its first launch or node, which may be inside
// a capture. Blocks while it loads; nothing when it is loaded already.
absl::Status preload(KernelRef kernel, ContextRef context);

// Allows launches of `kernel` on `device` to ask for that much dynamic shared memory (the default
// limit is 48 KiB). One limit for all contexts and users of the kernel on that device: a later call may lower it.
// kInvalidArgument, with the device's limit, when it has less.
absl::Status set_max_shared_bytes(KernelRef kernel, DeviceRef device, std::uint32_t shared_bytes);

// Allows launches of `kernel` on `device` to ask for clusters of more than 8 blocks, which CUDA promises on no device:
// up to max_cluster_size afterwards, 16 on an H200. For all contexts and users of the kernel on that device, for good.
absl::Status allow_large_clusters(KernelRef kernel, DeviceRef device);

}  // namespace cgrt
