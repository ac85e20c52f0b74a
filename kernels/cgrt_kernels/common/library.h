// A call of a library that takes a stream, as one operation on any target.
//
//   const auto call = [&](CUstream s) { return sort_with_a_library(s, keys, n); };   // an absl::Status
//   CGRT_RETURN_IF_ERROR(launch_library(stream.ref(), call));
//
// In a stream, captured or not, it is that call. In a graph being built the call is captured on a stream
// of its own and becomes one child graph node, with full edges, which the cursor's next node waits for. In an
// executable that is rebound it is captured as well, and compared node by node. The context in which the target's work
// runs is current during the call.
//
// A call that says by a key what it is runs once for an executable: rebound again with the same key, it is not captured
// again. The executable keeps what it captured, of up to 256 keys.
//
// On the simulator, where no library runs, callers launch_host what the call means instead.
#pragma once

#include <cuda.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cgrt/target/launch_target.h"

namespace cgrt::kernels {

// `call` runs at most once, on this thread, before launch_library returns. It only puts work into the stream: no
// allocation, no synchronization. Its failure is the answer, and a graph is then as it was. Thread-safe as the target
// is. `key`: all that the work depends on, addresses included, so that calls with equal keys put the same work into the
// stream. Empty: unknown.
absl::Status launch_library(LaunchTarget target, absl::FunctionRef<absl::Status(CUstream)> call, CallKey key = {});

}  // namespace cgrt::kernels
