// launch_host: calls a function of the host in the order of a stream or a graph.
//
//   CGRT_RETURN_IF_ERROR(launch_host(stream.ref(), [&] { ++batches; }));   // once
//   CGRT_RETURN_IF_ERROR(launch_host(cursor, [&] { ++batches; }));         // a node: at every launch
//
// The function runs on a thread of the driver's when the work before it is done; later work waits for
// it. It must not call CUDA, this library's CUDA calls included. Asynchronous; thread-safe in streams. kInvalidArgument
// for a null or empty function.
#pragma once

#include <cuda.h>

#include <functional>

#include "absl/status/status.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

// `data` must stay valid until the last call has returned: in a graph, the end of its last launch.
// One driver call.
absl::Status launch_host(LaunchTarget target, CUhostFn function, void* data);

// Owns `function`. After it has returned (eager), or after the graph and its last launch are gone (captured and
// explicit), a later collect_released destroys it, on the thread that makes it; the next eager launch_host does so with
// those that have returned. It may hold buffers and graphs: the destructor of a DeviceBuffer waits for the device. An
// exception that leaves it is logged and goes no further. A stream is asked whether it captures: two driver calls when
// it does not, four when it does.
absl::Status launch_host(LaunchTarget target, std::function<void()> function);

}  // namespace cgrt
