// What device code needs to run on the CPU, a thread after the other: CUDA's built-in variables, and intrinsics that
// have no host form. For kernels without shared memory, whose threads do not meet; the sanitizers then see each address
// that they touch. Include it before the kernels.
#pragma once

#define __grid_constant__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline

#include <cstdint>

struct DeviceIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline DeviceIndex threadIdx, blockIdx, gridDim;

inline std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t shift) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
template <class T>
void __stwb(T* to, T value) {
  *to = value;
}

namespace cgrt::testing {

// kernel() for each thread of `blocks` blocks.
template <class Kernel>
void run_threads(unsigned blocks, unsigned threads, Kernel kernel) {
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel();
  }
}

// `count` elements whose ends the sanitizers know, the first of them `shift` elements behind an aligned address.
template <class T>
class Elements {
 public:
  Elements(std::uint64_t count, unsigned shift) : memory_(new (std::align_val_t(16)) T[shift + count]), shift_(shift) {}
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  ~Elements() { ::operator delete[](memory_, std::align_val_t(16)); }
  T* data() const { return memory_ + shift_; }

 private:
  T* memory_;
  unsigned shift_;
};

}  // namespace cgrt::testing
