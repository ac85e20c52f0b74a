#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/regions.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/validate.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {
namespace {

using inspect::saturating_product;
using inspect::saturating_sum;

template <class... Parts>
absl::Status refuse(const std::string& what, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", parts..., "."));
}

std::string quoted(const char* kind, std::string_view name) {
  return absl::StrCat(kind, " \"", ir::printable(name), "\"");
}

// Names that go to the driver or a terminal as they are.
bool is_text(std::string_view text) { return ir::printable(text) == text; }

bool is_in(const Range& range, const std::vector<Block>& blocks) {
  const std::uint64_t bytes = blocks[range.block].bytes;
  return range.offset <= bytes && range.bytes <= bytes - range.offset;
}

std::string describe(const Range& range) {
  return absl::StrCat("[", range.offset, ", ", saturating_sum(range.offset, range.bytes), ") of block ", range.block);
}

absl::Status check_range(const std::string& what, const Range& range, const std::vector<Block>& blocks) {
  if (range.block >= blocks.size()) {
    return refuse(what, "is in block ", range.block, "; the bundle has ", counted(blocks.size(), "block"));
  }
  if (range.bytes == 0) return refuse(what, "has 0 bytes");
  if (is_in(range, blocks)) return absl::OkStatus();
  return refuse(what, "is ", describe(range), ", which has ", counted(blocks[range.block].bytes, "byte"));
}

// Ascending, and none overlaps the one before.
template <class Item, class RangeOf>
absl::Status check_ranges(const std::string& whose, const char* what, const std::vector<Item>& items,
                          const std::vector<Block>& blocks, RangeOf range_of) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Range& range = range_of(items[i]);
    const std::string name = absl::StrCat(whose, ": ", what, " ", i);
    CGRT_RETURN_IF_ERROR(check_range(name, range, blocks));
    if (i == 0) continue;
    const Range& before = range_of(items[i - 1]);
    if (range.block > before.block) continue;
    if (range.block < before.block || range.offset < before.offset + before.bytes) {
      return refuse(name, "is ", describe(range), ", and the one before ", describe(before),
                    "; they ascend and do not overlap");
    }
  }
  return absl::OkStatus();
}

absl::Status check_ranges(const std::string& whose, const char* what, const std::vector<Range>& ranges,
                          const std::vector<Block>& blocks) {
  return check_ranges(whose, what, ranges, blocks, [](const Range& range) -> const Range& { return range; });
}

absl::Status check_blocks(const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.blocks.size(); ++i) {
    const Block& block = manifest.blocks[i];
    const std::string name = absl::StrCat("block ", i);
    switch (block.kind) {
      case ir::MemoryKind::kDevice:
      case ir::MemoryKind::kPinnedHost:
      case ir::MemoryKind::kManaged:
      case ir::MemoryKind::kPageableHost: break;
      default: return refuse(name, "is of the kind \"", ir::to_string(block.kind), "\", which no bundle has");
    }
    if (block.address == 0 || block.bytes == 0 || block.bytes > UINT64_MAX - block.address) {
      return refuse(name, "has the address 0x", absl::Hex(block.address), " and ", counted(block.bytes, "byte"));
    }
    if (i > 0 && block.address < manifest.blocks[i - 1].address + manifest.blocks[i - 1].bytes) {
      return refuse(name, "has the address 0x", absl::Hex(block.address), ", and the one before ends at 0x",
                    absl::Hex(manifest.blocks[i - 1].address + manifest.blocks[i - 1].bytes),
                    "; blocks ascend and do not overlap");
    }
    if (block.variable.empty()) {
      if (block.module != 0) return refuse(name, "is of module ", block.module, " and no variable");
      continue;
    }
    const std::string variable = absl::StrCat(name, ", ", quoted("variable", block.variable));
    if (!is_text(block.variable)) return refuse(variable, "has characters that no name has");
    if (block.kind != ir::MemoryKind::kDevice && block.kind != ir::MemoryKind::kManaged) {
      return refuse(variable, "is of the kind \"", ir::to_string(block.kind),
                    "\"; variables are in device or managed memory");
    }
    if (block.module >= manifest.modules.size()) {
      return refuse(variable, "is of module ", block.module, "; the bundle has ",
                    counted(manifest.modules.size(), "module"));
    }
  }
  return absl::OkStatus();
}

