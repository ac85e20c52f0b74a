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

// An argument that has other bytes in the second save.
struct OtherBytes {
  std::uint32_t node = 0, at = 0;  // where the argument begins in the parameter buffer
  std::vector<std::uint8_t> value, other;
};

// Whether `other` is `value` with what an address has in it that moved by `distance`: all 8 bytes or the low 4 of them,
// as they are or with low bits cut off, from any byte on. The high half alone is none: programs that have it there have
// the low half, too.
bool moved_by(std::uint64_t distance, std::span<const std::uint8_t> value, std::span<const std::uint8_t> other) {
  constexpr int kMaxShift = 12;
  const auto differs_as = [&](auto zero) {
    using Part = decltype(zero);
    for (std::size_t at = 0; at + sizeof(Part) <= value.size(); ++at) {
      Part a = 0, b = 0;
      std::memcpy(&a, value.data() + at, sizeof(Part));
      std::memcpy(&b, other.data() + at, sizeof(Part));
      if (a == b) continue;
      for (int shift = 0; shift <= kMaxShift; ++shift) {
        const auto part = static_cast<Part>(static_cast<std::int64_t>(distance) >> shift);
        const auto difference = static_cast<Part>(b - a);
        if (difference == part || (shift > 0 && difference == static_cast<Part>(part + 1))) return true;
      }
    }
    return false;
  };
  return differs_as(std::uint64_t{0}) || differs_as(std::uint32_t{0});
}

// Takes bytes of arguments that differ out of `other_ir`: they become those of `ir`.
std::vector<OtherBytes> take_other_bytes(const ir::GraphIr& ir, ir::GraphIr& other_ir) {
  std::vector<OtherBytes> taken;
  for (std::uint32_t id = 0; id < std::min(ir.nodes.size(), other_ir.nodes.size()); ++id) {
    const auto* const kernel = std::get_if<ir::KernelParams>(&ir.nodes[id].params);
    auto* const other = std::get_if<ir::KernelParams>(&other_ir.nodes[id].params);
    const bool is_alike = kernel != nullptr && other != nullptr && kernel->pointers == other->pointers &&
                          kernel->arguments.size() == other->arguments.size() &&
                          function_of(ir, *kernel) == function_of(other_ir, *other);
    if (!is_alike) continue;
    for (const ir::Parameter& parameter : function_of(ir, *kernel).parameters) {
      const std::span<const std::uint8_t> value =
          std::span(kernel->arguments).subspan(parameter.offset, parameter.size);
      const std::span<std::uint8_t> there = std::span(other->arguments).subspan(parameter.offset, parameter.size);
      if (std::equal(value.begin(), value.end(), there.begin())) continue;
      taken.push_back({id, parameter.offset, {value.begin(), value.end()}, {there.begin(), there.end()}});
      std::copy(value.begin(), value.end(), there.begin());
    }
  }
  return taken;
}

// The blocks of a bundle by address.
class BlockIndex {
 public:
  explicit BlockIndex(const std::vector<Block>& blocks) : blocks_(blocks) {}

  // That `address` is in, and that which ends there.
  struct Found {
    std::optional<std::uint32_t> in, before;
  };
  Found find(std::uint64_t address) const {
    if (blocks_.empty() || address < blocks_.front().address) return {};
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                        [](std::uint64_t value, const Block& block) { return value < block.address; });
    Found found;
    const auto last = static_cast<std::uint32_t>(after - blocks_.begin()) - 1;
    if (address - blocks_[last].address < blocks_[last].bytes) {
      found.in = last;
      if (address == blocks_[last].address && last > 0 && end_of(last - 1) == address) found.before = last - 1;
    } else if (address == end_of(last)) {
      found.before = last;
    }
    return found;
  }
  const Block& operator[](std::uint32_t i) const { return blocks_[i]; }
  std::uint64_t end_of(std::uint32_t i) const { return blocks_[i].address + blocks_[i].bytes; }

 private:
  const std::vector<Block>& blocks_;
};

// Memory of one graph of a bundle, read by range.
class Memory {
 public:
  Memory(const Folder& folder, const SavedGraph& graph) : folder_(folder), pieces_(graph.memory) {}

