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

template <int kVariant>
__global__ void variant(float* out, const float* in) {
  if (threadIdx.x == 0) *out = *in + kVariant;
}

template <int kVariant>
void variant_on_host(cgrt::HostGrid, float* out, const float* in) {
  *out = *in + kVariant;
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
template <>
inline constexpr auto cgrt::host_body<graphbench::variant<0>> = cgrt::HostBody(graphbench::variant_on_host<0>, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::variant<1>> = cgrt::HostBody(graphbench::variant_on_host<1>, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::variant<2>> = cgrt::HostBody(graphbench::variant_on_host<2>, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::variant<3>> = cgrt::HostBody(graphbench::variant_on_host<3>, {});

namespace graphbench {

cgrt::Kernel<float*, const float*> variant_kernel(int number) {
  switch (number) {
    case 0: return cgrt::make_kernel<variant<0>>();
    case 1: return cgrt::make_kernel<variant<1>>();
    case 2: return cgrt::make_kernel<variant<2>>();
    default: return cgrt::make_kernel<variant<3>>();
  }
}

cgrt::Kernel<CUgraphConditionalHandle, unsigned*> count_down_kernel() { return cgrt::make_kernel<count_down>(); }
cgrt::Kernel<unsigned*, volatile unsigned*> show_count_kernel() { return cgrt::make_kernel<show_count>(); }
cgrt::Kernel<float*, const float*, const float*, const float*> four_pointers_kernel() {
  return cgrt::make_kernel<four_pointers>();
}

}  // namespace graphbench
