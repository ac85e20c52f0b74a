// Rows of a matrix picked or added to by index: what can be asked for. Plain: no Abseil. The functions that plan and
// launch are in index.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

// The matrix has `rows` rows of `columns`, there are `count` indices (of rows of indices for kScatterAdd). An index
// below 0 or not below `rows` is not an error: its row is picked as zeros, and not added.
enum class IndexOp : std::uint8_t {
  kSelect,      // out[i, :] = in[index[i], :]
  kAdd,         // out[index[i], :] += alpha * in[i, :]
  kScatterAdd,  // out[index[i, j], j] += alpha * in[i, j]
};
constexpr const char* to_string(IndexOp op) {
  switch (op) {
    case IndexOp::kSelect: return "index_select";
    case IndexOp::kAdd: return "index_add";
    case IndexOp::kScatterAdd: return "scatter_add";
  }
  return "unknown";
}

// In which order what falls on one element is added. Always in float, and rounded to the type once.
enum class SumOrder : std::uint8_t {
  kAny,    // atomics where they are faster: the last bits differ from run to run
  kFixed,  // the same bits in every run
};

struct IndexDesc {
  IndexOp op = IndexOp::kSelect;
  DType type = DType::kFloat32;      // or float16, bfloat16
  DType index_type = DType::kInt64;  // or int32
  std::uint64_t rows = 0, columns = 0, count = 0;
  SumOrder order = SumOrder::kAny;
};

// Device addresses of contiguous arrays that do not overlap, aligned to the size of their elements. kSelect overwrites
// `out` and ignores alpha; the others add to `out` in place.
//
//   op            out                in                 index
//   kSelect       [count, columns]   [rows, columns]    [count]
//   kAdd          [rows, columns]    [count, columns]   [count]
//   kScatterAdd   [rows, columns]    [count, columns]   [count, columns]
struct IndexArgs {
  void* out = nullptr;
  const void* in = nullptr;
  const void* index = nullptr;
  float alpha = 1;
  Workspace workspace = {};  // IndexPlan::workspace_bytes
};

}  // namespace cgrt::kernels
