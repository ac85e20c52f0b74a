#include "cgrt/saved/movable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/ir/describe.h"
#include "cgrt/ir/diff.h"
#include "cgrt/saved/aligned.h"
#include "cgrt/saved/block_index.h"
#include "cgrt/saved/graph_memory.h"
#include "cgrt/saved/threads.h"

namespace cgrt::saved {
namespace {

// Of a graph, so that memory full of what looks like addresses takes no more than some hundred MB here.
constexpr std::size_t kMaxWords = std::size_t{1} << 23;

std::string hex(std::uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// A word of the first save that may be an address.
struct Word {
  AddressWord place;
  std::uint64_t value = 0;
  std::optional<std::uint64_t> other = {};  // what the second has there
};

class Comparison {
 public:
  Comparison(const Folder& first, const Folder& second)
      : first_(first),
        second_(second),
        blocks_(first.manifest().blocks),
        other_blocks_(second.manifest().blocks),
        links_(first.manifest().blocks.size()) {}

  absl::StatusOr<std::vector<Movability>> run() {
    std::vector<Movability> result;
    for (const SavedGraph& graph : first_.manifest().graphs) {
      Movability& one = result.emplace_back();
      CGRT_ASSIGN_OR_RETURN(one.why_not, compare(graph, one));
      if (!one.why_not.empty()) one.addresses.clear();
    }
    return result;
  }

 private:
  // What is wrong, as all that return a text.
  absl::StatusOr<std::string> compare(const SavedGraph& graph, Movability& result) {
    const SavedGraph* const other = second_.find_graph(graph.name);
    if (other == nullptr) return absl::StrCat("The second save has no graph \"", graph.name, "\".");
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, first_.read_graph(graph));
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr other_ir, second_.read_graph(*other));
    if (std::string why = compare_code(graph, *other); !why.empty()) return why;
    const AlignedGraphs graphs = align(ir, other_ir);
    if (std::string why = compare_nodes(graphs, graph, *other); !why.empty()) return why;
    std::set<std::uint32_t> reached;
    if (std::string why = link_allocations(graphs, graph, *other, reached); !why.empty()) return why;
    if (std::string why = link_variables(graph, reached); !why.empty()) return why;
    CGRT_ASSIGN_OR_RETURN(std::string why, compare_memory(graph, *other, std::move(reached), result.addresses));
    if (why.empty()) result.open = open_bytes(graphs, graph);
    return why;
  }

  // The modules of kernels correspond.
  std::string compare_code(const SavedGraph& graph, const SavedGraph& other) {
    if (graph.kernels.size() != other.kernels.size() || graph.node_kernels != other.node_kernels) {
      return absl::StrCat("The graph runs ", counted(graph.kernels.size(), "kernel"), ", and in the second save ",
                          other.kernels.size(), ", or its nodes others.");
    }
    for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
      Kernel kernel = other.kernels[i];
      const std::uint32_t module = graph.kernels[i].module, other_module = std::exchange(kernel.module, module);
      const Hash code = first_.manifest().modules[module].code;
      if (kernel != graph.kernels[i] || second_.manifest().modules[other_module].code != code) {
        return absl::StrCat("Kernel \"", ir::printable(graph.kernels[i].symbol),
                            "\" has other code or attributes in the second save.");
      }
      const auto [linked, is_new] = modules_.emplace(module, other_module);
      if (linked->second != other_module) {
        return absl::StrCat("The kernels of module ", module, " are from several modules in the second save.");
      }
    }
    return {};
  }

  static std::string compare_nodes(const AlignedGraphs& graphs, const SavedGraph& graph, const SavedGraph& other) {
    if (graph.slices != other.slices) return "Copies have other slices in the second save.";
    const std::optional<ir::Difference> difference = ir::first_difference(graphs.first, graphs.second);
    if (!difference.has_value()) return {};
    return absl::StrCat("The graph is another in the second save; ", difference->where, ": ", difference->a, " and ",
                        difference->b, ".");
  }

