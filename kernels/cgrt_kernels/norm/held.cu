#include "cgrt_kernels/norm/held.cuh"

#include "cgrt_kernels/common/dispatch.cuh"

namespace cgrt::kernels {

NormKernel norm_held_kernel(NormOp op, Residual residual, DType type, HeldRegime regime) {
  return of_float_type(type, [=]<class T>() {
    const auto of_op = [=]<NormOp kOp>() {
      return residual == Residual::kAdded ? held_kernel<kOp, T, false, true>(regime)
                                          : held_kernel<kOp, T, false, false>(regime);
    };
    return op == NormOp::kLayerNorm ? of_op.template operator()<NormOp::kLayerNorm>()
                                    : of_op.template operator()<NormOp::kRmsNorm>();
  });
}

}  // namespace cgrt::kernels
