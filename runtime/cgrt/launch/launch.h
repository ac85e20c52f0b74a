// launch: one call site for every target.
//
//   const LaunchConfig config{.grid = 64, .block = 256};
//   CGRT_RETURN_IF_ERROR(launch(stream, config, kernel, out, in, 2.0f, n));   // eager, or captured
//   CGRT_RETURN_IF_ERROR(launch(cursor, config, kernel, out, in, 2.0f, n));   // explicit node
//
// Arguments are converted to the kernel's parameter types here and copied before the call returns.
// Asynchronous. Thread-safe in streams; a cursor is used by one thread at a time.
// Errors name the kernel, the grid, the block and the shared memory: see docs/errors.md. kUnimplemented: the program
// has no code for the device. A launch that is refused in a stream that is being captured ends that capture: CUDA's
// rule.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "cgrt/launch/kernel.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

struct LaunchConfig {
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory per block
  LaunchAttributes attributes = {};
};

namespace internal {

inline KernelLaunch kernel_launch(const LaunchConfig& config, const driver::KernelIdentity* kernel, void** arguments) {
  return {kernel,       config.grid,
          config.block, config.shared_bytes,
          arguments,    config.attributes.is_default() ? nullptr : &config.attributes};
}

std::string to_text(const Dim3& dim);  // "(1, 2, 3)", for messages

}  // namespace internal

// The launch behind the template, for arguments that are packed already. They are copied before the call returns.
absl::Status launch(LaunchTarget target, const KernelLaunch& launch);

template <class... Args>
absl::Status launch(LaunchTarget target, const LaunchConfig& config, Kernel<Args...> kernel,
                    std::type_identity_t<Args>... arguments) {
  void* packed[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  return launch(target, internal::kernel_launch(config, kernel.identity(), packed));
}

// `status` of a failed launch or node, with the kernel and its configuration in front. When the device of
// `context` (null: not known) cannot run that configuration, says which limit it breaks; kInvalidArgument when no
// device could.
absl::Status explain_launch(const absl::Status& status, const KernelLaunch& launch, CUcontext context);

}  // namespace cgrt
