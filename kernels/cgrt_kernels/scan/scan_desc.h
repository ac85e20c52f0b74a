// Prefix sums of each row of a matrix; a matrix of one row is an array. What can be asked for. Plain:
// no Abseil. The functions that plan and launch are in scan.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"

namespace cgrt::kernels {

enum class ScanKind : std::uint8_t {
  kInclusive,  // out[i] = in[0] + ... + in[i], as 0 + in[0] + ...: -0 becomes 0
  kExclusive,  // out[i] = in[0] + ... + in[i - 1]; out[0] = 0
};
constexpr const char* to_string(ScanKind kind) {
  return kind == ScanKind::kInclusive ? "inclusive scan" : "exclusive scan";
}

// 16-bit elements are summed in float and each result is rounded to the type; integers wrap around.
struct ScanDesc {
  DType type = DType::kFloat32;  // any
  std::uint64_t rows = 1, columns = 0;
  ScanKind kind = ScanKind::kInclusive;
};

// Device addresses of contiguous arrays of rows * columns elements, aligned to an element; out == in is allowed, any
// other overlap is undefined.
struct ScanArgs {
  void* out = nullptr;
  const void* in = nullptr;
  Workspace workspace = {};  // of ScanPlan::workspace_bytes
};

}  // namespace cgrt::kernels
