// From what a plan knows to the instance of a kernel: one place for types, alignment, and a row's elements on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/pack.cuh"
#include "cgrt_kernels/common/row/group.cuh"
#include "cgrt_kernels/common/row/shape.h"

namespace cgrt::kernels {

// get<T, kAlignment>() of a float type; plans let no other pass.
template <class Get>
auto of_float_type(DType type, Alignment alignment, Get get) {
  const auto of_alignment = [=]<class T>() {
    return alignment == Alignment::kAligned ? get.template operator()<T, Alignment::kAligned>()
                                            : get.template operator()<T, Alignment::kUnaligned>();
  };
  switch (type) {
    case DType::kFloat32: return of_alignment.template operator()<float>();
    case DType::kFloat16: return of_alignment.template operator()<__half>();
    default: return of_alignment.template operator()<__nv_bfloat16>();
  }
}

// The run of a row's columns that a block works on, in registers: shares of whole packs.
struct RowRun {
  std::uint32_t begin, count;
  __device__ __forceinline__ RowRun(std::uint32_t columns, std::uint32_t blocks, std::uint32_t block,
                                    std::uint32_t pack) {
    const std::uint32_t share = ((columns + blocks - 1) / blocks + pack - 1) / pack * pack;
    begin = min(block * share, columns), count = min(share, columns - begin);
  }
};

// Of host bodies: a row as doubles.
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

}  // namespace cgrt::kernels
