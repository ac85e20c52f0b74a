// The kernels that are measured upon, but for the one of Setup. Plain.
#pragma once

#include <cuda.h>

#include "cgrt/launch/kernel.h"

namespace graphbench {

// *out = *a + *b + *c, by one thread.
cgrt::Kernel<float*, const float*, const float*, const float*> four_pointers_kernel();

// *out = *in + variant, by one thread; a kernel for each variant from 0 to 3.
cgrt::Kernel<float*, const float*> variant_kernel(int variant);

// The ends of loops. Takes one from `left`; the while node goes on while there are some.
cgrt::Kernel<CUgraphConditionalHandle, unsigned*> count_down_kernel();
// The same for the host, which reads `shown`.
cgrt::Kernel<unsigned*, volatile unsigned*> show_count_kernel();

}  // namespace graphbench
