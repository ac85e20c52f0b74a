// What elementwise's plans and device code have in common. Internal.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/wide_divisor.h"
#include "cgrt_kernels/elementwise/elementwise_desc.h"
#include "cgrt_kernels/elementwise/matrix_desc.h"

namespace cgrt::kernels {

struct MatrixParams {
  void* out;
  const void *a, *b;
  std::uint32_t rows;
  WideDivisor columns;
};
using MatrixKernel = Kernel<MatrixParams>;

ElementwiseKernel elementwise_kernel(const ElementwiseDesc& desc);
// kMapBlock threads, a pack of `out` each. Aligned: arrays and rows are.
MatrixKernel matrix_kernel(MatrixOp op, DType type, Alignment alignment);

}  // namespace cgrt::kernels
