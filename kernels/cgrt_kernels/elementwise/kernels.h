// What elementwise's plans and device code have in common. Internal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/elementwise/elementwise_desc.h"
#include "cgrt_kernels/elementwise/matrix_desc.h"

namespace cgrt::kernels {

struct MatrixParams {
  void* out;
  const void *a, *b;
  std::uint32_t rows, columns;
};
using MatrixKernel = Kernel<MatrixParams>;

inline constexpr std::uint32_t kMaxMatrixThreads = 256;  // of a block

// Rows of which a thread has a pack, or an element of unaligned ones, in flight. A multiprocessor of Hopper needs about
// 48 KiB in flight to keep its memory busy.
constexpr std::uint32_t matrix_rows_in_flight(MatrixOp op, std::size_t element_bytes, Alignment alignment) {
  constexpr std::uint32_t kBytes = 64;  // of a thread: enough for 768 of 2048
  const std::uint32_t bytes = alignment == Alignment::kAligned ? 16 : static_cast<std::uint32_t>(element_bytes);
  return std::min(kBytes / (is_gated(op) ? 2 * bytes : bytes), 16u);
}

ElementwiseKernel elementwise_kernel(const ElementwiseDesc& desc);
MatrixKernel matrix_kernel(MatrixOp op, DType type, Alignment alignment);

}  // namespace cgrt::kernels
