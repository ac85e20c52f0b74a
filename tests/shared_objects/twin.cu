// Built into two shared objects, each with a copy of this library, of the CUDA runtime, and of a kernel
// template's instance with the same name.
#include "cgrt/launch/kernel.h"
#include "shared_objects/twin.h"

namespace {

template <class T>
__global__ void twin(T* out) {
  *out = static_cast<T>(TWIN);
}

}  // namespace

cgrt::Kernel<int*> twin_kernel() { return cgrt::make_kernel<twin<int>>(); }