  std::string link_allocations(const AlignedGraphs& graphs, const SavedGraph& graph, const SavedGraph& other,
                               std::set<std::uint32_t>& reached) {
    const ir::GraphIr& ir = graphs.first;
    for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
      if (!graphs.allocations[i].has_value()) continue;  // nothing is certain to point there
      const Range &range = graph.allocations[i], &other_range = other.allocations[*graphs.allocations[i]];
      if (range.offset != other_range.offset || !link(range.block, other_range.block)) {
        return absl::StrCat("Allocation ", i, " of the graph is in ", describe(range.block), " at byte ", range.offset,
                            ", and in the second save in another block or at byte ", other_range.offset, ".");
      }
      reached.insert(range.block);
    }
    for (std::uint32_t id = 0; id < ir.nodes.size(); ++id) {
      const auto* const kernel = std::get_if<ir::KernelParams>(&ir.nodes[id].params);
      if (kernel == nullptr) continue;
      for (const ir::InnerPointer& inner : kernel->pointers) {
        const std::uint32_t block = graph.allocations[inner.pointer.allocation].block;
        if (!has_moved(block)) {
          return absl::StrCat(ir::node_label(ir, id), " has at byte ", inner.at, " of its arguments a word that is in ",
                              has_not_moved(block));
        }
        const std::uint64_t address =
            address_of({block, graph.allocations[inner.pointer.allocation].offset}) + inner.pointer.offset;
        const std::optional<std::uint32_t> before = blocks_.find(address).before;
        const bool touches = before.has_value() && other_blocks_.find(other_blocks_[*links_[block]].address).before;
        if (touches && !move_together(*before, block)) {
          return absl::StrCat(ir::node_label(ir, id), " has at byte ", inner.at, " of its arguments the start of ",
                              describe(block), " or the end of ", describe(*before), ": which it is is not certain.");
        }
      }
    }
    return {};
  }

  // Variables of the modules that kernels are from.
  std::string link_variables(const SavedGraph& graph, std::set<std::uint32_t>& reached) {
    std::set<std::uint32_t> modules;
    for (const Kernel& kernel : graph.kernels) modules.insert(kernel.module);
    const std::vector<Block>&all = first_.manifest().blocks, &others = second_.manifest().blocks;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (all[i].variable.empty() || !modules.contains(all[i].module)) continue;
      reached.insert(i);
      const std::uint32_t other_module = modules_.at(all[i].module);
      const auto found = std::find_if(others.begin(), others.end(), [&](const Block& other) {
        return other.variable == all[i].variable && other.module == other_module;
      });
      if (found == others.end()) continue;
      if (!link(i, static_cast<std::uint32_t>(found - others.begin()))) {
        return absl::StrCat("Another block corresponds to ", describe(i), " in the second save.");
      }
    }
    return {};
  }

  // Whether two blocks correspond, from now on if nothing is said of them so far.
  bool link(std::uint32_t block, std::uint32_t other) {
    if (links_[block].has_value() || linked_.contains(other)) return links_[block] == other;
    const Block &a = blocks_[block], &b = other_blocks_[other];
    if (a.kind != b.kind || a.variable != b.variable) return false;
    if (!a.variable.empty()) {
      if (a.bytes != b.bytes || first_.manifest().modules[a.module].code != second_.manifest().modules[b.module].code) {
        return false;
      }
    }
    links_[block] = other;
    linked_.insert(other);
    return true;
  }

  std::uint64_t address_of(const AddressWord& place) const { return blocks_[place.block].address + place.offset; }
  bool is_aligned(const Word& word) const { return address_of(word.place) % kAddressBytes == 0; }
  bool has_moved(std::uint32_t block) const { return other_blocks_[*links_[block]].address != blocks_[block].address; }

  std::string describe(std::uint32_t block) const {
    const Block& one = blocks_[block];
    const std::string where = one.variable.empty() ? std::string(ir::to_string(one.kind)) : ir::printable(one.variable);
    return absl::StrCat("memory ", block, " (", where, ", ", counted(one.bytes, "byte"), " at ", hex(one.address), ")");
  }
  std::string has_not_moved(std::uint32_t block) const {
    return absl::StrCat(describe(block),
                        ", which has the same address in the second save, so that it may be a number. "
                        "Displace this memory there.");
  }

  // Of the pieces in these blocks, those words that may be addresses, ascending.
  absl::StatusOr<std::vector<Word>> scan(const SavedGraph& graph, const SavedGraph& other,
                                         const std::set<std::uint32_t>& blocks) {
    std::vector<const Piece*> pieces;
    for (const Piece& piece : graph.memory) {
      if (piece.hash.has_value() && blocks.contains(piece.range.block)) pieces.push_back(&piece);
    }
    const GraphMemory memory(second_, other);
    std::mutex mutex;
    absl::Status status;
    std::vector<Word> words;
    in_threads<Buffers>(pieces.size(), [&](std::size_t i, Buffers& buffers) {
      buffers.words.clear();
      const absl::Status one = scan(*pieces[i], memory, buffers);
      const std::lock_guard lock(mutex);
      status.Update(one);
      if (words.size() <= kMaxWords) words.insert(words.end(), buffers.words.begin(), buffers.words.end());
    });
    CGRT_RETURN_IF_ERROR(status);
    std::erase_if(words, [&](const Word& word) { return is_dead(graph, word.place); });
    std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) { return a.place < b.place; });
    return words;
  }

  struct Buffers {
    std::vector<std::byte> bytes, other, piece;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> known;
    std::vector<Word> words;
  };

  absl::Status scan(const Piece& piece, const GraphMemory& memory, Buffers& buffers) const {
    const Range& range = piece.range;
    buffers.bytes.resize(range.bytes);
    CGRT_RETURN_IF_ERROR(first_.read_piece(piece, buffers.bytes));
    Range other_range = range;
    other_range.block = links_[range.block].value_or(0);
    const bool is_there = links_[range.block].has_value();
    const bool is_equal = is_there && memory.has(other_range, *piece.hash);
    if (!is_equal && is_there) {
      CGRT_RETURN_IF_ERROR(memory.read(other_range, buffers.other, buffers.piece, buffers.known));
    }
    if (!is_there) buffers.known.clear();
    auto known = buffers.known.begin();
    const std::uint64_t skew = address_of({range.block, range.offset}) % kStep;
    for (std::uint64_t at = (kStep - skew) % kStep; at + kAddressBytes <= range.bytes; at += kStep) {
      Word word{{range.block, range.offset + at}};
      std::memcpy(&word.value, buffers.bytes.data() + at, kAddressBytes);
      if (word.value < kLowest || word.value >= kEnd) continue;
      if (is_equal) {
        word.other = word.value;
      } else {
        while (known != buffers.known.end() && known->second < at + kAddressBytes) ++known;
        if (known != buffers.known.end() && known->first <= at) {
          std::memcpy(&word.other.emplace(), buffers.other.data() + at, kAddressBytes);
        }
      }
      const BlockIndex::Found found = blocks_.find(word.value);
      const bool points_somewhere = found.in.has_value() || found.before.has_value();
      const bool has_changed = word.other.has_value() && *word.other != word.value;
      if (points_somewhere || (has_changed && is_aligned(word))) buffers.words.push_back(word);
    }
    return absl::OkStatus();
  }

  static bool is_dead(const SavedGraph& graph, const AddressWord& place) {
    const auto after =
        std::upper_bound(graph.dead.begin(), graph.dead.end(), place, [](const AddressWord& word, const Range& range) {
          return std::pair(word.block, word.offset) < std::pair(range.block, range.offset);
        });
    if (after == graph.dead.begin()) return false;
    const Range& range = *std::prev(after);
    return range.block == place.block && place.offset + kAddressBytes <= range.offset + range.bytes;
  }

  absl::StatusOr<std::string> compare_memory(const SavedGraph& graph, const SavedGraph& other,
                                             std::set<std::uint32_t> reached, std::vector<AddressWord>& addresses) {
    std::vector<Word> numbers;  // that differ
    std::set<std::uint32_t> next = reached;
    while (!next.empty()) {
      CGRT_ASSIGN_OR_RETURN(const std::vector<Word> words, scan(graph, other, next));
      if (words.size() + numbers.size() + addresses.size() > kMaxWords) {
        return absl::StrCat("More than ", kMaxWords, " words of its memory may be addresses.");
      }
      next.clear();
      for (const Word& word : words) {
        const BlockIndex::Found found = blocks_.find(word.value);
        if (!found.in.has_value() && !found.before.has_value()) {
          numbers.push_back(word);
          continue;
        }
        const absl::StatusOr<std::uint32_t> block = target_of(word, found);
        if (!is_aligned(word)) {
          if (!block.ok()) continue;
          return absl::StrCat("The 8 bytes from byte ", word.place.offset, " of ", describe(word.place.block),
                              " moved with ", describe(*block), " and are no multiple of 8: only words are followed.");
        }
        if (!block.ok()) return std::string(block.status().message());
        if (reached.insert(*block).second) next.insert(*block);
        addresses.push_back(word.place);
      }
    }
    std::sort(addresses.begin(), addresses.end());
    return check_numbers(numbers);
  }

  // The block that an address is of. An error: it is not certain that it is one.
  absl::StatusOr<std::uint32_t> target_of(const Word& word, const BlockIndex::Found& found) {
    if (!word.other.has_value()) return not_certain(word, found, "nothing there");
    std::vector<std::uint32_t> targets;
    if (found.in.has_value() && points_to(*found.in, word.value, *word.other)) targets.push_back(*found.in);
    if (found.before.has_value() && points_behind(*found.before, *word.other)) targets.push_back(*found.before);
    if (targets.empty()) return not_certain(word, found, hex(*word.other));
    for (const std::uint32_t target : targets) {
      if (has_moved(target)) continue;
      return absl::FailedPreconditionError(absl::StrCat("The word at byte ", word.place.offset, " of ",
                                                        describe(word.place.block), " is in ", has_not_moved(target)));
    }
    if (targets.size() == 2 && !move_together(targets[0], targets[1])) {
      return absl::FailedPreconditionError(absl::StrCat("The word at byte ", word.place.offset, " of ",
                                                        describe(word.place.block), ", ", hex(word.value),
                                                        ", is the start of ", describe(targets[0]), " or the end of ",
                                                        describe(targets[1]), ": which it is is not certain."));
    }
    return targets.front();
  }

  bool points_to(std::uint32_t block, std::uint64_t value, std::uint64_t other_value) {
    const std::uint64_t offset = value - blocks_[block].address;
    if (!links_[block].has_value()) {
      const std::optional<std::uint32_t> other = other_blocks_.find(other_value).in;
      if (!other.has_value() || other_value - other_blocks_[*other].address != offset || !link(block, *other)) {
        return false;
      }
    }
    const Block& other = other_blocks_[*links_[block]];
    return other_value - other.address == offset && offset < other.bytes;
  }

  bool points_behind(std::uint32_t block, std::uint64_t other_value) {
    if (!links_[block].has_value()) {
      const std::optional<std::uint32_t> other = other_blocks_.find(other_value).before;
      if (!other.has_value() || other_blocks_[*other].bytes != blocks_[block].bytes || !link(block, *other)) {
        return false;
      }
    }
    const Block& other = other_blocks_[*links_[block]];
    return other.bytes == blocks_[block].bytes && other.address + other.bytes == other_value;
  }

  // Blocks that touch stay so wherever they are loaded, and so do the variables of a module.
  bool move_together(std::uint32_t a, std::uint32_t b) const {
    const Block &one = blocks_[a], &other = blocks_[b];
    if (one.kind != other.kind) return false;
    if (one.variable.empty() || other.variable.empty()) return one.variable.empty() && other.variable.empty();
    return one.module == other.module;
  }

  absl::Status not_certain(const Word& word, const BlockIndex::Found& found, const std::string& other) const {
    const std::uint32_t block = found.in.has_value() ? *found.in : *found.before;
    std::string expected;
    if (links_[block].has_value()) {
      const std::uint64_t moved = other_blocks_[*links_[block]].address + (word.value - blocks_[block].address);
      expected = absl::StrCat(", where the same address is ", hex(moved));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "The word at byte ", word.place.offset, " of ", describe(word.place.block), ", ", hex(word.value), ", is in ",
        describe(block), ", and the second save has ", other, expected, ": whether it is an address is not certain."));
  }

  std::map<std::uint64_t, std::uint32_t> blocks_by_distance() const {
    std::map<std::uint64_t, std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      if (links_[i].has_value() && has_moved(i)) {
        blocks.emplace(other_blocks_[*links_[i]].address - blocks_[i].address, i);
      }
    }
    return blocks;
  }

  std::string describe(const OtherPointer& one, const SavedGraph& graph) const {
    constexpr const char kNotCertain[] = ": whether it is one is not certain.";
    if (!one.first.has_value()) return absl::StrCat("a value that is an address in the second save alone", kNotCertain);
    const std::string where = describe(graph.allocations[one.first->allocation].block);
    if (!one.has_second) return absl::StrCat("an address in ", where, ", and none in the second save", kNotCertain);
    return absl::StrCat("an address in ", where,
                        ", and in the second save that of another place: its memory has another layout there.");
  }

  // What compilers leave of the stack between the members of a structure may be addresses, too.
  std::vector<OpenBytes> open_bytes(const AlignedGraphs& graphs, const SavedGraph& graph) const {
    std::vector<OpenBytes> open;
    for (const OtherPointer& one : graphs.pointers) {
      OpenBytes& bytes = open.emplace_back(OpenBytes{.node = one.node});
      for (std::uint32_t i = 0; i < kAddressBytes; ++i) bytes.at.push_back(one.at + i);
      bytes.why_not = absl::StrCat(ir::node_label(graphs.first, one.node), " has at byte ", one.at,
                                   " of its arguments ", describe(one, graph));
    }
    const std::map<std::uint64_t, std::uint32_t> blocks = blocks_by_distance();
    struct Moved {
      std::uint32_t block = 0;  // that it moved as
      std::set<std::uint32_t> at = {};
    };
    for (const OtherBytes& one : graphs.bytes) {
      std::map<std::uint32_t, Moved> words;
      for (const auto& [distance, block] : blocks) {
        for (const std::uint32_t i : bytes_moved_by(distance, one.first, one.second)) {
          const std::uint32_t at = one.at + i;
          words.try_emplace(at / kAddressBytes, Moved{block}).first->second.at.insert(at);
        }
      }
      for (const auto& [number, word] : words) {
        open.push_back(
            {one.node,
             {word.at.begin(), word.at.end()},
             absl::StrCat(ir::node_label(graphs.first, one.node), " has in the argument at byte ", one.at,
                          " a value that is no address in the bundle, and moved in the second save as far as ",
                          describe(word.block), " did, or a part of it: whether it is one is not certain.")});
      }
    }
    return open;
  }

  // Numbers that moved as much as memory did may be what is left of an address.
  std::string check_numbers(const std::vector<Word>& numbers) const {
    const std::map<std::uint64_t, std::uint32_t> blocks = blocks_by_distance();
    for (const Word& word : numbers) {
      const auto found = blocks.find(*word.other - word.value);
      if (found == blocks.end()) continue;
      return absl::StrCat("The word at byte ", word.place.offset, " of ", describe(word.place.block), ", ",
                          hex(word.value), ", is in no memory of the bundle, and moved to ", hex(*word.other),
                          " as far as ", describe(found->second),
                          " did in the second save: whether it is an address is not certain.");
    }
    return {};
  }

  static constexpr std::uint64_t kStep = 4;  // halves of words, which no address may stand across

  // Words that may be addresses: nothing of a device is below 4 GB, and processes have 57 bits at most.
  static constexpr std::uint64_t kLowest = std::uint64_t{1} << 32, kEnd = std::uint64_t{1} << 57;

  const Folder &first_, &second_;
  const BlockIndex blocks_, other_blocks_;
  std::vector<std::optional<std::uint32_t>> links_;  // of the first's blocks: those of the second
  std::set<std::uint32_t> linked_;
  std::map<std::uint32_t, std::uint32_t> modules_;  // of kernels
};

