// A kernel template that two translation units instantiate.
#pragma once

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

template <class T>
__global__ void shift(T* out, const T* in, T offset, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] + offset;
}

template <class T>
void shift_on_host(HostGrid, T* out, const T* in, T offset, int count) {
  for (int i = 0; i < count; ++i) out[i] = in[i] + offset;
}

}  // namespace cgrt::testing

template <>
inline constexpr auto cgrt::host_body<cgrt::testing::shift<float>> = cgrt::HostBody(cgrt::testing::shift_on_host<float>,
                                                                                    {.registers = 10});
