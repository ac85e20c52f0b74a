// smooth: each element becomes a third of the sum of itself and its two neighbours. A block brings its
// elements into shared memory first, kPerThread of them for each of its threads, so that shared memory
// is what limits how many blocks fit a multiprocessor.
#pragma once

#include <cgrt/launch/kernel.h>

#include <cstddef>

constexpr int kPerThread = 32;  // elements

// Dynamic shared memory of a block of that many threads: for the launch, and for suggest_config.
inline std::size_t shared_bytes_of_block(int threads) {
  return static_cast<std::size_t>(threads) * kPerThread * sizeof(float);
}

// What one element becomes. In one order of additions, so that the bits are the same everywhere.
__host__ __device__ constexpr float smoothed(float left, float middle, float right) {
  return (left + middle + right) * (1.0f / 3.0f);
}

cgrt::Kernel<float*, const float*, int> smooth_kernel();  // (out, in, count), count a multiple of kPerThread
