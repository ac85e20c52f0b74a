#include "cgrt/bundle/reach.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/live_memory.h"
#include "cgrt/bundle/pointers.h"
#include "cgrt/bundle/transfer.h"

namespace cgrt::internal {
namespace {

class Reach {
 public:
  Reach(Saver::Prepared& out, const LoadedModules& modules) : out_(out), modules_(modules) {}

  // What is known without a question: variables, the graph's own memory and operands in pageable memory.
  absl::Status add_known() {
    for (const saved::Kernel& kernel : out_.kernels) add_variables(kernel.module);
    std::vector<Place> known;
    for (const OwnMemory& own : out_.own) {
      known.push_back({.start = own.address, .bytes = own.bytes, .has_content = false});
    }
    for (const MemoryRange& operand : out_.host_operands) {
      known.push_back({operand.address, operand.bytes, ir::MemoryKind::kPageableHost});
    }
    std::sort(known.begin(), known.end(), [](const Place& a, const Place& b) { return a.start < b.start; });
    for (const Place& place : known) {
      const Place* const before = find_place(out_.places, place.start);
      if (before == nullptr) {
        add(place);
      } else if (before->module.has_value()) {
        return absl::UnimplementedError(
            absl::StrCat("Memory of the graph at 0x", absl::Hex(place.start), " is that of a variable as well."));
      } else {
        Place& joined = out_.places.at(before->start);
        joined.bytes = std::max(joined.end(), place.end()) - joined.start;
      }
    }
    return absl::OkStatus();
  }

  // The place of an address that may be one; null: it is no address of this device's graph. Found places are read
  // later.
  absl::StatusOr<const Place*> find(CUdeviceptr address) {
    if (const Place* const known = find_place(out_.places, address)) return known;
    if (const auto variable = modules_.find_variable(address)) {
      add_variables(variable->module);
      return find_place(out_.places, address);
    }
    CGRT_ASSIGN_OR_RETURN(const LiveRange* const range, live_.find(address));
    if (range == nullptr) return nullptr;
    if (range->kind == ir::MemoryKind::kDevice && range->device >= 0 && range->device != out_.device) return nullptr;
    if (overlaps(*range)) return nullptr;
    return add({.start = range->start, .bytes = range->bytes, .kind = range->kind});
  }

  // The next one that is to be read; null: none is left.
  const Place* next() {
    if (unread_.empty()) return nullptr;
    const CUdeviceptr start = unread_.front();
    unread_.pop_front();
    return &out_.places.at(start);
  }

 private:
  const Place* add(Place place) {
    if (place.has_content) unread_.push_back(place.start);
    return &out_.places.insert_or_assign(place.start, std::move(place)).first->second;
  }

  void add_variables(std::uint32_t module) {
    for (const LoadedModule::Variable& variable : modules_[module].variables) {
      if (out_.places.contains(variable.address)) continue;
      add({.start = variable.address, .bytes = variable.bytes, .module = module, .variable = variable.name});
    }
  }

  // The driver may know memory as a part of something larger, that has variables or the graph's own memory in it.
  bool overlaps(const LiveRange& range) const {
    const auto first = out_.places.lower_bound(range.start);
    return (first != out_.places.end() && first->first < range.end()) ||
           find_place(out_.places, range.start) != nullptr || modules_.has_variables_in(range.start, range.bytes);
  }

