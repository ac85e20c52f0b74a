// What CUB does for cgrt: what can be asked for. Plain: no Abseil. The functions that plan and launch are
// in cub.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/workspace_desc.h"
#include "cgrt_kernels/scan/scan_desc.h"

namespace cgrt::kernels {

// Addresses are of contiguous arrays of `count` elements in device memory, aligned to an element. Arrays do not
// overlap, but where said. The workspace: CubPlan::workspace_bytes.

// Sums of floats are in CUB's order, which changes from run to run; plan_scan (scan/scan.h) has another.
struct CubScanDesc {
  DType type = DType::kFloat32;  // or int32, int64
  std::uint64_t count = 0;
  ScanKind kind = ScanKind::kInclusive;
};
struct CubScanArgs {
  void* out = nullptr;  // == in is allowed
  const void* in = nullptr;
  Workspace workspace = {};
};

// Floats are sorted as numbers, -0 and +0 as equal ones, NaN last, or first when their sign is set.
enum class SortKey : std::uint8_t { kUInt32, kUInt64, kFloat32 };
constexpr const char* to_string(SortKey key) {
  switch (key) {
    case SortKey::kUInt32: return "uint32";
    case SortKey::kUInt64: return "uint64";
    case SortKey::kFloat32: return "float32";
  }
  return "unknown";
}
constexpr std::size_t size_of(SortKey key) { return key == SortKey::kUInt64 ? 8 : 4; }

// Sorts upwards by the bits [begin_bit, end_bit) of the keys; equal ones keep their order. Fewer bits take
// less time.
struct RadixSortDesc {
  SortKey key = SortKey::kUInt32;
  bool has_values = false;  // of 4 bytes, which go with their keys
  std::uint64_t count = 0;
  int begin_bit = 0;
  int end_bit = 0;  // 0: all bits of the key
};
struct RadixSortArgs {
  void* keys_out = nullptr;
  const void* keys_in = nullptr;
  void* values_out = nullptr;  // ignored without values
  const void* values_in = nullptr;
  Workspace workspace = {};
};

// The elements whose flag is not 0, in their order.
struct SelectDesc {
  DType type = DType::kFloat32;  // any: elements are copied as they are
  std::uint64_t count = 0;
};
struct SelectArgs {
  void* out = nullptr;  // with room for all `count`
  const void* in = nullptr;
  const std::uint8_t* flags = nullptr;
  std::int64_t* selected = nullptr;  // one number: how many
  Workspace workspace = {};
};

}  // namespace cgrt::kernels
