// Which bytes the nodes of a graph touch for certain. Internal to inspect/.
//
//   for (const Region& region : regions_of(graph.nodes[3])) { ... }
//
// Of a copy of several slices the first one: the distance between slices is not in the graph. Of several rows whose
// pitch is not known the first row. Waits for memory are left out: they read what others write, at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// `rows` of `width` bytes each, `pitch` bytes apart and not overlapping.
struct Region {
  std::uint32_t allocation = 0;
  std::uint64_t begin = 0, width = 0, pitch = 0, rows = 1;
  bool is_write = false;
};

std::vector<Region> regions_of(const ir::Node& node);

// How far into its allocation the node goes at least, with all rows and slices; those of `regions_of`, in their order.
// Waits for memory count.
struct Extent {
  ir::Pointer start;
  std::uint64_t end = 0;
};
std::vector<Extent> extents_of(const ir::Node& node);

// The first byte that both have, an offset into their allocation; nullopt when there is none. Of more than a million
// rows with different pitches nothing is said.
struct Common {
  bool is_known = true;
  std::optional<std::uint64_t> byte = {};
};
Common common_byte(const Region& a, const Region& b);

// "device#0 [256, 512)"
std::string describe_range(const ir::GraphIr& graph, std::uint32_t allocation, std::uint64_t begin, std::uint64_t end);

// Sums and products stop at the largest number.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b);
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

}  // namespace cgrt::inspect