  Saver::Prepared& out_;
  const LoadedModules& modules_;
  LiveMemory live_;
  std::deque<CUdeviceptr> unread_;  // starts
};

absl::Status not_live(std::size_t n, const ir::Node& node, CUdeviceptr address) {
  return absl::FailedPreconditionError(absl::StrCat("Node ", n, " (", to_string(node.kind), ") uses memory at 0x",
                                                    absl::Hex(address),
                                                    ", which was freed since the graph was instantiated."));
}

// All that the graph names, and what is found there.
absl::Status find_operands(Saver::Prepared& graph, Reach& reach) {
  for (std::size_t n = 0; n < graph.graph.nodes.size(); ++n) {
    const ir::Node& node = graph.graph.nodes[n];
    absl::Status status;
    const auto look_at = [&](const ir::Pointer& pointer, bool is_needed) {
      const CUdeviceptr address = graph.ids[pointer.allocation].start + pointer.offset;
      const absl::StatusOr<const Place*> found = reach.find(address);
      if (status.ok()) status = found.status();
      if (status.ok() && *found == nullptr && is_needed) status = not_live(n, node, address);
    };
    if (const auto* kernel = std::get_if<ir::KernelParams>(&node.params); kernel != nullptr) {
      for (const ir::InnerPointer& one : kernel->pointers) look_at(one.pointer, false);
    }
    visit_operands(node, [&](const ir::Pointer& pointer) { look_at(pointer, true); });
    CGRT_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// Adds the memory of those that must be there to what the graph reaches.
absl::Status reach_marks(const std::vector<BufferMark>& marks, Reach& reach) {
  for (const BufferMark& mark : marks) {
    if (!mark.is_optional) CGRT_RETURN_IF_ERROR(reach.find(mark.address).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NamedPlace>> find_named(const char* what, const std::vector<BufferMark>& marks,
                                                   const Places& places) {
  std::vector<NamedPlace> named;
  for (const BufferMark& mark : marks) {
    const Place* const place = find_place(places, mark.address);
    const std::uint64_t room = place != nullptr ? place->end() - mark.address : 0;
    const std::uint64_t bytes = mark.bytes != 0 ? mark.bytes : room;
    const bool is_there = bytes != 0 && bytes <= room;
    if (!is_there && mark.is_optional) continue;
    if (!is_there) {
      return absl::InvalidArgumentError(absl::StrCat("The ", what, " \"", mark.name, "\" is ", bytes, " bytes at 0x",
                                                     absl::Hex(mark.address), ", and CUDA knows ", room,
                                                     " bytes there. Name memory that is allocated."));
    }
    named.push_back({mark.name, mark.address, bytes, mark.dtype, mark.shape});
  }
  return named;
}

// Cut at the addresses that are multiples of the largest piece, so that graphs with memory in common have the same
// pieces of it.
void add_chunks(const Place& place, std::vector<Chunk>& chunks) {
  for (CUdeviceptr at = place.start; at < place.end();) {
    const CUdeviceptr next =
        std::min<CUdeviceptr>((at / saved::kMaxPieceBytes + 1) * saved::kMaxPieceBytes, place.end());
    chunks.push_back({at, next - at, place.kind == ir::MemoryKind::kPageableHost});
    at = next;
  }
}

// Those words that may be addresses, each once.
std::vector<std::uint64_t> addresses_in(CUdeviceptr address, std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = sizeof(CUdeviceptr);
  std::vector<std::uint64_t> words;
  for (std::size_t at = (kWord - address % kWord) % kWord; at + kWord <= bytes.size(); at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, kWord);
    if (LiveMemory::may_be_address(word)) words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// Pieces of zeros that follow each other in one place are one.
void join_zeros(std::vector<AddressPiece>& memory, const Places& places) {
  std::vector<AddressPiece> joined;
  for (const AddressPiece& piece : memory) {
    const bool goes_on = !piece.hash.has_value() && !joined.empty() && !joined.back().hash.has_value() &&
                         joined.back().address + joined.back().bytes == piece.address &&
                         !places.contains(piece.address);
    if (goes_on) {
      joined.back().bytes += piece.bytes;
    } else {
      joined.push_back(piece);
    }
  }
  memory = std::move(joined);
}

// A variable's address is another one where the module is loaded anew, and a word in memory stays what it is.
absl::Status check_no_variable(const Saver::Prepared& graph, const LoadedModules& modules, std::uint64_t word) {
  const auto found = modules.find_variable(word);
  if (!found.has_value()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("Memory of graph \"", graph.name, "\" holds the address of the variable \"", found->variable->name,
                   "\" of a module, which is another one in each process. Give the kernels that need it the address as "
                   "an argument."));
}

absl::Status read_places(Saver::Prepared& graph, const LoadedModules& modules, Reach& reach,
                         absl::FunctionRef<absl::StatusOr<saved::Hash>(std::span<const std::byte>)> keep) {
  CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Transfers> transfers, Transfers::create(graph.context));
  for (;;) {
    std::vector<Chunk> chunks;
    while (const Place* const place = reach.next()) add_chunks(*place, chunks);
    if (chunks.empty()) break;
    std::mutex mutex;
    absl::flat_hash_set<std::uint64_t> words;
    const auto see = [&](std::size_t i, std::span<const std::byte> bytes) -> absl::Status {
      const CUdeviceptr address = chunks[i].address;
      if (const Cubin::Variable* const variable = modules.in_image(*find_place(graph.places, address));
          variable != nullptr && variable->is_initial(bytes)) {
        const std::lock_guard lock(mutex);
        graph.initial.emplace(address, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        return absl::OkStatus();
      }
      const bool has_content = !is_zero(bytes);
      const std::vector<std::uint64_t> found =
          has_content ? addresses_in(address, bytes) : std::vector<std::uint64_t>();
      const std::lock_guard lock(mutex);
      AddressPiece& piece = graph.memory.emplace_back(AddressPiece{address, bytes.size(), std::nullopt});
      if (has_content) {
        CGRT_ASSIGN_OR_RETURN(piece.hash, keep(bytes));
      }
      words.insert(found.begin(), found.end());
      return absl::OkStatus();
    };
    CGRT_RETURN_IF_ERROR(transfers->read(chunks, see));
    for (const std::uint64_t word : words) {
      CGRT_RETURN_IF_ERROR(check_no_variable(graph, modules, word));
      CGRT_RETURN_IF_ERROR(reach.find(word).status());
    }
  }
  std::sort(graph.memory.begin(), graph.memory.end(),
            [](const AddressPiece& a, const AddressPiece& b) { return a.address < b.address; });
  join_zeros(graph.memory, graph.places);
  return absl::OkStatus();
}

// Gives the graph an allocation for each place that it names. Words that are in none are numbers again.
void take_places(Saver::Prepared& graph) {
  std::vector<ir::Allocation> allocations;
  absl::flat_hash_map<CUdeviceptr, std::uint32_t> numbers;  // by the place's start
  const auto move = [&](ir::Pointer& pointer) {
    const CUdeviceptr address = graph.ids[pointer.allocation].start + pointer.offset;
    const Place* const place = find_place(graph.places, address);
    if (place == nullptr) return address;
    const auto [number, is_new] = numbers.try_emplace(place->start, static_cast<std::uint32_t>(allocations.size()));
    if (is_new) {
      const bool is_on_host =
          place->kind == ir::MemoryKind::kPinnedHost || place->kind == ir::MemoryKind::kPageableHost;
      allocations.push_back({place->kind, is_on_host ? -1 : graph.device,
                             place->kind == ir::MemoryKind::kPageableHost ? 0 : place->bytes});
      graph.allocations.push_back({place->start, place->bytes});
    }
    pointer = {number->second, address - place->start};
    return CUdeviceptr{0};
  };
  for (ir::Node& node : graph.graph.nodes) {
    if (auto* kernel = std::get_if<ir::KernelParams>(&node.params); kernel != nullptr) {
      std::erase_if(kernel->pointers, [&](ir::InnerPointer& inner) {
        const CUdeviceptr number = move(inner.pointer);
        if (number == 0) return false;
        std::memcpy(kernel->arguments.data() + inner.at, &number, sizeof(number));
        return true;
      });
    }
    visit_operands(node, move);
  }
  graph.graph.allocations = std::move(allocations);
}

// The part of `dead` that is in memory of the graph, ascending, none overlapping.
std::vector<MemoryRange> clip(std::vector<MemoryRange> dead, const Places& places) {
  std::sort(dead.begin(), dead.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  std::vector<MemoryRange> clipped;
  std::uint64_t done = 0;
  for (const MemoryRange& range : dead) {
    const std::uint64_t end = range.address + range.bytes;
    auto place = places.upper_bound(range.address);
    if (place != places.begin()) --place;
    for (; place != places.end() && place->first < end; ++place) {
      if (place->second.kind != ir::MemoryKind::kDevice || place->second.module.has_value()) continue;
      const auto first = std::max<std::uint64_t>({range.address, place->first, done});
      const auto last = std::min<std::uint64_t>(end, place->second.end());
      if (first >= last) continue;
      clipped.push_back({first, last - first});
      done = last;
    }
  }
  return clipped;
}

}  // namespace

absl::Status read_entry(Saver::Prepared& graph, const LoadedModules& modules, const std::vector<MemoryRange>& dead,
                        absl::FunctionRef<absl::StatusOr<saved::Hash>(std::span<const std::byte>)> keep) {
  Reach reach(graph, modules);
  CGRT_RETURN_IF_ERROR(reach.add_known());
  CGRT_RETURN_IF_ERROR(find_operands(graph, reach));
  CGRT_RETURN_IF_ERROR(reach_marks(graph.inputs, reach));
  CGRT_RETURN_IF_ERROR(reach_marks(graph.outputs, reach));
  CGRT_RETURN_IF_ERROR(read_places(graph, modules, reach, keep));
  CGRT_ASSIGN_OR_RETURN(graph.named_inputs, find_named("input", graph.inputs, graph.places));
  CGRT_ASSIGN_OR_RETURN(graph.named_outputs, find_named("output", graph.outputs, graph.places));
  take_places(graph);
  graph.dead = clip(dead, graph.places);
  return absl::OkStatus();
}

}  // namespace cgrt::internal
