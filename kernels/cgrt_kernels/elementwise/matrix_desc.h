// Elementwise operations on a matrix: what can be asked for. Plain: no Abseil. The functions that plan and launch are
// in matrix.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class MatrixOp : std::uint8_t {
  kAddPerColumn,    // out[r, c] = a[r, c] + b[c]
  kAddPerRow,       // out[r, c] = a[r, c] + b[r]
  kMulPerColumn,    // out[r, c] = a[r, c] * b[c]
  kMulPerRow,       // out[r, c] = a[r, c] * b[r]
  kSiluAndMul,      // out[r, c] = silu(a[r, c]) * a[r, columns + c]: rows of `a` are twice as long
  kGeluAndMul,      // the same with gelu, by erf
  kGeluTanhAndMul,  // the same with gelu_tanh
};
constexpr const char* to_string(MatrixOp op) {
  switch (op) {
    case MatrixOp::kAddPerColumn: return "add_per_column";
    case MatrixOp::kAddPerRow: return "add_per_row";
    case MatrixOp::kMulPerColumn: return "mul_per_column";
    case MatrixOp::kMulPerRow: return "mul_per_row";
    case MatrixOp::kSiluAndMul: return "silu_and_mul";
    case MatrixOp::kGeluAndMul: return "gelu_and_mul";
    case MatrixOp::kGeluTanhAndMul: return "gelu_tanh_and_mul";
  }
  return "unknown";
}

// Whether the two factors lie side by side in rows of `a`, and `b` is not used.
constexpr bool is_gated(MatrixOp op) {
  return op == MatrixOp::kSiluAndMul || op == MatrixOp::kGeluAndMul || op == MatrixOp::kGeluTanhAndMul;
}
constexpr bool is_per_row(MatrixOp op) { return op == MatrixOp::kAddPerRow || op == MatrixOp::kMulPerRow; }

struct MatrixDesc {
  MatrixOp op = MatrixOp::kAddPerColumn;
  DType type = DType::kFloat32;         // of all arrays; or float16, bfloat16: computed in float, rounded once
  std::uint64_t rows = 0, columns = 0;  // of `out`, each below 2^31
};

// Device addresses of contiguous arrays, aligned to the type's size. `out` may be `a` except for gates;
// any other overlap is undefined.
struct MatrixArgs {
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;  // `columns` or `rows` elements; ignored by gates
};

}  // namespace cgrt::kernels
