// Kernels that end a context. Plain.
#pragma once

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

Kernel<> trap_kernel();
Kernel<int> assert_kernel();  // asserts that its argument is not 0

}  // namespace cgrt::testing
