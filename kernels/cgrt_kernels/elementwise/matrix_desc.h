// Elementwise operations on a matrix: what can be asked for. Plain: no Abseil.
// The functions that plan and launch are in matrix.h.
#pragma once

#include <cstdint>

#include "cgrt/launch/kernel.h"
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

// How much of a row a thread loads at once.
enum class MatrixAccess : std::uint8_t { kPack, kElement };  // 16 bytes, or what has no such alignment

// Rows of which a thread has a pack or an element in flight. A multiprocessor of Hopper needs about 48 KiB
// in flight to keep its memory busy.
constexpr int matrix_rows_in_flight(MatrixOp op, DType type, MatrixAccess access) {
  constexpr int kBytes = 64;  // per thread: enough for 768 of 2048
  const int pack = access == MatrixAccess::kPack ? 16 : static_cast<int>(size_of(type));
  const int rows = kBytes / (is_gated(op) ? 2 * pack : pack);
  return rows < 16 ? rows : 16;
}

inline constexpr std::uint32_t kMatrixBlock = 256;  // threads, at most

// out, a, b, rows, columns
using MatrixKernel = Kernel<void*, const void*, const void*, std::uint32_t, std::uint32_t>;

// The device code of an operation (matrix.cu).
MatrixKernel matrix_kernel(MatrixOp op, DType type, MatrixAccess access);

}  // namespace cgrt::kernels
