#include "kernels/own_maps.h"

#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::testing {

using kernels::map_kernel;
using kernels::MapKernel;

MapKernel<Clamp, __half, __half> clamp_kernel() { return map_kernel<Clamp, __half, __half>(); }
MapKernel<MulAdd, float, __half, float, __nv_bfloat16> mul_add_kernel() {
  return map_kernel<MulAdd, float, __half, float, __nv_bfloat16>();
}
MapKernel<Negate, __half, __half> negate_kernel() { return map_kernel<Negate, __half, __half>(); }
MapKernel<SumOfFour, float, float, float, float, float> sum_of_four_kernel() {
  return map_kernel<SumOfFour, float, float, float, float, float>();
}
MapKernel<Dequantize, float, std::int8_t> dequantize_kernel() { return map_kernel<Dequantize, float, std::int8_t>(); }
MapKernel<Flip, std::int8_t, std::int8_t> flip_kernel() { return map_kernel<Flip, std::int8_t, std::int8_t>(); }
MapKernel<ReverseBits, std::uint32_t, std::uint32_t> reverse_bits_kernel() {
  return map_kernel<ReverseBits, std::uint32_t, std::uint32_t>();
}

}  // namespace cgrt::testing
