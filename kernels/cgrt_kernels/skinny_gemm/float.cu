#include "cgrt_kernels/skinny_gemm/product.cuh"

namespace cgrt::kernels {

Kernel<SkinnyGemmParams> skinny_gemm_float_kernel(DType type, SkinnyShape shape) {
  return skinny_kernel_of_weights<16, SkinnyScales::kNone>(type, shape);
}

}  // namespace cgrt::kernels
