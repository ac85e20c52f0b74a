// From the type of a descriptor to the instance of a kernel.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

// get<T>() of a float type; plans let no other pass.
template <class Get>
auto of_float_type(DType type, Get get) {
  switch (type) {
    case DType::kFloat32: return get.template operator()<float>();
    case DType::kFloat16: return get.template operator()<__half>();
    default: return get.template operator()<__nv_bfloat16>();
  }
}

// get<T, kAlignment>()
template <class Get>
auto of_float_type(DType type, Alignment alignment, Get get) {
  return of_float_type(type, [=]<class T>() {
    return alignment == Alignment::kAligned ? get.template operator()<T, Alignment::kAligned>()
                                            : get.template operator()<T, Alignment::kUnaligned>();
  });
}

}  // namespace cgrt::kernels
