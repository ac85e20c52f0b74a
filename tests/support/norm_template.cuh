// A kernel template over an enumeration that two translation units instantiate.
#pragma once

#include "support/named_kernels.h"

namespace cgrt::testing {

template <Op kOp>
__global__ void norm() {}

}  // namespace cgrt::testing
