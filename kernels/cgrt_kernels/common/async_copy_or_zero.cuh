// Copies as async_copy.cuh's, of what may not be there.
#pragma once

#include <cstdint>

namespace cgrt::kernels {

// 16 bytes; zeros where there is nothing, and then `from_global` is not read. Both addresses are multiples of 16.
__device__ __forceinline__ void copy_or_zero_asynchronously(void* to_shared, const void* from_global, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared))),
               "l"(__cvta_generic_to_global(from_global)), "r"(is_there ? 16 : 0)
               : "memory");
}

}  // namespace cgrt::kernels
