#include "cgrt/saved/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/inspect/text_table.h"

namespace cgrt::saved {
namespace {

using inspect::Align;
using inspect::Table;

// "38 bytes", "31.5 kB", "2.1 MB"
std::string size_text(std::uint64_t bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  double value = static_cast<double>(bytes);
  const char* const units[] = {"kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (value /= 1000; value >= 999.95 && unit + 1 < std::size(units); value /= 1000) ++unit;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

// Files of a kind, each once.
class Sizes {
 public:
  void add(Hash hash, std::uint64_t bytes) {
    if (hashes_.insert(hash).second) bytes_ += bytes;
  }
  std::size_t count() const { return hashes_.size(); }
  std::string text() const { return size_text(bytes_); }

 private:
  std::set<Hash> hashes_;
  std::uint64_t bytes_ = 0;
};

void add_pieces(const SavedGraph& graph, Sizes& sizes) {
  for (const Piece& piece : graph.memory) {
    if (piece.hash.has_value()) sizes.add(*piece.hash, piece.range.bytes);
  }
}

std::string machine_text(const Machine& machine) {
  return absl::StrCat(machine.device, ", compute capability ", machine.major, ".", machine.minor, ", ",
                      counted(machine.multiprocessors, "multiprocessor"), ", driver ", machine.driver / 1000, ".",
                      machine.driver % 1000 / 10, "\n");
}

// "token int64[1], x"
std::string buffers_text(const std::vector<Buffer>& buffers) {
  std::vector<std::string> texts;
  for (const Buffer& buffer : buffers) {
    const std::string shape = buffer.shape.empty() ? "" : absl::StrCat("[", absl::StrJoin(buffer.shape, ","), "]");
    const char* space = buffer.dtype.empty() && shape.empty() ? "" : " ";
    texts.push_back(absl::StrCat(buffer.name, space, buffer.dtype, shape));
  }
  return absl::StrJoin(texts, ", ");
}

absl::Status append_graphs(const Folder& folder, std::string& out) {
  Table<6> table;
  table.add({"graph", "nodes", "launch", "kept memory", "inputs", "outputs"});
  for (const SavedGraph& graph : folder.manifest().graphs) {
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, folder.read_graph(graph));
    Sizes memory;
    add_pieces(graph, memory);
    table.add({graph.name, absl::StrCat(ir.nodes.size()), absl::StrCat(graph.launch), memory.text(),
               buffers_text(graph.inputs), buffers_text(graph.outputs)});
  }
  table.append_to(out, Align::kLeft);
  return absl::OkStatus();
}

// "decode: 16 bytes at 0x7f0000000200 change between launches, and the graph does not write them"
void append_changes(const Manifest& manifest, std::string& out) {
  constexpr std::size_t kMaxLines = 8;  // of a graph
  for (const SavedGraph& graph : manifest.graphs) {
    const std::vector<Range>& ranges = graph.changed_outside;
    if (ranges.empty()) continue;
    out += '\n';
    for (std::size_t i = 0; i < std::min(ranges.size(), kMaxLines); ++i) {
      absl::StrAppend(&out, graph.name, ": ", counted(ranges[i].bytes, "byte"), " at 0x",
                      absl::Hex(manifest.blocks[ranges[i].block].address + ranges[i].offset),
                      " change between launches, and the graph does not write them\n");
    }
    if (ranges.size() > kMaxLines) absl::StrAppend(&out, graph.name, ": and ", ranges.size() - kMaxLines, " more\n");
  }
}

// "decode: can be loaded anywhere, with 12 addresses in memory"; of graphs that were saved once nothing.
void append_movable(const Manifest& manifest, std::string& out) {
  const char* space = "\n";
  for (const SavedGraph& graph : manifest.graphs) {
    if (!graph.is_movable && graph.why_not_movable.empty()) continue;
    std::uint64_t words = 0;
    for (const AddressWords::InBlock& in_block : graph.addresses.blocks) words += in_block.count;
    const std::string with = words == 0
                                 ? "without addresses in memory"
                                 : absl::StrCat("with ", words, words == 1 ? " address" : " addresses", " in memory");
    const std::string says = graph.is_movable ? absl::StrCat("can be loaded anywhere, ", with)
                                              : absl::StrCat("only at its addresses: ", graph.why_not_movable);
    absl::StrAppend(&out, std::exchange(space, ""), graph.name, ": ", says, "\n");
  }
}

void append_modules(const Manifest& manifest, std::string& out) {
  std::vector<std::set<std::string_view>> kernels(manifest.modules.size());
  std::vector<std::size_t> variables(manifest.modules.size());
  for (const SavedGraph& graph : manifest.graphs) {
    for (const Kernel& kernel : graph.kernels) kernels[kernel.module].insert(kernel.symbol);
  }
  for (const Block& block : manifest.blocks) {
    if (!block.variable.empty()) ++variables[block.module];
  }
  Table<5> table;
  table.add({"module", "size", "kernels", "variables", "code"});
  for (std::size_t i = 0; i < manifest.modules.size(); ++i) {
    const Module& module = manifest.modules[i];
    table.add({absl::StrCat(i), size_text(module.bytes), absl::StrCat(kernels[i].size()), absl::StrCat(variables[i]),
               to_string(module.code)});
  }
  table.append_to(out, Align::kLeft);
}

void append_blocks(const Manifest& manifest, std::string& out) {
  std::map<ir::MemoryKind, std::pair<std::size_t, std::uint64_t>> kinds;
  for (const Block& block : manifest.blocks) {
    if (!block.variable.empty()) continue;
    auto& [count, bytes] = kinds[block.kind];
    ++count;
    bytes += block.bytes;
  }
  Table<3> table;
  table.add({"memory", "blocks", "size"});
  for (const auto& [kind, sums] : kinds) {
    table.add({ir::to_string(kind), absl::StrCat(sums.first), size_text(sums.second)});
  }
  table.append_to(out, Align::kLeft);
}

}  // namespace

std::string summary(const Manifest& manifest) {
  Sizes code, memory;
  for (const Module& module : manifest.modules) code.add(module.code, module.bytes);
  for (const SavedGraph& graph : manifest.graphs) add_pieces(graph, memory);
  const std::vector<SavedGraph>& graphs = manifest.graphs;
  const auto movable =
      std::count_if(graphs.begin(), graphs.end(), [](const SavedGraph& graph) { return graph.is_movable; });
  const std::string where = movable == 0 ? "" : absl::StrCat(" (", movable, " movable)");
  return absl::StrCat(counted(graphs.size(), "graph"), where, ", ", counted(code.count(), "module"), " (", code.text(),
                      "), ", memory.count(), memory.count() == 1 ? " piece" : " pieces", " of memory (", memory.text(),
                      ")");
}

absl::StatusOr<std::string> to_text(const Folder& folder) {
  const Manifest& manifest = folder.manifest();
  std::string out = absl::StrCat(summary(manifest), "\n", machine_text(manifest.machine), "\n");
  CGRT_RETURN_IF_ERROR(append_graphs(folder, out));
  append_changes(manifest, out);
  append_movable(manifest, out);
  out += '\n';
  append_modules(manifest, out);
  out += '\n';
  append_blocks(manifest, out);
  return out;
}

}  // namespace cgrt::saved
