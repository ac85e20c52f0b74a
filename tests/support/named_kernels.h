// Kernels with names of every kind, and kernels that take structures. Plain.
#pragma once

#include <cstdint>

#include <vector>

#include "cgrt/launch/kernel.h"

namespace cgrt::testing {

enum class Op { kNone = -1, kNorm = 3 };

// Addresses between numbers.
struct Rows {
  const float* in = nullptr;
  std::int64_t count = 0;  // leaves no padding, which nobody writes
  float* out = nullptr;
  double scale = 1;
};

// As large as a kernel's parameters could be in CUDA 11; aligned as a tensor map.
struct alignas(64) Table {
  std::uint64_t words[504] = {};
};

Kernel<> norm_kernel();     // a template over an enumeration
Kernel<> unnamed_kernel();  // over one of an unnamed namespace
Kernel<> long_kernel();     // 900 characters
Kernel<> c_kernel();        // extern "C"
Kernel<int, Rows> rows_kernel();
Kernel<Table> table_kernel();
Kernel<> no_rtti_kernel();  // norm_kernel's template, from a file that was compiled with -fno-rtti

}  // namespace cgrt::testing
