#include "churn.h"

__global__ void churn(std::uint32_t* x, int rounds, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  std::uint32_t value = x[i];
  for (int round = 0; round < rounds; ++round) value = kFactor * value + kStep;
  x[i] = value;
}

void churn_on_host(cgrt::HostGrid, std::uint32_t* x, int rounds, int count) {
  for (int i = 0; i < count; ++i) {
    for (int round = 0; round < rounds; ++round) x[i] = kFactor * x[i] + kStep;
  }
}
template <>
inline constexpr auto cgrt::host_body<churn> = cgrt::HostBody(churn_on_host, {.registers = 10});

cgrt::Kernel<std::uint32_t*, int, int> churn_kernel() { return cgrt::make_kernel<churn>(); }
