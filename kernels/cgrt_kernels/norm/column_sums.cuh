// Sums of columns over the rows that a block works on.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// In shared memory, until they are left in global memory. Who adds to a column in one row need not be who does in the
// next: the block meets in between.
class ColumnSums {
 public:
  ColumnSums() = default;
  // The `index`-th array of `count` sums behind `shared`; zero once the block has met.
  __device__ __forceinline__ ColumnSums(float* to, float* shared, int index, std::uint32_t count)
      : to_(to), count_(count) {
    const std::uint32_t size = (count + 31) / 32 * 32;
    sums_ = shared + std::uint64_t{size} * static_cast<std::uint32_t>(index);
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) sums_[i] = 0;
  }
  __device__ __forceinline__ void add(std::uint64_t column, float value) {
    sums_[place_of(static_cast<std::uint32_t>(column))] += value;
  }
  __device__ __forceinline__ void leave() const {
    for (std::uint32_t i = threadIdx.x; i < count_; i += blockDim.x) to_[i] = sums_[place_of(i)];
  }

 private:
  // Rotated within each 32 words: lanes whose columns are 8 apart meet different banks.
  __device__ static std::uint32_t place_of(std::uint32_t column) {
    return (column & ~31u) | ((column + column / 32) & 31u);
  }

  float *to_, *sums_;
  std::uint32_t count_;
};

}  // namespace cgrt::kernels
