// The measured bandwidth: the speed of plain kernels, which a kernel that reads only, or writes four
// times what it reads, is held against. And a kernel that does nothing, which short chains are held against.
#include <memory>

#include "cgrt/base/status_macros.h"
#include "cgrt_kernels/common/programmatic.cuh"
#include "kernels/bench/bench.h"

namespace cgrt::bench {
namespace {

// Four loads of 16 bytes in flight for each thread; what they sum up to is never `unlikely`.
__global__ void __launch_bounds__(512)
    read_only(const uint4* in, std::uint64_t packs, std::uint32_t unlikely, std::uint32_t* out) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint32_t sum = 0;
  std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * threads < packs; i += 4 * threads) {
    const uint4 a = in[i], b = in[i + threads], c = in[i + 2 * threads], d = in[i + 3 * threads];
    sum += (a.x ^ a.y ^ a.z ^ a.w) + (b.x ^ b.y ^ b.z ^ b.w) + (c.x ^ c.y ^ c.z ^ c.w) + (d.x ^ d.y ^ d.z ^ d.w);
  }
  for (; i < packs; i += threads) sum += in[i].x ^ in[i].y ^ in[i].z ^ in[i].w;
  if (sum == unlikely) *out = sum;
}

__global__ void __launch_bounds__(512) write_four(const uint4* in, std::uint64_t packs, uint4* out) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += threads) {
    const uint4 value = in[i];
    for (int copy = 0; copy < 4; ++copy) out[static_cast<std::uint64_t>(copy) * packs + i] = value;
  }
}

__global__ void empty() {
  kernels::wait_for_predecessors();
  kernels::let_dependents_start();
}

}  // namespace

// bytes: that are read; empty takes none
absl::StatusOr<Work> make_bandwidth(const Case& test) {
  if (test.kernel == "empty") {
    return Work{1, [](StreamRef, std::uint32_t) -> absl::StatusOr<Launch> {
                  return [](LaunchTarget target) {
                    return launch(target, {.grid = 1, .block = 32}, make_kernel<empty>());
                  };
                }};
  }
  const bool writes = test.kernel == "write_four";
  if (!writes && test.kernel != "read_only") return absl::NotFoundError("");
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t bytes, test.size("bytes"));
  CGRT_ASSIGN_OR_RETURN(const int sms, kDevice.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const LaunchConfig config{.grid = static_cast<std::uint32_t>(4 * sms), .block = 512};
  return Work{writes ? 5 * bytes : bytes, [=](StreamRef stream, std::uint32_t seed) -> absl::StatusOr<Launch> {
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer in, make_numbers(stream, kernels::DType::kFloat32, bytes / 4, seed));
                CGRT_ASSIGN_OR_RETURN(DeviceBuffer out, DeviceBuffer::create(kDevice, writes ? 4 * bytes : 4));
                const auto set = std::make_shared<std::pair<DeviceBuffer, DeviceBuffer>>(std::move(in), std::move(out));
                return [=](LaunchTarget target) {
                  const auto* from = set->first.as<const uint4>();
                  if (writes) {
                    return launch(target, config, make_kernel<write_four>(), from, bytes / 16, set->second.as<uint4>());
                  }
                  return launch(target, config, make_kernel<read_only>(), from, bytes / 16, 0x12345u,
                                set->second.as<std::uint32_t>());
                };
              }};
}

}  // namespace cgrt::bench
