#include "cgrt/bundle/bundle.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/address_space.h"
#include "cgrt/bundle/build_graph.h"
#include "cgrt/bundle/code.h"
#include "cgrt/bundle/machine.h"
#include "cgrt/bundle/relocation.h"
#include "cgrt/bundle/transfer.h"
#include "cgrt/driver/status.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/capture_mode.h"
#include "cgrt/stream/keep.h"

namespace cgrt {
namespace {

using saved::Piece;
using saved::Range;
using saved::SavedGraph;

// "Graph "prefil" is none of the bundle's, which has "prefill" and "decode"."
template <class Named, class NameOf>
absl::Status not_found(const char* kind, std::string_view name, const Named& all, NameOf name_of) {
  const std::string names = absl::StrJoin(
      all, ", ", [&](std::string* out, const auto& one) { absl::StrAppend(out, "\"", name_of(one), "\""); });
  return absl::NotFoundError(absl::StrCat("There is no ", kind, " \"", std::string(name), "\"; there ",
                                          all.size() == 1 ? "is " : "are ", names.empty() ? "none" : names, "."));
}

absl::StatusOr<std::vector<const SavedGraph*>> chosen_graphs(const saved::Folder& folder,
                                                             const std::vector<std::string>& names) {
  const std::vector<SavedGraph>& all = folder.manifest().graphs;
  std::vector<const SavedGraph*> chosen;
  for (const std::string& name : names) {
    const SavedGraph* const graph = folder.find_graph(name);
    if (graph == nullptr) return not_found("graph", name, all, [](const SavedGraph& one) { return one.name; });
    if (std::find(chosen.begin(), chosen.end(), graph) == chosen.end()) chosen.push_back(graph);
  }
  if (!names.empty()) return chosen;
  for (const SavedGraph& graph : all) chosen.push_back(&graph);
  return chosen;
}

absl::Status check_movable(const SavedGraph& graph) {
  if (graph.is_movable) return absl::OkStatus();
  const bool was_compared = !graph.why_not_movable.empty();
  return absl::FailedPreconditionError(
      absl::StrCat("Graph \"", graph.name, "\" cannot be loaded at other addresses: ",
                   was_compared ? graph.why_not_movable : "it was saved once. Save it with graphdump save --movable."));
}

// All that the manifest says of a graph's memory.
template <class Visit>
void visit_ranges(const SavedGraph& graph, Visit visit) {
  for (const Range& range : graph.allocations) visit(range);
  for (const Piece& piece : graph.memory) visit(piece.range);
  for (const Range& range : graph.expected.ranges) visit(range);
  for (const saved::Buffer& buffer : graph.inputs) visit(buffer.range);
  for (const saved::Buffer& buffer : graph.outputs) visit(buffer.range);
}

}  // namespace

struct LoadedBundle::State {
  struct LoadedGraph {
    const SavedGraph* saved;
    ir::GraphIr graph = {};  // while it is loaded
    std::vector<KernelRef> kernels = {};
    GraphExec exec = {};
  };

  State(saved::Folder folder_, CUcontext context_, DeviceRef device, saved::HashCheck check_,
        internal::Placement placement_)
      : folder(std::move(folder_)),
        context(context_),
        check(check_),
        placement(placement_),
        code(folder, context, device) {}
  ~State();

  const std::vector<saved::Block>& blocks() const { return folder.manifest().blocks; }
  CUdeviceptr address_of(const Range& range) const { return addresses[range.block] + range.offset; }
  internal::Chunk chunk_of(const Range& range) const {
    const bool is_on_host = blocks()[range.block].kind != ir::MemoryKind::kDevice;
    return {address_of(range), range.bytes, is_on_host};
  }

  absl::StatusOr<LoadedGraph*> find(std::string_view name);
  absl::StatusOr<NamedBuffer> buffer(std::string_view graph, std::string_view name, const char* kind,
                                     std::vector<saved::Buffer> SavedGraph::*list);

