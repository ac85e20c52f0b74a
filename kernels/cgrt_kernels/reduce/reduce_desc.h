// Reductions of an array, of the rows or of the columns of a matrix: what can be asked for. Plain: no
// Abseil. The functions that plan and launch are in reduce.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// x are the elements that make one result. A minimum or maximum of which one is NaN is NaN, and
// argmax then finds the first NaN.
enum class ReduceOp : std::uint8_t {
  kSum,           // sum(x)
  kMean,          // sum(x) / count
  kSumOfSquares,  // sum(x * x)
  kMin,           // min(x)
  kMax,           // max(x)
  kArgmax,        // the first position of max(x)
  kDot,           // sum(x * y) over two whole arrays
};
constexpr const char* to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "reduce sum";
    case ReduceOp::kMean: return "reduce mean";
    case ReduceOp::kSumOfSquares: return "reduce sum of squares";
    case ReduceOp::kMin: return "reduce min";
    case ReduceOp::kMax: return "reduce max";
    case ReduceOp::kArgmax: return "reduce argmax";
    case ReduceOp::kDot: return "dot";
  }
  return "unknown";
}

// What one result is made of: everything, a row, a column.
enum class ReduceOver : std::uint8_t { kAll, kRow, kColumn };

// A minimum or maximum is an element, a position an int64. Sums of integers are int64, of float64
// float64, of all others float32: they are computed in that type.
constexpr DType result_type(ReduceOp op, DType type) {
  if (op == ReduceOp::kArgmax) return DType::kInt64;
  if (op == ReduceOp::kMin || op == ReduceOp::kMax || type == DType::kFloat64) return type;
  return type == DType::kInt32 || type == DType::kInt64 ? DType::kInt64 : DType::kFloat32;
}

// Integers have sum, min and max; everything else has all.
struct ReduceDesc {
  ReduceOp op = ReduceOp::kSum;
  DType type = DType::kFloat32;  // of the elements
  ReduceOver over = ReduceOver::kAll;
  std::uint64_t rows = 1, columns = 0;  // kAll: of rows * columns elements
};

// Device addresses of contiguous arrays: out of as many results as there are (1, rows or columns), in
// and, for dot only, other of rows * columns elements.
struct ReduceArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* other = nullptr;
  Workspace workspace = {};
};

// How the threads share the elements of a result.
enum class ReduceRegime : std::uint8_t {
  kShort,          // a block, through shared memory, has as many rows as fit there
  kLanes,          // up to 32 threads of a warp
  kBlocks,         // a block, or several of which one finishes
  kColumns,        // a thread has the columns of 16 bytes, blocks as above have some of the rows
  kSingleColumns,  // a thread has one column: for rows that are not aligned to 16 bytes
};

// out, in, other, counters and partial results in the workspace (its header's parts, or scratch memory for those of
// columns), rows, columns, lanes, parts (or short rows of a thread), divisor of
// the result
using ReduceKernel = Kernel<void*, const void*, const void*, std::uint32_t*, void*, std::uint64_t, std::uint64_t,
                            std::uint32_t, std::uint32_t, double>;

// The shape of the kernels for short rows, for plans: threads of a block, and bytes of all its rows.
inline constexpr std::uint32_t kReduceShortBlock = 256, kReduceShortBytes = 16384;

// Of a block's partial result in the workspace: extremes of 16-bit types are kept as floats.
constexpr std::size_t partial_bytes(ReduceOp op, DType type) {
  if (op == ReduceOp::kArgmax) return 16;
  const std::size_t size = size_of(result_type(op, type));
  return size < 4 ? 4 : size;
}

// The device code of an operation (kernels.cu).
ReduceKernel reduce_kernel(ReduceOp op, DType type, ReduceRegime regime);

}  // namespace cgrt::kernels
