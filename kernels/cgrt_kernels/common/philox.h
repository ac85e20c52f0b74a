// Random numbers by a counter: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (2011). Plain: no Abseil.
#pragma once

#include <cuda_runtime_api.h>  // __host__, __device__

#include <cstdint>

namespace cgrt::kernels {

// Four numbers, each of 0 to 2^32 - 1 as likely as the others, that depend on nothing but the seed and the counter.
struct Random4 {
  std::uint32_t of[4];
};

__host__ __device__ inline Random4 philox(const Random4& counter, std::uint32_t key0, std::uint32_t key1) {
  Random4 x = counter;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * x.of[0], b = std::uint64_t{0xCD9E8D57} * x.of[2];
    x = {{static_cast<std::uint32_t>(b >> 32) ^ x.of[1] ^ key0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ x.of[3] ^ key1, static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
  return x;
}

__host__ __device__ inline Random4 random4(std::uint64_t seed, std::uint64_t counter) {
  return philox({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

}  // namespace cgrt::kernels
