// Compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM, as nvcc --default-stream per-thread does.
#include "support/default_stream.h"

namespace cgrt::testing {

LaunchTarget zero_of_a_per_thread_file() {
  const CUstream zero = nullptr;
  return LaunchTarget(zero);
}

}  // namespace cgrt::testing
