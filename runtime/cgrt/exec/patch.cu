#include "cgrt/exec/patch.h"

#include "cgrt/driver/api.h"

namespace cgrt::internal {
namespace {

__host__ __device__ std::uint64_t value_of(const Patch& patch) {
  return patch.low | static_cast<std::uint64_t>(patch.high) << 32;
}

__device__ cudaError_t set_word(const driver::NodeWord& word, std::uint64_t value) {
  const auto node = reinterpret_cast<cudaGraphDeviceNode_t>(word.node);
  switch (word.kind) {
    case driver::NodeWord::Kind::kArgument: return cudaGraphKernelNodeSetParam(node, word.offset, &value, word.bytes);
    case driver::NodeWord::Kind::kGrid:
      return cudaGraphKernelNodeSetGridDim(
          node, dim3(static_cast<unsigned>(value), static_cast<unsigned>(value >> 32 & 0xffff),
                     static_cast<unsigned>(value >> 48)));
    case driver::NodeWord::Kind::kEnabled: return cudaGraphKernelNodeSetEnabled(node, value != 0);
  }
  return cudaErrorInvalidValue;
}

template <std::size_t kCapacity>
__global__ void __launch_bounds__(kPatchBlock) patch_nodes(const __grid_constant__ PatchList<kCapacity> list) {
  const std::uint32_t i = blockIdx.x * kPatchesPerBlock + threadIdx.x / 32;
  if (i >= list.count || threadIdx.x % 32 != 0) return;
  const Patch& patch = list.patches[i];
  // The host has checked all values. A graph that ran with half of them would compute something else unnoticed.
  if (set_word(list.words[patch.word], value_of(patch)) != cudaSuccess) __trap();
}

template <std::size_t kCapacity>
void patch_nodes_on_host(HostGrid, PatchList<kCapacity> list) {
  for (std::uint32_t i = 0; i < list.count; ++i) {
    driver::api().PatchNode(&list.words[list.patches[i].word], value_of(list.patches[i]));
  }
}

}  // namespace

template <std::size_t kCapacity>
Kernel<PatchList<kCapacity>> patch_kernel() {
  return make_kernel<patch_nodes<kCapacity>, patch_nodes_on_host<kCapacity>>();
}
template Kernel<PatchList<kPatchCapacities[0]>> patch_kernel();
template Kernel<PatchList<kPatchCapacities[1]>> patch_kernel();
template Kernel<PatchList<kPatchCapacities[2]>> patch_kernel();
template Kernel<PatchList<kPatchCapacities[3]>> patch_kernel();
template Kernel<PatchList<kPatchCapacities[4]>> patch_kernel();

}  // namespace cgrt::internal
