#include "raw_patch.h"

namespace graphbench {
namespace {

__global__ void raw_patch(const __grid_constant__ RawPatches list) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= list.count) return;
  const auto node = reinterpret_cast<cudaGraphDeviceNode_t>(list.patches[i].node);
  if (list.offset == RawPatches::kGrid) {
    cudaGraphKernelNodeSetGridDim(node, dim3(static_cast<unsigned>(list.patches[i].value)));
  } else {
    cudaGraphKernelNodeSetParam(node, list.offset, &list.patches[i].value, sizeof(list.patches[i].value));
  }
}

}  // namespace

cgrt::Kernel<RawPatches> raw_patch_kernel() { return cgrt::make_kernel<raw_patch>(); }

}  // namespace graphbench