absl::Status check_modules(const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.modules.size(); ++i) {
    const std::uint64_t bytes = manifest.modules[i].bytes;
    if (bytes != 0 && bytes <= kMaxCodeBytes) continue;
    return refuse(absl::StrCat("module ", i), "has ", counted(bytes, "byte"), "; an image has 1 to ", kMaxCodeBytes);
  }
  return absl::OkStatus();
}

absl::Status check_kernels(const std::string& name, const Manifest& manifest, const SavedGraph& graph) {
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const Kernel& kernel = graph.kernels[i];
    const std::string what = absl::StrCat(name, ": kernel ", i, " \"", ir::printable(kernel.symbol), "\"");
    if (kernel.symbol.empty() || !is_text(kernel.symbol)) return refuse(what, "has no name that a symbol can have");
    if (kernel.module >= manifest.modules.size()) {
      return refuse(what, "is of module ", kernel.module, "; the bundle has ",
                    counted(manifest.modules.size(), "module"));
    }
  }
  for (std::size_t i = 0; i < graph.node_kernels.size(); ++i) {
    if (graph.node_kernels[i] < graph.kernels.size()) continue;
    return refuse(name, "kernel node ", i, " runs kernel ", graph.node_kernels[i], "; the graph has ",
                  counted(graph.kernels.size(), "kernel"));
  }
  return absl::OkStatus();
}

absl::Status check_buffers(const std::string& graph, const char* kind, const std::vector<Buffer>& buffers,
                           const std::vector<Block>& blocks) {
  std::set<std::string_view> names;
  for (const Buffer& buffer : buffers) {
    const std::string what = absl::StrCat(graph, ": ", quoted(kind, buffer.name));
    if (!is_name(buffer.name)) return refuse(what, "is no name: letters, digits, '_', '-' and '.', at most 100");
    if (!names.insert(buffer.name).second) return refuse(what, "is there twice");
    if (!is_text(buffer.dtype)) return refuse(what, "has a dtype with characters that no name has");
    CGRT_RETURN_IF_ERROR(check_range(what, buffer.range, blocks));
  }
  return absl::OkStatus();
}

absl::Status check_addresses(const std::string& name, const SavedGraph& graph, const std::vector<Block>& blocks) {
  if (!is_text(graph.why_not_movable)) return refuse(name, "says why it is not movable with characters no text has");
  if (graph.is_movable && !graph.why_not_movable.empty()) return refuse(name, "is movable and says why it is not");
  const std::vector<AddressWords::InBlock>& words = graph.addresses.blocks;
  if (!graph.is_movable && !words.empty()) return refuse(name, "is not movable and says which words are addresses");
  if (words.empty() && graph.addresses.offsets != Hash{}) return refuse(name, "has a file of addresses and none in it");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& [block, count] = words[i];
    if (block >= blocks.size()) {
      return refuse(name, "has addresses in block ", block, "; the bundle has ", counted(blocks.size(), "block"));
    }
    if (count == 0 || count > blocks[block].bytes / kAddressBytes) {
      return refuse(name, "has ", count, " addresses in block ", block, ", which has ",
                    counted(blocks[block].bytes, "byte"));
    }
    if (i > 0 && block <= words[i - 1].block) {
      return refuse(name, "addresses in block ", block, " come after those in block ", words[i - 1].block);
    }
  }
  return absl::OkStatus();
}

