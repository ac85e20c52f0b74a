// GraphPool: device memory at fixed addresses for what graphs use inside, shared by several of them.
//
//   CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(DeviceRef(0), 64 << 20));
//   const auto step = [&](LaunchTarget target) -> absl::Status {
//     CGRT_ASSIGN_OR_RETURN(void* const scratch, pool.allocate(target, n * sizeof(float)));
//     float* const values = static_cast<float*>(scratch);
//     CGRT_RETURN_IF_ERROR(launch(target, config, kernel, values, x, 2.0f, n));
//     CGRT_RETURN_IF_ERROR(launch(target, config, kernel, y, values, 3.0f, n));
//     return pool.free(scratch);
//   };
//   CGRT_ASSIGN_OR_RETURN(Graph first, capture(stream, step));
//   CGRT_ASSIGN_OR_RETURN(Graph second, capture(stream, step));   // has the same scratch
//
// It takes large chunks from the device and gives out parts of them, first fit. A block that was freed is given out
// again to whoever allocates next, in whatever graph or stream: what uses it then must run after what used it before.
// So branches that run beside each other free their blocks after they have been joined, and graphs that share a pool,
// and with it freed blocks, must not run beside each other.
//
// A chunk goes back to the device when the pool is gone, and every graph, executable and launch in flight that has
// allocated from it: the graph of the target keeps it, as with Graph::keep. What was allocated for an eager stream is
// kept by the pool alone.
//
// allocate and free are thread-safe, and end no capture of whatever mode. A GraphPool must not be moved or destroyed
// beside other calls on it.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/context.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

class GraphPool {
 public:
  GraphPool() = default;  // empty, as when moved from: every call is kFailedPrecondition
  // Takes nothing from the device yet. Chunks have `chunk_bytes`, or as much as a larger block needs.
  static absl::StatusOr<GraphPool> create(ContextRef context, std::size_t chunk_bytes);

  // At least `size_bytes`, aligned to 256 bytes, with undefined contents; null for 0 bytes. Blocks when it needs
  // another chunk, as cuMemAlloc does. kResourceExhausted when the device has too little for one.
  absl::StatusOr<void*> allocate(LaunchTarget target, std::size_t size_bytes);

  // Makes no CUDA call, and waits while another thread's allocate gets a chunk; returns nothing to the device. Nothing
  // happens for null. kInvalidArgument for an address that is not that of a block in use.
  absl::Status free(void* block);

  std::size_t used_bytes() const;      // of blocks in use, each a multiple of 256
  std::size_t reserved_bytes() const;  // of all chunks

 private:
  struct Memory;
  absl::Status keep_for(LaunchTarget target);
  std::shared_ptr<Memory> memory_;
};

}  // namespace cgrt
