// What while_loop and while_loop_raw both run: Jacobi's method for the potential between walls, on a square of points
// whose edge does not change, until no point changes by more than a tolerance. Device code, and the same for the host.
#pragma once

#include <cuda_runtime.h>

#include <vector>

constexpr int kSide = 128;
constexpr int kPoints = kSide * kSide;
constexpr float kTolerance = 1e-5f;
constexpr int kSweepsPerTest = 2;

// One wall at 1, the others at 0.
inline std::vector<float> walls() {
  std::vector<float> points(kPoints, 0.0f);
  for (int i = 0; i < kSide; ++i) points[i] = 1.0f;
  return points;
}

__host__ __device__ inline float relaxed(const float* in, int at) {
  return 0.25f * ((in[at - 1] + in[at + 1]) + (in[at - kSide] + in[at + kSide]));
}

// `change` is raised to the largest change of a point, if that is larger. The bits of floats that are not negative are
// ordered as they are.
__global__ inline void sweep(float* out, const float* in, unsigned* change) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  float here = 0;
  if (x > 0 && y > 0 && x < kSide - 1 && y < kSide - 1) {
    const int at = y * kSide + x;
    out[at] = relaxed(in, at);
    here = fabsf(out[at] - in[at]);
  }
  const unsigned largest = __reduce_max_sync(0xFFFFFFFF, __float_as_uint(here));  // of the warp
  if (threadIdx.x == 0) atomicMax(change, largest);
}

constexpr int kBlockX = 32, kBlockY = 8;  // a warp is a row of the block
constexpr int kGridX = kSide / kBlockX, kGridY = kSide / kBlockY;
