// CUB called as its documentation does, for what cgrt::cub is measured against. Plain: no Abseil.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace cgrt::bench {

// False when the call failed.
bool raw_cub_scan(void* workspace, std::size_t bytes, const float* in, float* out, int count, CUstream stream);
bool raw_cub_sort(void* workspace, std::size_t bytes, const std::uint32_t* in, std::uint32_t* out, int count,
                  int end_bit, CUstream stream);
bool raw_cub_mul(const float* a, const float* b, float* out, int count, CUstream stream);

}  // namespace cgrt::bench
