#include "kernels/hold.h"

namespace cgrt::testing {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void hold_multiprocessors(Hold* hold, std::uint64_t max_nanoseconds) {
  const std::uint64_t begin = nanoseconds();
  *static_cast<volatile std::uint32_t*>(&hold->begun[blockIdx.x]) = 1;
  __threadfence_system();
  while (*static_cast<volatile std::uint32_t*>(&hold->released) == 0) {
    if (nanoseconds() - begin > max_nanoseconds) {
      *static_cast<volatile std::uint32_t*>(&hold->gave_up) = 1;
      return;
    }
    __nanosleep(1000);
  }
}

__global__ void meet(std::uint32_t* begun, std::uint64_t max_nanoseconds) {
  if (threadIdx.x != 0) return;
  const std::uint64_t begin = nanoseconds();
  atomicAdd(begun, 1u);
  while (*static_cast<volatile std::uint32_t*>(begun) < gridDim.x && nanoseconds() - begin < max_nanoseconds) {
    __nanosleep(1000);
  }
}

}  // namespace

HoldKernel hold_kernel() { return make_kernel<hold_multiprocessors>(); }
MeetKernel meet_kernel() { return make_kernel<meet>(); }

}  // namespace cgrt::testing
