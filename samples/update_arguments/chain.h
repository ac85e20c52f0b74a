// What update_arguments and update_arguments_raw both run: a chain of small kernels on one buffer, which is another one
// at every step; and how a way to do that is measured.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

constexpr int kKernels = 1000;
constexpr int kBuffers = 4;
constexpr int kCount = 4096;  // floats in a buffer
constexpr int kBlock = 256;
constexpr int kGrid = kCount / kBlock;
constexpr int kSteps = 40;       // of a way, of which the first
constexpr int kWarmUpSteps = 8;  // are not timed

__global__ inline void add_one(float* x, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) x[i] += 1;
}

// Microseconds from the begin of a step: until the host has launched it, and until it has ended.
struct StepTimes {
  std::vector<double> launched, done;
};

inline double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

inline void print(const char* way, const StepTimes& times) {
  std::printf("%-36s %8.0f us until launched, %8.0f us until done\n", way, median(times.launched), median(times.done));
}
