// What a scan means, in plain C++: the tests' reference and the simulator's host body.
#pragma once

#include <cstdint>

#include "cgrt_kernels/scan/scan_desc.h"

namespace cgrt::kernels {

// `read(i)` gives element i of a row as a Sum, `write(i, sum)` takes its result.
template <class Sum, class Read, class Write>
void scan_reference(ScanKind kind, std::uint64_t columns, Read read, Write write) {
  Sum sum{};
  for (std::uint64_t i = 0; i < columns; ++i) {
    const Sum before = sum;
    sum += read(i);
    write(i, kind == ScanKind::kInclusive ? sum : before);
  }
}

}  // namespace cgrt::kernels