  // The steps of a load, in their order.
  absl::Status reserve_and_read(const std::vector<const SavedGraph*>& chosen);
  std::set<std::uint32_t> fixed_blocks() const;
  absl::Status map();
  absl::Status load_code();
  enum class Places { kMapped, kVariables };
  absl::Status write_memory(Places places);
  absl::Status load_code_and_memory();
  absl::Status relocate();
  absl::Status build(BundleRebinding rebinding);

  absl::Status write_pieces(std::span<const Piece* const> pieces);
  MemoryDifference difference_at(const SavedGraph& graph, const Range& range) const;

  // Each ends before those that it stands on.
  const saved::Folder folder;
  const CUcontext context;
  const saved::HashCheck check;
  const internal::Placement placement;
  internal::RaisedLimits limits;
  std::unique_ptr<internal::AddressSpace> space;
  std::unique_ptr<internal::Transfers> transfers;
  std::vector<CUdeviceptr> addresses;  // of the blocks
  internal::Relocation relocation;     // nothing is rewritten where a graph is not movable
  internal::Code code;
  std::vector<LoadedGraph> graphs;
  std::set<std::uint32_t> variables;  // blocks of them that the graphs use
  // Memory that is unmapped is not waited for; what cuMemFree frees is, and that disturbs no capture. Events behind
  // launches would keep graphs apart that follow each other.
  DeviceBuffer fence;
  LoadTimes times;
};

LoadedBundle::State::~State() {
  fence = DeviceBuffer();
  graphs.clear();
  collect_released();
}

absl::StatusOr<LoadedBundle::State::LoadedGraph*> LoadedBundle::State::find(std::string_view name) {
  const auto found =
      std::find_if(graphs.begin(), graphs.end(), [&](const LoadedGraph& graph) { return graph.saved->name == name; });
  if (found != graphs.end()) return &*found;
  return not_found("graph", name, graphs, [](const LoadedGraph& graph) { return graph.saved->name; });
}

absl::StatusOr<NamedBuffer> LoadedBundle::State::buffer(std::string_view graph, std::string_view name, const char* kind,
                                                        std::vector<saved::Buffer> SavedGraph::*list) {
  CGRT_ASSIGN_OR_RETURN(const LoadedGraph* const loaded, find(graph));
  const std::vector<saved::Buffer>& all = loaded->saved->*list;
  const auto found = std::find_if(all.begin(), all.end(), [&](const saved::Buffer& one) { return one.name == name; });
  if (found == all.end()) return not_found(kind, name, all, [](const saved::Buffer& one) { return one.name; });
  return NamedBuffer{reinterpret_cast<void*>(address_of(found->range)), found->range.bytes, found->dtype, found->shape};
}

// Addresses first: all else takes some.
absl::Status LoadedBundle::State::reserve_and_read(const std::vector<const SavedGraph*>& chosen) {
  CGRT_ASSIGN_OR_RETURN(space, internal::AddressSpace::reserve(blocks(), context, placement));
  for (const SavedGraph* const graph : chosen) {
    LoadedGraph& loaded = graphs.emplace_back(LoadedGraph{graph});
    CGRT_ASSIGN_OR_RETURN(loaded.graph, folder.read_graph(*graph));
    const absl::Status status = internal::check_multiprocessors(folder.manifest().machine, loaded.graph, context);
    if (!status.ok()) return driver::annotate(status, absl::StrCat("Graph \"", graph->name, "\""));
    visit_ranges(*graph, [&](const Range& range) {
      if (!blocks()[range.block].variable.empty()) variables.insert(range.block);
    });
  }
  return absl::OkStatus();
}

// Copies, memsets and memory operations are built for wherever their operands are. What kernels are given may be an
// address to them anywhere, and so may what only other memory names.
std::set<std::uint32_t> LoadedBundle::State::fixed_blocks() const {
  std::set<std::uint32_t> fixed;
  for (std::uint32_t i = 0; i < blocks().size(); ++i) fixed.insert(i);
  for (const LoadedGraph& loaded : graphs) {
    for (const Range& range : loaded.saved->allocations) fixed.erase(range.block);
  }
  for (const LoadedGraph& loaded : graphs) {
    for (const ir::Node& node : loaded.graph.nodes) {
      const auto* const kernel = std::get_if<ir::KernelParams>(&node.params);
      if (kernel == nullptr) continue;
      for (const ir::InnerPointer& one : kernel->pointers) {
        fixed.insert(loaded.saved->allocations[one.pointer.allocation].block);
      }
    }
  }
  return fixed;
}

absl::Status LoadedBundle::State::map() {
  CGRT_ASSIGN_OR_RETURN(limits, internal::RaisedLimits::raise(folder.manifest().machine, context));
  CGRT_RETURN_IF_ERROR(
      space->map(placement == internal::Placement::kAsSaved ? fixed_blocks() : std::set<std::uint32_t>()));
  addresses = space->addresses();
  CGRT_ASSIGN_OR_RETURN(transfers, internal::Transfers::create(context));
  return absl::OkStatus();
}

absl::Status LoadedBundle::State::load_code() {
  for (const LoadedGraph& loaded : graphs) {
    for (const saved::Kernel& kernel : loaded.saved->kernels) code.want(kernel);
  }
  for (const std::uint32_t block : variables) code.want_variables(blocks()[block].module);
  CGRT_RETURN_IF_ERROR(code.load());
  for (LoadedGraph& loaded : graphs) {
    for (const saved::Kernel& kernel : loaded.saved->kernels) loaded.kernels.push_back(code.kernel(kernel));
  }
  for (const std::uint32_t block : variables) {
    CGRT_ASSIGN_OR_RETURN(addresses[block], code.variable(blocks()[block]));
  }
  return absl::OkStatus();
}

// Words that are addresses in one graph are none in another only where they point into no memory.
absl::Status LoadedBundle::State::relocate() {
  std::vector<saved::AddressWord> words;
  for (const LoadedGraph& loaded : graphs) {
    if (!loaded.saved->is_movable) return absl::OkStatus();
    CGRT_ASSIGN_OR_RETURN(const std::vector<saved::AddressWord> some, folder.read_addresses(loaded.saved->addresses));
    words.insert(words.end(), some.begin(), some.end());
  }
  relocation = internal::Relocation(blocks(), addresses, std::move(words));
  return absl::OkStatus();
}

absl::Status LoadedBundle::State::write_pieces(std::span<const Piece* const> pieces) {
  std::vector<internal::Chunk> zeros, chunks;
  std::vector<const Piece*> read;
  for (const Piece* const piece : pieces) {
    if (!piece->hash.has_value()) {
      zeros.push_back(chunk_of(piece->range));
    } else {
      chunks.push_back(chunk_of(piece->range));
      read.push_back(piece);
    }
  }
  CGRT_RETURN_IF_ERROR(transfers->write_zeros(zeros));
  return transfers->write(chunks, [&](std::size_t i, std::span<std::byte> out) -> absl::Status {
    CGRT_RETURN_IF_ERROR(folder.read_piece(*read[i], out, check));
    return relocation.has_moved() ? relocation.apply(read[i]->range, out) : absl::OkStatus();
  });
}

// What graphs have in common is what the first says: it comes last. Pieces that it has too are left out of the others.
absl::Status LoadedBundle::State::write_memory(Places places) {
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, saved::Hash>> written;
  std::vector<std::vector<const Piece*>> by_graph;
  for (const LoadedGraph& loaded : graphs) {
    std::vector<const Piece*>& pieces = by_graph.emplace_back();
    for (const Piece& piece : loaded.saved->memory) {
      const Range& range = piece.range;
      if (blocks()[range.block].variable.empty() != (places == Places::kMapped)) continue;
      if (!written.emplace(range.block, range.offset, range.bytes, piece.hash.value_or(saved::Hash{})).second) continue;
      pieces.push_back(&piece);
      times.memory_bytes += piece.range.bytes;
    }
  }
  for (auto pieces = by_graph.rbegin(); pieces != by_graph.rend(); ++pieces) {
    CGRT_RETURN_IF_ERROR(write_pieces(*pieces));
  }
  return absl::OkStatus();
}

// Side by side where there is enough of both and memory does not hold addresses of variables, which have none before
// their code is loaded.
absl::Status LoadedBundle::State::load_code_and_memory() {
  const auto timed = [](absl::Duration& took, const auto& step) {
    const absl::Time start = absl::Now();
    const absl::Status status = step();
    took = absl::Now() - start;
    return status;
  };
  const auto do_code = [&] { return timed(times.code, [&] { return load_code(); }); };
  const auto do_memory = [&] { return timed(times.memory, [&] { return write_memory(Places::kMapped); }); };
  constexpr std::uint64_t kWorthAThread = std::uint64_t{1} << 20;
  std::uint64_t code_bytes = 0, memory_bytes = 0;
  for (const saved::Module& module : folder.manifest().modules) code_bytes += module.bytes;
  for (const saved::Block& block : blocks()) memory_bytes += block.bytes;
  const bool is_relocated = !variables.empty() && std::all_of(graphs.begin(), graphs.end(), [](const auto& loaded) {
    return loaded.saved->is_movable;
  });
  if (!is_relocated) CGRT_RETURN_IF_ERROR(relocate());
  std::optional<std::jthread> thread;
  absl::Status memory_status;
  try {
    if (!is_relocated && std::min(code_bytes, memory_bytes) >= kWorthAThread) {
      thread.emplace([&] { memory_status = do_memory(); });
    }
  } catch (const std::system_error&) {
    // One after the other, then.
  }
  const bool is_beside = thread.has_value();
  const absl::Status code_status = do_code();
  thread.reset();
  CGRT_RETURN_IF_ERROR(code_status);
  if (is_relocated) CGRT_RETURN_IF_ERROR(relocate());
  CGRT_RETURN_IF_ERROR(is_beside ? memory_status : do_memory());
  return write_memory(Places::kVariables);
}

absl::Status LoadedBundle::State::build(BundleRebinding rebinding) {
  CGRT_ASSIGN_OR_RETURN(fence, DeviceBuffer::create(context, 1));
  for (LoadedGraph& loaded : graphs) {
    const auto build_one = [&]() -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(Graph built,
                            internal::build_graph({*loaded.saved, loaded.graph, loaded.kernels, addresses}, context));
      const bool is_rebindable = rebinding == BundleRebinding::kRebindable;
      CGRT_ASSIGN_OR_RETURN(loaded.exec, is_rebindable ? instantiate_rebindable(built) : instantiate(built));
      return absl::OkStatus();
    };
    const absl::Status status = build_one();
    if (!status.ok()) return driver::annotate(status, absl::StrCat("Graph \"", loaded.saved->name, "\""));
    loaded.graph = {};
  }
  return absl::OkStatus();
}

