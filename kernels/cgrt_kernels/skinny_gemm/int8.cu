#include "cgrt_kernels/skinny_gemm/product.cuh"

namespace cgrt::kernels {

Kernel<SkinnyGemmParams> skinny_gemm_int8_kernel(DType type, SkinnyScales scales, SkinnyShape shape) {
  return scales == SkinnyScales::kToSums ? skinny_kernel_of_weights<8, SkinnyScales::kToSums>(type, shape)
                                         : skinny_kernel_of_weights<8, SkinnyScales::kToWeights>(type, shape);
}

}  // namespace cgrt::kernels