absl::Status check_graph(const Manifest& manifest, const SavedGraph& graph) {
  const std::vector<Block>& blocks = manifest.blocks;
  const std::string name = quoted("graph", graph.name);
  if (!is_name(graph.name)) return refuse(name, "is no name: letters, digits, '_', '-' and '.', at most 100");
  if (graph.launch == 0) return refuse(name, "is of launch 0; the first is 1");
  CGRT_RETURN_IF_ERROR(check_kernels(name, manifest, graph));
  for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
    CGRT_RETURN_IF_ERROR(check_range(absl::StrCat(name, ": allocation ", i), graph.allocations[i], blocks));
  }
  for (std::size_t i = 1; i < graph.slices.size(); ++i) {
    if (graph.slices[i].node > graph.slices[i - 1].node) continue;
    return refuse(name, "slices of node ", graph.slices[i].node, " come after those of node ",
                  graph.slices[i - 1].node);
  }
  CGRT_RETURN_IF_ERROR(check_ranges(name, "piece", graph.memory, blocks,
                                    [](const Piece& piece) -> const Range& { return piece.range; }));
  for (std::size_t i = 0; i < graph.memory.size(); ++i) {
    const Piece& piece = graph.memory[i];
    if (!piece.hash.has_value() || piece.range.bytes <= kMaxPieceBytes) continue;
    return refuse(absl::StrCat(name, ": piece ", i), "has ", piece.range.bytes, " bytes; a file has at most ",
                  kMaxPieceBytes);
  }
  CGRT_RETURN_IF_ERROR(check_ranges(name, "expected range", graph.expected.ranges, blocks));
  if (graph.expected.ranges.empty() && graph.expected.hashes != Hash{}) {
    return refuse(name, "has hashes of memory after the launch and no ranges of them");
  }
  CGRT_RETURN_IF_ERROR(check_buffers(name, "input", graph.inputs, blocks));
  CGRT_RETURN_IF_ERROR(check_buffers(name, "output", graph.outputs, blocks));
  CGRT_RETURN_IF_ERROR(check_ranges(name, "range that changes outside", graph.changed_outside, blocks));
  CGRT_RETURN_IF_ERROR(check_ranges(name, "dead range", graph.dead, blocks));
  return check_addresses(name, graph, blocks);
}

// What the nodes of a graph reach.
class NodeChecker {
 public:
  NodeChecker(const Manifest& manifest, const SavedGraph& saved, const ir::GraphIr& graph)
      : manifest_(manifest), saved_(saved), graph_(graph) {}

  absl::Status check(std::uint32_t id) const {
    const ir::Node& node = graph_.nodes[id];
    absl::Status status;
    const auto check_pointer = [&](const ir::Pointer& pointer) {
      if (status.ok()) status = check_bytes(id, pointer, 1);
    };
    if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params)) {
      for (const ir::InnerPointer& inner : kernel->pointers) check_pointer(inner.pointer);
      if (kernel->attributes.access_policy.bytes != 0) check_pointer(kernel->attributes.access_policy.base);
    } else if (const auto* copy = std::get_if<ir::MemcpyParams>(&node.params)) {
      return check_copy(id, *copy);
    } else if (const auto* set = std::get_if<ir::MemsetParams>(&node.params)) {
      const std::uint64_t width = saturating_product(set->width, set->element_bytes);
      return check_rows(id, set->destination, width, set->pitch, set->height);
    } else if (const auto* alloc = std::get_if<ir::MemAllocParams>(&node.params)) {
      return check_bytes(id, alloc->address, alloc->bytes);
    } else if (const auto* free = std::get_if<ir::MemFreeParams>(&node.params)) {
      check_pointer(free->address);
    } else if (const auto* batch = std::get_if<ir::BatchMemOpParams>(&node.params)) {
      for (const ir::MemOp& op : batch->operations) CGRT_RETURN_IF_ERROR(check_bytes(id, op.address, op.bytes));
    }
    return status;
  }

 private:
  // Rows of one slice are `height` where nothing else is said.
  Slices slices_of(std::uint32_t id, const ir::MemcpyParams& copy) const {
    const auto found = std::lower_bound(saved_.slices.begin(), saved_.slices.end(), id,
                                        [](const Slices& slices, std::uint32_t node) { return slices.node < node; });
    return found != saved_.slices.end() && found->node == id ? *found : Slices{id, copy.height, copy.height};
  }

  absl::Status check_copy(std::uint32_t id, const ir::MemcpyParams& copy) const {
    const Slices slices = slices_of(id, copy);
    const auto rows = [&](std::uint64_t rows_of_slice) {
      return saturating_sum(saturating_product(copy.depth - 1, rows_of_slice), copy.height);
    };
    if (copy.depth > 1 && std::min(slices.source_rows, slices.destination_rows) < copy.height) {
      return offence(id, "copies ", copy.height, " rows of slices of ", slices.source_rows, " and ",
                     slices.destination_rows);
    }
    if (copy.source.has_value()) {
      CGRT_RETURN_IF_ERROR(check_rows(id, *copy.source, copy.width_bytes, copy.source_pitch, rows(slices.source_rows)));
    }
    if (!copy.destination.has_value()) return absl::OkStatus();
    return check_rows(id, *copy.destination, copy.width_bytes, copy.destination_pitch, rows(slices.destination_rows));
  }

  absl::Status check_rows(std::uint32_t id, const ir::Pointer& start, std::uint64_t width, std::uint64_t pitch,
                          std::uint64_t rows) const {
    if (rows > 1 && pitch < width) return offence(id, "has rows of ", width, " bytes, ", pitch, " bytes apart");
    return check_bytes(id, start, saturating_sum(saturating_product(rows - 1, pitch), width));
  }

  absl::Status check_bytes(std::uint32_t id, const ir::Pointer& start, std::uint64_t bytes) const {
    const Range& allocation = saved_.allocations[start.allocation];
    const Range reached{allocation.block, saturating_sum(allocation.offset, start.offset), bytes};
    if (is_in(reached, manifest_.blocks)) return absl::OkStatus();
    return offence(id, "reaches ", describe(reached), ", which has ",
                   counted(manifest_.blocks[allocation.block].bytes, "byte"));
  }

  template <class... Parts>
  absl::Status offence(std::uint32_t id, const Parts&... parts) const {
    return refuse(absl::StrCat(quoted("graph", saved_.name), ": ", ir::node_label(graph_, id)), parts...);
  }

  const Manifest& manifest_;
  const SavedGraph& saved_;
  const ir::GraphIr& graph_;
};

