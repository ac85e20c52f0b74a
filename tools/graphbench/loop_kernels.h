// The kernels that end loop.h's loops. Plain.
#pragma once

#include <cuda.h>

#include "cgrt/launch/kernel.h"

namespace graphbench {

// Takes one from `left`; the while node goes on while there are some.
cgrt::Kernel<CUgraphConditionalHandle, unsigned*> count_down_kernel();
// The same for the host, which reads `shown`.
cgrt::Kernel<unsigned*, volatile unsigned*> show_count_kernel();

}  // namespace graphbench
