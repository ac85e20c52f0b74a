// The calls of CUB. Internal: no Abseil, for nvcc.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cgrt_kernels/cub/cub_desc.h"

namespace cgrt::kernels {

// With `bytes` of scratch memory. A null one asks how many, and needs no
// other pointer.
cudaError_t call_cub(const CubScanDesc& desc, const CubScanArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream);
cudaError_t call_cub(const RadixSortDesc& desc, const RadixSortArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream);
cudaError_t call_cub(const SelectDesc& desc, const SelectArgs& args, void* scratch, std::size_t& bytes,
                     cudaStream_t stream);

}  // namespace cgrt::kernels
