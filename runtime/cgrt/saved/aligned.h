// A graph in two saves of one command: the second in terms of the first, and what the arguments of its kernels have in
// them otherwise. Internal to saved/.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::saved {

// A word of a kernel's arguments that is an address in one of the saves only, or of other memory in each.
struct OtherPointer {
  std::uint32_t node = 0, at = 0;         // `at`: byte of the parameter buffer
  std::optional<ir::Pointer> first = {};  // what it points to in the first save
  bool has_second = false;                // whether it is an address in the second
};

// An argument without addresses that has other bytes in the second save.
struct OtherBytes {
  std::uint32_t node = 0, at = 0;  // where it begins in the parameter buffer
  std::vector<std::uint8_t> first, second;
};

struct AlignedGraphs {
  // To be compared by ir::first_difference: all that is in the lists below is zeros in both. Allocations of the second
  // have the numbers and sizes of the first's.
  ir::GraphIr first, second;
  std::vector<std::optional<std::uint32_t>> allocations = {};  // by the first's: which one of the second save it is
  std::vector<OtherPointer> pointers = {};
  std::vector<OtherBytes> bytes = {};
};

// Linear in the graphs, which are valid. Allocations correspond that stand in most of the same places.
AlignedGraphs align(const ir::GraphIr& first, const ir::GraphIr& second);

// The bytes in which `second` is `first` with an address in it that moved by `distance`: all 8 bytes or the low 4 of
// them, as they are or with low bits cut off, from any byte on. The high half alone is none: programs that have it
// there have the low half, too.
std::set<std::uint32_t> bytes_moved_by(std::uint64_t distance, std::span<const std::uint8_t> first,
                                       std::span<const std::uint8_t> second);

}  // namespace cgrt::saved
