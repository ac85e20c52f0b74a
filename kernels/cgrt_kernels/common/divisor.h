// Division by a number that the host knows, without the device's slow division. Plain: no Abseil.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <bit>
#include <cstdint>

namespace cgrt::kernels {

// Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), for 31 bits.
class Divisor {
 public:
  Divisor() = default;
  // From 1 to 2^31 - 1.
  explicit Divisor(std::uint32_t value) : value_(value) {
    shift_ = static_cast<std::uint32_t>(std::bit_width(value - 1));
    multiplier_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - value) << 32) / value + 1);
  }

  __host__ __device__ std::uint32_t value() const { return value_; }
  // `number` is below 2^31.
  __host__ __device__ std::uint32_t quotient(std::uint32_t number) const {
#ifdef __CUDA_ARCH__
    return (__umulhi(number, multiplier_) + number) >> shift_;
#else
    return number / value_;
#endif
  }
  __host__ __device__ std::uint32_t remainder(std::uint32_t number) const { return number - quotient(number) * value_; }

 private:
  std::uint32_t value_ = 1, multiplier_ = 1, shift_ = 0;
};

}  // namespace cgrt::kernels
