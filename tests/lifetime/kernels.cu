#undef NDEBUG
#include "lifetime/kernels.h"

#include <cassert>

namespace cgrt::testing {
namespace {

__global__ void trap() { asm("trap;"); }
__global__ void check(int value) { assert(value != 0); }

}  // namespace

Kernel<> trap_kernel() { return make_kernel<trap>(); }
Kernel<int> assert_kernel() { return make_kernel<check>(); }

}  // namespace cgrt::testing
