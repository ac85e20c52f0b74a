#include "raw_patch.h"

namespace graphbench {
namespace {

template <std::size_t kCapacity>
__global__ void raw_patch(const __grid_constant__ RawPatches<kCapacity> list) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= list.count) return;
  const auto node = reinterpret_cast<cudaGraphDeviceNode_t>(list.patches[i].node);
  if (list.offset == kGridOffset) {
    cudaGraphKernelNodeSetGridDim(node, dim3(static_cast<unsigned>(list.patches[i].value)));
  } else {
    cudaGraphKernelNodeSetParam(node, list.offset, &list.patches[i].value, sizeof(list.patches[i].value));
  }
}

}  // namespace

template <std::size_t kCapacity>
cgrt::Kernel<RawPatches<kCapacity>> raw_patch_kernel() {
  return cgrt::make_kernel<raw_patch<kCapacity>>();
}
template cgrt::Kernel<RawPatches<kFewRaw>> raw_patch_kernel();
template cgrt::Kernel<RawPatches<kThousandRaw>> raw_patch_kernel();
template cgrt::Kernel<RawPatches<kMostRaw>> raw_patch_kernel();

}  // namespace graphbench
