#include "cgrt_kernels/common/tensor_map.h"

#include <cstddef>

#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"

namespace cgrt::kernels {

absl::StatusOr<CUtensorMap> make_tensor_map(const void* address, DType type,
                                            std::initializer_list<TensorDimension> dimensions,
                                            CUtensorMapL2promotion promotion) {
  constexpr std::size_t kMaxRank = 5;
  cuuint64_t sizes[kMaxRank] = {}, strides[kMaxRank] = {};
  cuuint32_t box[kMaxRank] = {}, steps[kMaxRank] = {};
  std::size_t rank = 0;
  for (const TensorDimension& dimension : dimensions) {
    sizes[rank] = dimension.size;
    strides[rank] = dimension.stride * size_of(type);
    box[rank] = dimension.box;
    steps[rank++] = 1;
  }
  CUtensorMap map = {};
  CGRT_RETURN_IF_ERROR(driver::to_status(
      driver::api().TensorMapEncodeTiled(
          &map, type == DType::kFloat16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
          static_cast<cuuint32_t>(rank), const_cast<void*>(address), sizes, strides + 1, box, steps,
          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled"));
  return map;
}

}  // namespace cgrt::kernels
