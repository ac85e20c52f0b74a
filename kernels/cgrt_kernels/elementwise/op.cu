#include <cstdint>

#include "cgrt_kernels/common/programmatic.cuh"
#include "cgrt_kernels/elementwise/op.h"
#include "cgrt_kernels/elementwise/op_reference.h"

namespace cgrt::kernels {
namespace {

template <ElementwiseOp kOp>
__device__ float apply(float a, float b, float alpha) {
  if constexpr (kOp == ElementwiseOp::kScale) return alpha * a;
  if constexpr (kOp == ElementwiseOp::kAdd) return a + b;
  if constexpr (kOp == ElementwiseOp::kMul) return a * b;
  if constexpr (kOp == ElementwiseOp::kAxpy) return __fmaf_rn(alpha, a, b);
}

template <ElementwiseOp kOp>
__device__ float4 apply(float4 a, float4 b, float alpha) {
  return {apply<kOp>(a.x, b.x, alpha), apply<kOp>(a.y, b.y, alpha), apply<kOp>(a.z, b.z, alpha),
          apply<kOp>(a.w, b.w, alpha)};
}

__device__ bool aligned_to_pack(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0;
}

template <ElementwiseOp kOp>
constexpr bool kTwo = takes_two_inputs(kOp);

// What a grid covers with one pack of 16 bytes per thread goes straight: such a kernel is over in
// the time that a branch and its instruction fetch cost, and its dependents may be set up at once.
// The rest is grid-stride, two packs in flight per thread: 2048 threads with one each are too few
// bytes in flight for Hopper's memory. Misaligned arrays go element by element. Alignment is looked
// at here and not at plan time, so that new pointers never need another kernel.
template <ElementwiseOp kOp>
__global__ void __launch_bounds__(256)
    elementwise(float* out, const float* a, const float* b, float alpha, std::uint64_t count) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t packs = count / 4;
  const auto* a4 = reinterpret_cast<const float4*>(a);
  const auto* b4 = reinterpret_cast<const float4*>(b);
  auto* out4 = reinterpret_cast<float4*>(out);
  const bool is_packed = aligned_to_pack(out) && aligned_to_pack(a) && (!kTwo<kOp> || aligned_to_pack(b));
  if (is_packed && count % 4 == 0 && packs <= threads) {
    let_dependents_start();
    wait_for_predecessors();
    if (thread < packs) out4[thread] = apply<kOp>(a4[thread], kTwo<kOp> ? b4[thread] : float4{}, alpha);
    return;
  }
  wait_for_predecessors();
  std::uint64_t first = 0;
  if (is_packed) {
    std::uint64_t i = thread;
    for (; i + threads < packs; i += 2 * threads) {
      const float4 a_0 = a4[i], a_1 = a4[i + threads];
      const float4 b_0 = kTwo<kOp> ? b4[i] : float4{}, b_1 = kTwo<kOp> ? b4[i + threads] : float4{};
      out4[i] = apply<kOp>(a_0, b_0, alpha);
      out4[i + threads] = apply<kOp>(a_1, b_1, alpha);
    }
    if (i < packs) out4[i] = apply<kOp>(a4[i], kTwo<kOp> ? b4[i] : float4{}, alpha);
    first = packs * 4;
  }
  for (std::uint64_t i = first + thread; i < count; i += threads) {
    out[i] = apply<kOp>(a[i], kTwo<kOp> ? b[i] : 0.0f, alpha);
  }
}

}  // namespace
}  // namespace cgrt::kernels

template <>
inline constexpr auto cgrt::host_body<cgrt::kernels::elementwise<cgrt::kernels::ElementwiseOp::kScale>> =
    cgrt::HostBody(cgrt::kernels::elementwise_on_host<cgrt::kernels::ElementwiseOp::kScale>,
                   {.registers = 32, .max_threads = 256});
template <>
inline constexpr auto cgrt::host_body<cgrt::kernels::elementwise<cgrt::kernels::ElementwiseOp::kAdd>> = cgrt::HostBody(
    cgrt::kernels::elementwise_on_host<cgrt::kernels::ElementwiseOp::kAdd>, {.registers = 32, .max_threads = 256});
template <>
inline constexpr auto cgrt::host_body<cgrt::kernels::elementwise<cgrt::kernels::ElementwiseOp::kMul>> = cgrt::HostBody(
    cgrt::kernels::elementwise_on_host<cgrt::kernels::ElementwiseOp::kMul>, {.registers = 32, .max_threads = 256});
template <>
inline constexpr auto cgrt::host_body<cgrt::kernels::elementwise<cgrt::kernels::ElementwiseOp::kAxpy>> = cgrt::HostBody(
    cgrt::kernels::elementwise_on_host<cgrt::kernels::ElementwiseOp::kAxpy>, {.registers = 32, .max_threads = 256});

namespace cgrt::kernels {

ElementwiseKernel elementwise_kernel(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kScale: return make_kernel<elementwise<ElementwiseOp::kScale>>();
    case ElementwiseOp::kAdd: return make_kernel<elementwise<ElementwiseOp::kAdd>>();
    case ElementwiseOp::kMul: return make_kernel<elementwise<ElementwiseOp::kMul>>();
    case ElementwiseOp::kAxpy: break;
  }
  return make_kernel<elementwise<ElementwiseOp::kAxpy>>();
}

}  // namespace cgrt::kernels
