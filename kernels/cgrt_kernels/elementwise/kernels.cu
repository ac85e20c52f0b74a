#include <cstdint>
#include <type_traits>

#include "cgrt_kernels/common/dispatch.cuh"
#include "cgrt_kernels/elementwise/functors.cuh"
#include "cgrt_kernels/elementwise/kernels.h"
#include "cgrt_kernels/elementwise/map.cuh"

namespace cgrt::kernels {
namespace {

template <ElementwiseOp kOp>
constexpr bool kTwo = takes_two_inputs(kOp);

// One signature for all: launches need not tell operations apart.
template <ElementwiseOp kOp, class Out, class In, class Compute>
__global__ void __launch_bounds__(kMapBlock)
    elementwise(void* out, const void* a, const void* b, float alpha, std::uint64_t count) {
  const ElementwiseFunctor<kOp, Compute> functor{alpha};
  if constexpr (kTwo<kOp>) {
    internal::map_elements(functor, count, static_cast<Out*>(out), static_cast<const In*>(a),
                           static_cast<const In*>(b));
  } else {
    internal::map_elements(functor, count, static_cast<Out*>(out), static_cast<const In*>(a));
  }
}

template <ElementwiseOp kOp, class Out, class In, class Compute>
void elementwise_on_host(HostGrid grid, void* out, const void* a, const void* b, float alpha, std::uint64_t count) {
  const ElementwiseFunctor<kOp, Compute> functor{alpha};
  if constexpr (kTwo<kOp>) {
    internal::map_on_host(grid, static_cast<Out*>(out), functor, count, static_cast<const In*>(a),
                          static_cast<const In*>(b));
  } else {
    internal::map_on_host(grid, static_cast<Out*>(out), functor, count, static_cast<const In*>(a));
  }
}

template <ElementwiseOp kOp, class Out, class In = Out, class Compute = float>
ElementwiseKernel kernel_of() {
  return make_kernel<elementwise<kOp, Out, In, Compute>, elementwise_on_host<kOp, Out, In, Compute>,
                     KernelResources{.registers = 40, .max_threads = kMapBlock}>();
}

template <ElementwiseOp kOp>
ElementwiseKernel of_type(DType type) {
  if constexpr (kTwo<kOp> || kOp == ElementwiseOp::kScale) {
    if (type == DType::kFloat64) return kernel_of<kOp, double, double, double>();
  }
  return of_float_type(type, [=]<class T>() { return kernel_of<kOp, T>(); });
}

ElementwiseKernel cast_of_types(DType out, DType in) {
  return of_float_type(in, [=]<class In>() {
    return of_float_type(out, [=]<class Out>() {
      if constexpr (std::is_same_v<Out, In>) {
        return ElementwiseKernel(nullptr);  // plan_elementwise lets none pass
      } else {
        return kernel_of<ElementwiseOp::kCast, Out, In>();
      }
    });
  });
}

}  // namespace

ElementwiseKernel elementwise_kernel(const ElementwiseDesc& desc) {
  switch (desc.op) {
    case ElementwiseOp::kScale: return of_type<ElementwiseOp::kScale>(desc.type);
    case ElementwiseOp::kAdd: return of_type<ElementwiseOp::kAdd>(desc.type);
    case ElementwiseOp::kMul: return of_type<ElementwiseOp::kMul>(desc.type);
    case ElementwiseOp::kAxpy: return of_type<ElementwiseOp::kAxpy>(desc.type);
    case ElementwiseOp::kRelu: return of_type<ElementwiseOp::kRelu>(desc.type);
    case ElementwiseOp::kSilu: return of_type<ElementwiseOp::kSilu>(desc.type);
    case ElementwiseOp::kGelu: return of_type<ElementwiseOp::kGelu>(desc.type);
    case ElementwiseOp::kGeluTanh: return of_type<ElementwiseOp::kGeluTanh>(desc.type);
    case ElementwiseOp::kCast: break;
  }
  return cast_of_types(desc.out_type, desc.type);
}

}  // namespace cgrt::kernels
