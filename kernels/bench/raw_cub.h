// CUB called as its documentation does, for what cgrt::cub and cgrt's own kernels are measured against.
// Plain: no Abseil.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace cgrt::bench {

// False when the call failed.
bool raw_cub_scan(void* workspace, std::size_t bytes, const float* in, float* out, int count, CUstream stream);
bool raw_cub_mul(const float* a, const float* b, float* out, int count, CUstream stream);

struct RawSort {
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  const std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;
  const std::uint32_t* values_in = nullptr;  // null: keys alone
  std::uint32_t* values_out = nullptr;
  int count = 0, end_bit = 0;
};
bool raw_cub_sort(const RawSort& sort, CUstream stream);

// These take a null workspace to ask for `bytes`.
bool raw_cub_select(void* workspace, std::size_t& bytes, const float* in, const std::uint8_t* flags, float* out,
                    std::int64_t* selected, std::int64_t count, CUstream stream);
bool raw_cub_histogram(void* workspace, std::size_t& bytes, const float* in, std::int32_t* counts, int bins,
                       float lower, float upper, std::int64_t count, CUstream stream);

}  // namespace cgrt::bench
