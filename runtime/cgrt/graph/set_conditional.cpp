#include "cgrt/driver/api.h"

namespace cgrt::internal {

// Declared in graph/set_conditional.cuh, which is for files that nvcc compiles.
void set_conditional_on_host(unsigned long long handle, unsigned value) { driver::api().SetConditional(handle, value); }

}  // namespace cgrt::internal
