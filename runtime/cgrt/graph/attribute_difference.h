// Launch attributes of a node and of a launch that it is to be set to: where they differ, nothing can be set. Internal
// to graph/ and exec/.
#pragma once

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "cgrt/target/launch_attributes.h"
#include "cgrt/target/launch_target.h"

namespace cgrt::internal {

// The first attribute in which both differ: "cluster", "(2, 1, 1)", "(4, 1, 1)".
struct AttributeDifference {
  const char* name;
  std::string was, wanted;
};
AttributeDifference first_difference(const LaunchAttributes& was, const LaunchAttributes& wanted);

// set_params of an executable, with other attributes than the node's.
absl::Status attributes_differ(const std::string& kernel, const LaunchAttributes& was, const LaunchAttributes& wanted);

enum class NodeOwner { kExecutable, kDefinition };
// Whether `launch` has the attributes of a node, `was`; a priority of 0 is the node's, whatever that is.
absl::Status check_attributes(const LaunchAttributes& was, const KernelLaunch& launch, const Dim3& compiled_cluster,
                              CUcontext context, NodeOwner owner);

}  // namespace cgrt::internal
