// What each operation means, in plain C++: the tests' reference and the simulator's host body.
#pragma once

#include <cstdint>

#include "cgrt_kernels/reduce/reduce_desc.h"

namespace cgrt::kernels {

// The result of elements at(0) to at(count - 1), in their type: double, or std::int64_t for integers.
// For dot, at(i) is the product.
template <class At>
auto reduce_reference(ReduceOp op, std::uint64_t count, const At& at) {
  using Value = decltype(at(std::uint64_t{0}));
  const auto is_nan = [](Value value) { return value != value; };
  Value result = at(0);
  std::uint64_t first = 0;
  if (op == ReduceOp::kSumOfSquares) result *= result;
  for (std::uint64_t i = 1; i < count; ++i) {
    const Value value = at(i);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMean:
      case ReduceOp::kDot: result += value; break;
      case ReduceOp::kSumOfSquares: result += value * value; break;
      case ReduceOp::kMin:
        if (!is_nan(result) && (is_nan(value) || value < result)) result = value;
        break;
      case ReduceOp::kMax:
      case ReduceOp::kArgmax:
        if (!is_nan(result) && (is_nan(value) || value > result)) result = value, first = i;
        break;
    }
  }
  if (op == ReduceOp::kMean) result /= static_cast<Value>(count);
  return op == ReduceOp::kArgmax ? static_cast<Value>(first) : result;
}

}  // namespace cgrt::kernels
