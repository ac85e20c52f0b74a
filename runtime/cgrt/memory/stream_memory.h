// Stream-ordered memory: allocated and freed in the order of a stream's work, or by nodes of a graph.
//
//   CGRT_ASSIGN_OR_RETURN(void* const scratch, allocate_async(target, bytes));
//   CGRT_RETURN_IF_ERROR(launch(target, config, kernel, static_cast<float*>(scratch), x, 2.0f, n));
//   CGRT_RETURN_IF_ERROR(free_async(target, scratch));
//
// In a stream the memory comes from the device's default pool. In a capture and in a graph being built the calls make
// allocation and free nodes: the address is the graph's, the same at every launch, and there is memory behind it from
// the one node to the other. Memory that a graph does not free itself stays after its launch, for work behind it, and
// is freed by free_async in a stream, by another graph, or by the next launch of an executable with
// InstantiateFlags::kAutoFreeOnLaunch. Where a launch finds memory of the one before that nobody has freed, it is
// kInvalidArgument.
//
// What CUDA does not do with a graph that allocates or frees, each refused with the node's name: a second executable
// while there is one, a clone, a copy of it as a child graph (moved in it may be), nodes or edges that are removed,
// such nodes in the body of a conditional node. In an executable that is rebound (GraphExec::rebind) the calls answer
// with the address that they have and change nothing: other sizes and addresses are kFailedPrecondition.
//
// Asynchronous; thread-safe in streams, a cursor is used by one thread at a time.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// Aligned to at least 256 bytes; for work of the target behind this call, and until a free. kInvalidArgument for 0
// bytes, kResourceExhausted when the device has too little: a graph says so when it is launched.
absl::StatusOr<void*> allocate_async(LaunchTarget target, std::size_t bytes);

// `address` is one of allocate_async or cudaMallocAsync. kInvalidArgument for another one; and in a graph, for one that
// it frees already.
absl::Status free_async(LaunchTarget target, void* address);

namespace internal {
absl::Status explain_free(const absl::Status& failure, const void* address);  // for graph/ too
}

}  // namespace cgrt
