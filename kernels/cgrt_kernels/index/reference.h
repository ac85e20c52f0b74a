// What each operation means, in plain C++ and in double: the tests' reference and the simulator's host
// body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cgrt_kernels/index/index_desc.h"

namespace cgrt::kernels {

// `index_at(i)` is the i-th index, `columns` those of the matrix. Calls visit(element of the matrix,
// element of the rows that the indices name) for each pair that belongs together, in the order of the
// latter; pairs that do not exist are left out.
template <class IndexAt, class Visit>
void visit_indexed(IndexOp op, std::uint64_t rows, std::uint64_t columns, std::uint64_t count, IndexAt index_at,
                   Visit visit) {
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint64_t j = 0; j < columns; ++j) {
      const std::int64_t row = index_at(op == IndexOp::kScatterAdd ? i * columns + j : i);
      if (row >= 0 && static_cast<std::uint64_t>(row) < rows) {
        visit(static_cast<std::uint64_t>(row) * columns + j, i * columns + j);
      }
    }
  }
}

}  // namespace cgrt::kernels
