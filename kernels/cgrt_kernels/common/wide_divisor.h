// As divisor.h, of numbers of 64 bits. Plain: no Abseil.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

namespace cgrt::kernels {

// The quotient by the reciprocal, rounded down, is right or 1 too small.
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
    const std::uint64_t quotient = high_product(number, reciprocal_);
    const auto rest = static_cast<std::uint32_t>(number - quotient * value_);  // below 2^32
    const bool is_small = rest >= value_;
    return {quotient + (is_small ? 1 : 0), rest - (is_small ? value_ : 0)};
  }

 private:
  __host__ __device__ static std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    __extension__ using Product = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Product>(a) * b >> 64);
#endif
  }

  std::uint64_t reciprocal_ = 0;
  std::uint32_t value_ = 1;
};

}  // namespace cgrt::kernels
