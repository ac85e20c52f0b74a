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

// Of any 64 bits: the quotient by the reciprocal, rounded down, is right or 1 too small.
class WideDivisor {
 public:
  struct Result {
    std::uint64_t quotient;
    std::uint32_t remainder;
  };

  WideDivisor() = default;
  // From 1 to 2^31 - 1.
  explicit WideDivisor(std::uint32_t value) : reciprocal_(~std::uint64_t{0} / value), value_(value) {}

  __host__ __device__ std::uint32_t value() const { return value_; }
  __host__ __device__ Result divide(std::uint64_t number) const {
#ifdef __CUDA_ARCH__
    const std::uint64_t quotient = __umul64hi(number, reciprocal_);
    const auto rest = static_cast<std::uint32_t>(number - quotient * value_);  // below 2^32
    const bool is_small = rest >= value_;
    return {quotient + (is_small ? 1 : 0), rest - (is_small ? value_ : 0)};
#else
    return {number / value_, static_cast<std::uint32_t>(number % value_)};
#endif
  }

 private:
  std::uint64_t reciprocal_ = 0;
  std::uint32_t value_ = 1;
};

}  // namespace cgrt::kernels
