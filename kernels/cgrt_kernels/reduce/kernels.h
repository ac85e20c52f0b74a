// What reduce's plans and device code have in common. Internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt/launch/kernel.h"
#include "cgrt_kernels/common/alignment.h"
#include "cgrt_kernels/reduce/reduce_desc.h"

namespace cgrt::kernels {

struct ReduceParams {
  void* out;
  const void* in;
  std::uint64_t rows, columns;
  double divisor;           // of the result
  std::uint32_t lanes;      // threads of a block beside each other in a row
  std::uint32_t parts;      // blocks that share a result, or the results of some columns
  std::uint32_t each;       // kShort: rows of a thread
  const void* other;        // of a dot product
  std::uint32_t* counters;  // in the workspace
  void* partials;           // in its header, or for columns in its scratch memory
};
using ReduceKernel = Kernel<ReduceParams>;

// How the threads share the elements of a row.
enum class ReduceRegime : std::uint8_t {
  kSingle,  // a thread has some rows of one element, in arrays that are aligned to 16 bytes
  kShort,   // a block, through shared memory, has as many rows as fit there
  kLanes,   // up to 32 threads of a warp
  kBlocks,  // a block, or several of which one finishes
};
ReduceKernel reduce_rows_kernel(ReduceOp op, DType type, ReduceRegime regime);

// The columns of a thread: those of 16 bytes, where rows are aligned to them; some, as far apart as there are threads
// beside each other; or one.
enum class ReduceColumns : std::uint8_t { kPack, kSpread, kSingle };
inline constexpr std::uint32_t kReduceSpread = 4;
constexpr std::uint32_t width_of(ReduceColumns columns, DType type) {
  switch (columns) {
    case ReduceColumns::kPack: return static_cast<std::uint32_t>(16 / size_of(type));
    case ReduceColumns::kSpread: return kReduceSpread;
    case ReduceColumns::kSingle: break;
  }
  return 1;
}

// Several blocks have some of the rows each. kPack, or for others kSpread, and kSingle of argmax, whose states take
// more registers.
ReduceKernel reduce_columns_kernel(ReduceOp op, DType type, ReduceColumns columns);

// The same of few rows, all of which a thread has; kSpread of 16-bit types only.
ReduceKernel reduce_few_rows_kernel(ReduceOp op, DType type, ReduceColumns columns);
inline constexpr std::uint32_t kReduceFewBlock = 128;

// The shape of the kernels for short rows, for plans: threads of a block, and bytes of all its rows.
inline constexpr std::uint32_t kReduceShortBlock = 256, kReduceShortBytes = 16384;
// And of the kernel for rows of one element, of which a thread has those of so many 16 bytes, of in or of out.
inline constexpr std::uint32_t kReduceSingleBlock = 256;

// Of a block's partial result in the workspace: extremes of 16-bit types are kept as floats.
constexpr std::size_t partial_bytes(ReduceOp op, DType type) {
  if (op == ReduceOp::kArgmax) return 16;
  const std::size_t size = size_of(result_type(op, type));
  return size < 4 ? 4 : size;
}

}  // namespace cgrt::kernels
