// A barrier in shared memory at which some threads arrive and others wait (sm_80 and later).
#pragma once

#include <cstdint>

namespace cgrt::kernels {

class Mbarrier {
 public:
  // By one thread, before the block meets: the phase ends when so many have arrived.
  __device__ __forceinline__ void initialize(std::uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  // What this thread has done is seen by those who wait.
  __device__ __forceinline__ void arrive() {
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(address()) : "memory");
  }
  // Phases are 0 and 1 in turn.
  __device__ __forceinline__ void wait(std::uint32_t phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again_%=:\n"
#if __CUDA_ARCH__ >= 900
        "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
#else
        "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
#endif
        "@!done bra again_%=;\n"
        "}" ::"r"(address()),
        "r"(phase)
        : "memory");
  }

 private:
  __device__ __forceinline__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(this));
  }
  std::uint64_t state_;
};

}  // namespace cgrt::kernels
