// What fork_join and fork_join_raw both run: several chains of small kernels, which do not wait for each other and each
// leave most of a GPU idle, and a sum that waits for all of them. Device code, and the same for the host.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

constexpr int kBranches = 4;
constexpr int kKernels = 8;   // in each branch
constexpr int kCount = 2048;  // elements of each branch
constexpr int kRounds = 256;  // in each kernel
constexpr int kBlock = 256, kGrid = kCount / kBlock;

// Whole numbers, so that a device and a host come to the same.
__host__ __device__ inline unsigned turned(unsigned value) {
  for (int round = 0; round < kRounds; ++round) value = value * 1664525u + 1013904223u;
  return value;
}
__host__ __device__ inline unsigned first_value(int branch, int i) {
  return static_cast<unsigned>(branch * kCount + i);
}

__global__ inline void start(unsigned* values, int branch) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = first_value(branch, i);
}
__global__ inline void turn(unsigned* values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = turned(values[i]);
}
__global__ inline void sum(unsigned* out, const unsigned* values) {  // `values`: of all branches, one after the other
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned total = 0;
  for (int branch = 0; branch < kBranches; ++branch) total += values[branch * kCount + i];
  out[i] = total;
}

inline std::vector<unsigned> expected_sum() {
  std::vector<unsigned> sums(kCount, 0);
  for (int branch = 0; branch < kBranches; ++branch) {
    for (int i = 0; i < kCount; ++i) {
      unsigned value = first_value(branch, i);
      for (int kernel = 0; kernel < kKernels; ++kernel) value = turned(value);
      sums[static_cast<std::size_t>(i)] += value;
    }
  }
  return sums;
}

// Microseconds a launch, the median of several rows of launches.
template <class Launch, class Synchronize>
double time_of(const Launch& launch, const Synchronize& synchronize) {
  constexpr int kRows = 9, kLaunches = 50;
  std::vector<double> rows;
  for (int row = 0; row <= kRows; ++row) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    synchronize();
    const double time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (row != 0) rows.push_back(time / kLaunches);  // the first is not counted
  }
  std::sort(rows.begin(), rows.end());
  return rows[rows.size() / 2];
}
