#include "bench_kernels.h"

#include "cgrt/graph/set_conditional.cuh"

namespace graphbench {
namespace {

__global__ void count_down(CUgraphConditionalHandle again, unsigned* left) {
  *left -= 1;
  cgrt::set_conditional(again, *left != 0);
}

__global__ void show_count(unsigned* left, volatile unsigned* shown) {
  *left -= 1;
  *shown = *left;
}

__global__ void four_pointers(float* out, const float* a, const float* b, const float* c) {
  if (threadIdx.x == 0) *out = *a + *b + *c;
}

void count_down_on_host(cgrt::HostGrid, CUgraphConditionalHandle again, unsigned* left) {
  *left -= 1;
  cgrt::set_conditional(again, *left != 0);
}

void show_count_on_host(cgrt::HostGrid, unsigned* left, volatile unsigned* shown) {
  *left -= 1;
  *shown = *left;
}

void four_pointers_on_host(cgrt::HostGrid, float* out, const float* a, const float* b, const float* c) {
  *out = *a + *b + *c;
}

}  // namespace
}  // namespace graphbench

template <>
inline constexpr auto cgrt::host_body<graphbench::count_down> = cgrt::HostBody(graphbench::count_down_on_host, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::show_count> = cgrt::HostBody(graphbench::show_count_on_host, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::four_pointers> = cgrt::HostBody(graphbench::four_pointers_on_host,
                                                                                  {});

namespace graphbench {

cgrt::Kernel<CUgraphConditionalHandle, unsigned*> count_down_kernel() { return cgrt::make_kernel<count_down>(); }
cgrt::Kernel<unsigned*, volatile unsigned*> show_count_kernel() { return cgrt::make_kernel<show_count>(); }
cgrt::Kernel<float*, const float*, const float*, const float*> four_pointers_kernel() {
  return cgrt::make_kernel<four_pointers>();
}

}  // namespace graphbench