  // Sets `out` to what is there, and `known` to where something is: parts of `out`, ascending.
  absl::Status read(const Range& range, std::vector<std::byte>& out, std::vector<std::byte>& piece_bytes,
                    std::vector<std::pair<std::uint64_t, std::uint64_t>>& known) const {
    out.assign(range.bytes, std::byte{0});
    known.clear();
    const std::uint64_t end = range.offset + range.bytes;
    auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), range, [](const Range& wanted, const Piece& one) {
      return std::pair(wanted.block, wanted.offset) < std::pair(one.range.block, one.range.offset + one.range.bytes);
    });
    for (; piece != pieces_.end() && piece->range.block == range.block && piece->range.offset < end; ++piece) {
      const std::uint64_t first = std::max(range.offset, piece->range.offset);
      const std::uint64_t last = std::min(end, piece->range.offset + piece->range.bytes);
      if (!known.empty() && known.back().second == first - range.offset) {
        known.back().second = last - range.offset;
      } else {
        known.emplace_back(first - range.offset, last - range.offset);
      }
      if (!piece->hash.has_value()) continue;
      piece_bytes.resize(piece->range.bytes);
      CGRT_RETURN_IF_ERROR(folder_.read_piece(*piece, piece_bytes));
      std::memcpy(out.data() + (first - range.offset), piece_bytes.data() + (first - piece->range.offset),
                  last - first);
    }
    return absl::OkStatus();
  }

  bool has(const Range& range, const Hash& hash) const {
    const auto found =
        std::lower_bound(pieces_.begin(), pieces_.end(), range, [](const Piece& one, const Range& wanted) {
          return std::pair(one.range.block, one.range.offset) < std::pair(wanted.block, wanted.offset);
        });
    return found != pieces_.end() && found->range == range && found->hash == hash;
  }

 private:
  const Folder& folder_;
  const std::vector<Piece>& pieces_;
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
      CGRT_ASSIGN_OR_RETURN(one.why_not, compare(graph, one.addresses));
      if (!one.why_not.empty()) one.addresses.clear();
    }
    return result;
  }

 private:
  // What is wrong, as all that return a text.
  absl::StatusOr<std::string> compare(const SavedGraph& graph, std::vector<AddressWord>& addresses) {
    const SavedGraph* const other = second_.find_graph(graph.name);
    if (other == nullptr) return absl::StrCat("The second save has no graph \"", graph.name, "\".");
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, first_.read_graph(graph));
    CGRT_ASSIGN_OR_RETURN(ir::GraphIr other_ir, second_.read_graph(*other));
    if (std::string why = compare_code(graph, *other); !why.empty()) return why;
    const std::vector<OtherBytes> other_bytes = take_other_bytes(ir, other_ir);
    if (std::string why = compare_nodes(ir, other_ir, graph, *other); !why.empty()) return why;
    std::set<std::uint32_t> reached;
    if (std::string why = link_allocations(ir, graph, *other, reached); !why.empty()) return why;
    if (std::string why = link_variables(graph, reached); !why.empty()) return why;
    CGRT_ASSIGN_OR_RETURN(std::string why, compare_memory(graph, *other, std::move(reached), addresses));
    return why.empty() ? check_arguments(ir, other_bytes) : std::move(why);
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

  // Allocations may have other sizes: a framework may take all memory that is free.
  static std::string compare_nodes(const ir::GraphIr& ir, ir::GraphIr& other_ir, const SavedGraph& graph,
                                   const SavedGraph& other) {
    if (graph.slices != other.slices) return "Copies have other slices in the second save.";
    for (std::size_t i = 0; i < std::min(ir.allocations.size(), other_ir.allocations.size()); ++i) {
      other_ir.allocations[i].bytes = ir.allocations[i].bytes;
    }
    const std::optional<ir::Difference> difference = ir::first_difference(ir, other_ir);
    if (!difference.has_value()) return {};
    return absl::StrCat("The graph is another in the second save; ", difference->where, ": ", difference->a, " and ",
                        difference->b, ".");
  }

  std::string link_allocations(const ir::GraphIr& ir, const SavedGraph& graph, const SavedGraph& other,
                               std::set<std::uint32_t>& reached) {
    for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
      const Range &range = graph.allocations[i], &other_range = other.allocations[i];
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
    const Memory memory(second_, other);
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

  absl::Status scan(const Piece& piece, const Memory& memory, Buffers& buffers) const {
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

  // Bytes that no address was found in, and that differ: compilers leave what was on the stack between members.
  std::string check_arguments(const ir::GraphIr& ir, const std::vector<OtherBytes>& arguments) const {
    const std::map<std::uint64_t, std::uint32_t> blocks = blocks_by_distance();
    for (const OtherBytes& one : arguments) {
      for (const auto& [distance, block] : blocks) {
        if (!moved_by(distance, one.value, one.other)) continue;
        return absl::StrCat(ir::node_label(ir, one.node), " has in the argument at byte ", one.at,
                            " a value that is no address in the bundle, and moved in the second save as far as ",
                            describe(block), " did, or a part of it: whether it is one is not certain.");
      }
    }
    return {};
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

absl::Status mark_movable(const Folder& first, const Folder& second) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<Movability> graphs, compare_saves(first, second));
  CGRT_ASSIGN_OR_RETURN(FolderWriter writer, FolderWriter::create(first.path()));
  Manifest manifest = first.manifest();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    SavedGraph& graph = manifest.graphs[i];
    graph.is_movable = graphs[i].why_not.empty();
    graph.why_not_movable = graphs[i].why_not;
    CGRT_ASSIGN_OR_RETURN(graph.addresses, write_addresses(writer, graphs[i].addresses));
  }
  CGRT_RETURN_IF_ERROR(writer.finish(manifest));
  return writer.remove_unused(manifest);
}

}  // namespace cgrt::saved
