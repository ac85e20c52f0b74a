// Rows as doubles, for host bodies.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/pack.cuh"

namespace cgrt::kernels {

// Empty for a null array.
template <class T>
std::vector<double> read_row(const void* from, std::uint64_t row, std::uint32_t columns) {
  std::vector<double> values(from != nullptr ? columns : 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(to_float(static_cast<const T*>(from)[row * columns + i]));
  }
  return values;
}
template <class T>
void write_row(void* to, std::uint64_t row, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    static_cast<T*>(to)[row * values.size() + i] = from_float<T>(static_cast<float>(values[i]));
  }
}

// Of a kernel whose successor does all of it on the host.
template <class Params>
void nothing_on_host(HostGrid, Params) {}

}  // namespace cgrt::kernels
