#include "support/norm_template.cuh"

namespace cgrt::testing {

Kernel<> no_rtti_kernel() { return make_kernel<norm<Op::kNone>>(); }

}  // namespace cgrt::testing