absl::Status check_allocations(const std::string& name, const SavedGraph& saved, const ir::GraphIr& graph) {
  if (saved.allocations.size() != graph.allocations.size()) {
    return refuse(name, "has ", counted(graph.allocations.size(), "allocation"), ", and the manifest places of ",
                  saved.allocations.size());
  }
  for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
    if (saved.allocations[i].bytes >= graph.allocations[i].bytes) continue;
    return refuse(absl::StrCat(name, ": allocation ", i), "has ", counted(graph.allocations[i].bytes, "byte"),
                  ", and its place ", saved.allocations[i].bytes);
  }
  return absl::OkStatus();
}

}  // namespace

std::uint64_t expected_hashes(const ExpectedMemory& expected) {
  std::uint64_t count = 0;
  for (const Range& range : expected.ranges)
    count += range.bytes / kExpectedBytes + (range.bytes % kExpectedBytes != 0);
  return count;
}

bool is_name(std::string_view text) {
  constexpr std::size_t kMaxName = 100;
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !text.empty() && text.size() <= kMaxName && text.front() != '.' &&
         text.find_first_not_of(kCharacters) == text.npos;
}

absl::Status validate(const Manifest& manifest) {
  if (!is_text(manifest.machine.device)) return refuse("machine", "its device has characters that no name has");
  CGRT_RETURN_IF_ERROR(check_modules(manifest));
  CGRT_RETURN_IF_ERROR(check_blocks(manifest));
  std::set<std::string_view> names;
  for (const SavedGraph& graph : manifest.graphs) {
    CGRT_RETURN_IF_ERROR(check_graph(manifest, graph));
    if (!names.insert(graph.name).second) return refuse(quoted("graph", graph.name), "is there twice");
  }
  return absl::OkStatus();
}

absl::Status validate(const Manifest& manifest, const SavedGraph& saved, const ir::GraphIr& graph) {
  const std::string name = quoted("graph", saved.name);
  if (const absl::Status status = ir::validate(graph); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
  }
  const auto is_kernel = [](const ir::Node& node) { return node.kind == ir::NodeKind::kKernel; };
  const auto kernels = static_cast<std::size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), is_kernel));
  if (saved.node_kernels.size() != kernels) {
    return refuse(name, "has ", counted(kernels, "kernel node"), ", and the manifest kernels of ",
                  saved.node_kernels.size());
  }
  CGRT_RETURN_IF_ERROR(check_allocations(name, saved, graph));
  for (const Slices& slices : saved.slices) {
    if (slices.node < graph.nodes.size() && graph.nodes[slices.node].kind == ir::NodeKind::kMemcpy) continue;
    return refuse(name, "has slices of node ", slices.node, ", which is no copy");
  }
  const NodeChecker checker(manifest, saved, graph);
  for (std::uint32_t id = 0; id < graph.nodes.size(); ++id) CGRT_RETURN_IF_ERROR(checker.check(id));
  return absl::OkStatus();
}

}  // namespace cgrt::saved
