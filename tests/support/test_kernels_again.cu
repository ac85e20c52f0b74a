#include "support/shift_template.cuh"
#include "support/test_kernels.h"

namespace cgrt::testing {

Kernel<float*, const float*, float, int> shift_kernel_of_another_file() { return make_kernel<shift<float>>(); }

}  // namespace cgrt::testing