// `range` is the first that differs of a block.
MemoryDifference LoadedBundle::State::difference_at(const SavedGraph& graph, const Range& range) const {
  const auto bytes_text = [](std::uint64_t begin, std::uint64_t end, std::uint64_t all) {
    return absl::StrCat(", bytes ", begin, " to ", end - 1, " of ", all);
  };
  const std::uint64_t end = range.offset + range.bytes;
  for (const auto& [kind, buffers] : {std::pair("output", &graph.outputs), std::pair("input", &graph.inputs)}) {
    for (const saved::Buffer& buffer : *buffers) {
      const Range& named = buffer.range;
      const std::uint64_t first = std::max(range.offset, named.offset);
      const std::uint64_t last = std::min(end, named.offset + named.bytes);
      if (named.block != range.block || first >= last) continue;
      return {range, absl::StrCat(kind, " \"", buffer.name, "\"",
                                  bytes_text(first - named.offset, last - named.offset, named.bytes))};
    }
  }
  const saved::Block& block = blocks()[range.block];
  const std::string where = block.variable.empty() ? absl::StrCat("0x", absl::Hex(block.address)) : block.variable;
  return {range, absl::StrCat("memory ", range.block, " (", where, ")", bytes_text(range.offset, end, block.bytes))};
}

LoadedBundle::LoadedBundle(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedBundle::LoadedBundle(LoadedBundle&&) noexcept = default;
LoadedBundle& LoadedBundle::operator=(LoadedBundle&&) noexcept = default;
LoadedBundle::~LoadedBundle() = default;

absl::Status LoadedBundle::launch(std::string_view graph, StreamRef stream) {
  CGRT_ASSIGN_OR_RETURN(GraphExec* const found, exec(graph));
  return found->launch(stream);
}

absl::StatusOr<GraphExec*> LoadedBundle::exec(std::string_view graph) {
  if (state_ == nullptr) return driver::empty_object("LoadedBundle");
  CGRT_ASSIGN_OR_RETURN(State::LoadedGraph* const found, state_->find(graph));
  return &found->exec;
}

absl::StatusOr<NamedBuffer> LoadedBundle::input(std::string_view graph, std::string_view name) const {
  if (state_ == nullptr) return driver::empty_object("LoadedBundle");
  return state_->buffer(graph, name, "input", &SavedGraph::inputs);
}

absl::StatusOr<NamedBuffer> LoadedBundle::output(std::string_view graph, std::string_view name) const {
  if (state_ == nullptr) return driver::empty_object("LoadedBundle");
  return state_->buffer(graph, name, "output", &SavedGraph::outputs);
}

absl::Status LoadedBundle::restore(std::string_view graph) {
  if (state_ == nullptr) return driver::empty_object("LoadedBundle");
  CGRT_ASSIGN_OR_RETURN(const State::LoadedGraph* const found, state_->find(graph));
  std::vector<const Piece*> pieces;
  for (const Piece& piece : found->saved->memory) pieces.push_back(&piece);
  return state_->write_pieces(pieces);
}

absl::StatusOr<std::vector<MemoryDifference>> LoadedBundle::check(std::string_view graph) const {
  if (state_ == nullptr) return driver::empty_object("LoadedBundle");
  CGRT_ASSIGN_OR_RETURN(const State::LoadedGraph* const found, state_->find(graph));
  const saved::ExpectedMemory& expected = found->saved->expected;
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, state_->folder.read_expected(expected));
  static_assert(saved::kMaxPieceBytes % saved::kExpectedBytes == 0);
  struct Part {
    Range range;
    std::size_t first_hash;
  };
  std::vector<Part> parts;
  std::vector<internal::Chunk> chunks;
  std::size_t next_hash = 0;
  for (const Range& range : expected.ranges) {
    for (std::uint64_t at = 0; at < range.bytes; at += saved::kMaxPieceBytes) {
      const Range part{range.block, range.offset + at, std::min(saved::kMaxPieceBytes, range.bytes - at)};
      parts.push_back({part, next_hash});
      chunks.push_back(state_->chunk_of(part));
      next_hash += (part.bytes + saved::kExpectedBytes - 1) / saved::kExpectedBytes;
    }
  }
  std::mutex mutex;
  std::map<std::uint32_t, Range> first_difference;  // by block
  // The graph may have written addresses of memory that is elsewhere.
  const auto was_relocated = [&](std::span<const std::byte> bytes, std::uint64_t hash) {
    if (!state_->relocation.has_moved()) return false;
    std::vector<std::byte> before(bytes.begin(), bytes.end());
    state_->relocation.undo(before);
    return saved::short_hash_of(before) == hash;
  };
  const auto compare = [&](std::size_t i, std::span<const std::byte> bytes) {
    const auto& [range, first_hash] = parts[i];
    for (std::size_t at = 0, n = 0; at < bytes.size(); at += saved::kExpectedBytes, ++n) {
      const std::span<const std::byte> some = bytes.subspan(at, std::min(saved::kExpectedBytes, bytes.size() - at));
      const std::uint64_t hash = hashes[first_hash + n];
      if (saved::short_hash_of(some) == hash || was_relocated(some, hash)) continue;
      const std::lock_guard lock(mutex);
      const Range here{range.block, range.offset + at, some.size()};
      const auto known = first_difference.try_emplace(range.block, here).first;
      if (here.offset < known->second.offset) known->second = here;
      break;
    }
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(state_->transfers->read(chunks, compare));
  std::vector<MemoryDifference> differences;
  differences.reserve(first_difference.size());
  for (const auto& [block, range] : first_difference) {
    differences.push_back(state_->difference_at(*found->saved, range));
  }
  return differences;
}

std::vector<void*> LoadedBundle::blocks() const {
  std::vector<void*> out;
  if (state_ == nullptr) return out;
  for (const CUdeviceptr address : state_->addresses) out.push_back(reinterpret_cast<void*>(address));
  return out;
}

const LoadTimes& LoadedBundle::times() const {
  static const LoadTimes none{};
  return state_ != nullptr ? state_->times : none;
}

bool are_addresses_taken(const absl::Status& status) {
  return status.GetPayload(internal::kAddressesTaken).has_value();
}

absl::StatusOr<Bundle> Bundle::open(const std::string& path) {
  CGRT_ASSIGN_OR_RETURN(saved::Folder folder, saved::Folder::open(path));
  return Bundle(std::move(folder));
}

absl::StatusOr<LoadedBundle> Bundle::load(ContextRef context, const LoadOptions& options) const {
  if (options.placement == BundlePlacement::kAsSavedOrAnywhere) {
    LoadOptions one = options;
    one.placement = BundlePlacement::kAsSaved;
    absl::StatusOr<LoadedBundle> loaded = load(context, one);
    if (!are_addresses_taken(loaded.status())) return loaded;
    one.placement = BundlePlacement::kAnywhere;
    return load(context, one);
  }
  const bool is_as_saved = options.placement == BundlePlacement::kAsSaved;
  const internal::Placement placement = is_as_saved ? internal::Placement::kAsSaved : internal::Placement::kAnywhere;
  CGRT_ASSIGN_OR_RETURN(const std::vector<const SavedGraph*> chosen, chosen_graphs(folder_, options.graphs));
  for (const SavedGraph* const graph : chosen) {
    if (!is_as_saved) CGRT_RETURN_IF_ERROR(check_movable(*graph));
  }
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, context.device());
  CGRT_RETURN_IF_ERROR(internal::check_architecture(folder_, device));
  RelaxedCaptureMode relaxed;  // pinning memory and raising limits would end captures
  CGRT_RETURN_IF_ERROR(relaxed.status());
  auto state = std::make_unique<LoadedBundle::State>(folder_, handle, device, options.check, placement);
  LoadTimes& times = state->times;
  absl::Time last = absl::Now();
  const auto lap = [&] {
    const absl::Time before = std::exchange(last, absl::Now());
    return last - before;
  };
  CGRT_RETURN_IF_ERROR(state->reserve_and_read(chosen));
  CGRT_RETURN_IF_ERROR(state->map());
  times.addresses = lap();
  CGRT_RETURN_IF_ERROR(state->load_code_and_memory());
  lap();
  CGRT_RETURN_IF_ERROR(state->build(options.rebinding));
  times.graphs = lap();
  return LoadedBundle(std::move(state));
}

}  // namespace cgrt
