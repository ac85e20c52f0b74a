#include "loop_kernels.h"

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

void count_down_on_host(cgrt::HostGrid, CUgraphConditionalHandle again, unsigned* left) {
  *left -= 1;
  cgrt::set_conditional(again, *left != 0);
}

void show_count_on_host(cgrt::HostGrid, unsigned* left, volatile unsigned* shown) {
  *left -= 1;
  *shown = *left;
}

}  // namespace
}  // namespace graphbench

template <>
inline constexpr auto cgrt::host_body<graphbench::count_down> = cgrt::HostBody(graphbench::count_down_on_host, {});
template <>
inline constexpr auto cgrt::host_body<graphbench::show_count> = cgrt::HostBody(graphbench::show_count_on_host, {});

namespace graphbench {

cgrt::Kernel<CUgraphConditionalHandle, unsigned*> count_down_kernel() { return cgrt::make_kernel<count_down>(); }
cgrt::Kernel<unsigned*, volatile unsigned*> show_count_kernel() { return cgrt::make_kernel<show_count>(); }

}  // namespace graphbench
