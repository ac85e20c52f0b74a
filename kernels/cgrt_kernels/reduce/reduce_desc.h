// Reductions of an array, of the rows or of the columns of a matrix: what can be asked for. Plain: no
// Abseil. The functions that plan and launch are in reduce.h.
#pragma once

#include <cstddef>
#include <cstdint>

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

// Device addresses of contiguous arrays: out of as many results as there are (1, rows or columns), in and, for dot
// only, other of rows * columns elements. out overlaps neither; in may be other.
struct ReduceArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* other = nullptr;
  Workspace workspace = {};  // of ReducePlan::workspace_bytes
};

}  // namespace cgrt::kernels
