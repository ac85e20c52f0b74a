// Tensor maps: which array copies of boxes (tensor_copy.cuh) read or write. Internal.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <initializer_list>

#include "absl/status/statusor.h"
#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

struct TensorDimension {
  std::uint64_t size;    // of the array, in elements
  std::uint64_t stride;  // to the next, in elements; a multiple of 16 bytes; 1 for the first dimension
  std::uint32_t box;     // elements of a box, at most 256
};

// Of an array of float16 or bfloat16 with 1 to 5 dimensions, the contiguous one first. Its boxes have at most 128 bytes
// in that dimension and are swizzled in shared memory as wgmma.cuh says. `address`: aligned to 16 bytes. The map holds
// the address: it is a parameter of one launch, in a __grid_constant__.
// `promotion`: what a copy fetches into the L2 cache for 128 bytes of a row. An array that is read once comes faster
// without: rows of 8 KB took 5 % longer with 256 bytes (H200).
// The driver wants a current context.
absl::StatusOr<CUtensorMap> make_tensor_map(const void* address, DType type,
                                            std::initializer_list<TensorDimension> dimensions,
                                            CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

}  // namespace cgrt::kernels