absl::StatusOr<AddressWords> write_addresses(FolderWriter& writer, const std::vector<AddressWord>& addresses) {
  AddressWords words;
  if (addresses.empty()) return words;
  std::vector<std::uint64_t> offsets;
  for (const AddressWord& word : addresses) {
    if (words.blocks.empty() || words.blocks.back().block != word.block) words.blocks.push_back({word.block, 0});
    ++words.blocks.back().count;
    offsets.push_back(word.offset);
  }
  CGRT_ASSIGN_OR_RETURN(words.offsets, writer.add_addresses(offsets));
  return words;
}

}  // namespace

absl::StatusOr<std::vector<Movability>> compare_saves(const Folder& first, const Folder& second) {
  return Comparison(first, second).run();
}

absl::Status mark_movable(const Folder& folder, const std::vector<Movability>& graphs) {
  CGRT_ASSIGN_OR_RETURN(FolderWriter writer, FolderWriter::create(folder.path()));
  Manifest manifest = folder.manifest();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const Movability& one = graphs[i];
    SavedGraph& graph = manifest.graphs[i];
    graph.why_not_movable = one.open.empty() ? one.why_not : one.open.front().why_not;
    graph.is_movable = graph.why_not_movable.empty();
    CGRT_ASSIGN_OR_RETURN(graph.addresses,
                          write_addresses(writer, graph.is_movable ? one.addresses : std::vector<AddressWord>()));
  }
  CGRT_RETURN_IF_ERROR(writer.finish(manifest));
  return writer.remove_unused(manifest);
}

}  // namespace cgrt::saved
