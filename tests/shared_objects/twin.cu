// Built into two shared objects, each with a CUDA runtime of its own and an instance of one kernel
// template with the same name.
#include "cgrt/launch/kernel.h"

namespace {

template <class T>
__global__ void twin(T* out) {
  *out = static_cast<T>(TWIN);
}
void twin_on_host(cgrt::HostGrid, int* out) { *out = TWIN; }

}  // namespace

template <>
inline constexpr auto cgrt::host_body<twin<int>> = cgrt::HostBody(twin_on_host);

extern "C" const void* twin_kernel() { return cgrt::make_kernel<twin<int>>().identity(); }
