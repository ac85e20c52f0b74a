// What each kernel's launch alone says.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/inspect/lint_rules.h"
#include "cgrt/ir/describe.h"

namespace cgrt::inspect {
namespace {

using ir::describe;

std::uint64_t volume(const ir::Dim3& dim) { return std::uint64_t{dim.x} * dim.y * dim.z; }

// Limits of all devices since compute capability 3.0. Products are of factors that were found small before.
std::string geometry_offence(const ir::KernelParams& kernel) {
  const auto& [grid, block] = std::pair(kernel.grid, kernel.block);
  const ir::Dim3& cluster = kernel.attributes.cluster;
  const auto has_zero = [](const ir::Dim3& dim) { return dim.x == 0 || dim.y == 0 || dim.z == 0; };
  if (!ir::has_sizes(kernel)) return "";
  if (has_zero(grid)) return absl::StrCat("the grid ", describe(grid), " has no blocks");
  if (has_zero(block)) return absl::StrCat("the block ", describe(block), " has no threads");
  if (grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff) {
    return absl::StrCat("the grid ", describe(grid), " is larger than (2147483647,65535,65535)");
  }
  if (block.x > 1024 || block.y > 1024 || block.z > 64) {
    return absl::StrCat("the block ", describe(block), " is larger than (1024,1024,64)");
  }
  if (volume(block) > 1024) {
    return absl::StrCat("the block ", describe(block), " has ", volume(block), " threads, and 1024 is the limit");
  }
  if (has_zero(cluster)) return absl::StrCat("the cluster ", describe(cluster), " has no blocks");
  if (cluster.x > 16 || cluster.y > 16 || cluster.z > 16 || volume(cluster) > 16) {
    return absl::StrCat("the cluster ", describe(cluster), " has more than 16 blocks");
  }
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return absl::StrCat("the grid ", describe(grid), " is no multiple of the cluster ", describe(cluster));
  }
  return "";
}

// cudaMalloc's addresses on Linux lie in the area of mmap, at 0x7e.. and 0x7f.., where no other number is likely: as an
// integer it is above 10^14, as a double below 10^-300. The stack, above 0x7ff0.., is left out: what is left of it
// fills gaps. So do halves of addresses, behind integers of 4 bytes: hence no small integers in the lower half.
bool looks_like_address(std::uint64_t word) {
  const auto low = static_cast<std::uint32_t>(word);
  return word >= 0x7e00'0000'0000 && word < 0x7ff0'0000'0000 && low >= 1 << 20 && low % 16 == 0;
}

std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) word = word << 8 | bytes[i];
  return word;
}

// "argument 2 (0x7f0000001000)"; empty when there is none. Structures are left out, for their gaps.
std::string find_stale(const ir::GraphIr& graph, const ir::KernelParams& kernel) {
  const std::vector<ir::Argument> arguments = arguments_of(graph, kernel);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].bytes.size() != 8) continue;
    const std::uint64_t word = word_of(arguments[i].bytes);
    if (looks_like_address(word)) return absl::StrCat("argument ", i, " (0x", absl::Hex(word), ")");
  }
  return "";
}

}  // namespace

void lint_launches(const ir::GraphIr& graph, Report& report) {
  std::vector<std::uint32_t> stale, with_attributes;
  std::string first_stale, first_attributes;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* kernel = std::get_if<ir::KernelParams>(&graph.nodes[n].params);
    if (kernel == nullptr) continue;
    if (const std::string offence = geometry_offence(*kernel); !offence.empty()) {
      report.add("launch-geometry", Severity::kError, {n}, absl::StrCat(ir::node_label(graph, n), ": ", offence, "."));
    }
    if (const std::string found = find_stale(graph, *kernel); !found.empty()) {
      if (stale.empty()) first_stale = absl::StrCat(ir::node_label(graph, n), ": ", found);
      stale.push_back(n);
    }
    ir::LaunchAttributes kept = kernel->attributes;
    kept.cluster = {};  // an update takes a cluster over: ir/verdict.h
    if (const std::string attributes = describe(graph, kept); !attributes.empty()) {
      if (with_attributes.empty()) first_attributes = absl::StrCat(ir::node_label(graph, n), ": ", attributes);
      with_attributes.push_back(n);
    }
  }
  const auto and_more = [](const std::vector<std::uint32_t>& nodes) {
    return nodes.size() == 1 ? "" : absl::StrCat(", and in ", counted(nodes.size() - 1, "more node"));
  };
  if (!stale.empty()) {
    report.add(
        "stale-pointer", Severity::kWarning, stale,
        absl::StrCat(first_stale, " looks like an address, and the driver knew no memory there", and_more(stale), "."));
  }
  if (!with_attributes.empty()) {
    report.add("update-attributes", Severity::kNote, with_attributes,
               absl::StrCat(first_attributes, and_more(with_attributes), "."));
  }
}

}  // namespace cgrt::inspect
