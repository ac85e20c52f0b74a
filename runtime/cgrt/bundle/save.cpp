#include "cgrt/bundle/save.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/expected_hashes.h"
#include "cgrt/bundle/live_memory.h"
#include "cgrt/bundle/prepared.h"
#include "cgrt/bundle/reach.h"
#include "cgrt/device/context.h"
#include "cgrt/device/device.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/live_capture.h"
#include "cgrt/driver/status.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt {

using internal::AddressPiece;
using internal::LoadedModules;
using internal::Place;

namespace {

absl::StatusOr<saved::Machine> read_machine(int ordinal) {
  const DeviceRef device(ordinal);
  saved::Machine machine;
  CGRT_ASSIGN_OR_RETURN(machine.device, device.name());
  for (const auto& [attribute, value] : {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &machine.major},
                                         {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &machine.minor},
                                         {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &machine.multiprocessors}}) {
    CGRT_ASSIGN_OR_RETURN(const int answer, device.attribute(attribute));
    *value = static_cast<std::uint32_t>(answer);
  }
  CGRT_ASSIGN_OR_RETURN(const int driver, driver_version());
  machine.driver = static_cast<std::uint32_t>(driver);
  for (const auto& [limit, value] : {std::pair{CU_LIMIT_STACK_SIZE, &machine.stack_bytes},
                                     {CU_LIMIT_PRINTF_FIFO_SIZE, &machine.printf_bytes},
                                     {CU_LIMIT_MALLOC_HEAP_SIZE, &machine.heap_bytes}}) {
    std::size_t bytes = 0;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetLimit(&bytes, limit), "cuCtxGetLimit"));
    *value = bytes;
  }
  return machine;
}

// Blocks of a manifest by address.
class Blocks {
 public:
  // kFailedPrecondition: memory of one graph is in another way that of another one.
  absl::Status add(const std::string& graph, const Place& place, std::uint32_t module) {
    saved::Block block{place.kind, place.start, place.bytes, place.variable, module};
    auto first = blocks_.upper_bound(block.address);
    if (first != blocks_.begin() && end_of(std::prev(first)->second) > block.address) --first;
    while (first != blocks_.end() && first->first < end_of(block)) {
      const saved::Block& there = first->second;
      const bool is_same = there.kind == block.kind && there.variable == block.variable && there.module == block.module;
      if (!is_same || (!block.variable.empty() && there.address != block.address)) {
        return absl::FailedPreconditionError(
            absl::StrCat("Memory of graph \"", graph, "\" at 0x", absl::Hex(place.start),
                         " was something else when a graph before it was saved. Save them into two bundles."));
      }
      const std::uint64_t end = std::max(end_of(block), end_of(there));
      block.address = std::min(block.address, there.address);
      block.bytes = end - block.address;
      first = blocks_.erase(first);
    }
    blocks_.emplace(block.address, block);
    return absl::OkStatus();
  }

  std::vector<saved::Block> list() {
    std::vector<saved::Block> list;
    numbers_.clear();
    for (const auto& [address, block] : blocks_) {
      numbers_.emplace(address, static_cast<std::uint32_t>(list.size()));
      list.push_back(block);
    }
    return list;
  }
  // After list(); of memory that was added.
  saved::Range range(std::uint64_t address, std::uint64_t bytes) const {
    const auto& [start, number] = *std::prev(numbers_.upper_bound(address));
    return {number, address - start, bytes};
  }

 private:
  static std::uint64_t end_of(const saved::Block& block) { return block.address + block.bytes; }

  std::map<std::uint64_t, saved::Block> blocks_;
  std::map<std::uint64_t, std::uint32_t> numbers_;
};

using Graphs = std::vector<std::shared_ptr<Saver::Prepared>>;

// The modules of `loaded` that graphs use, in the order in which these name them.
class UsedModules {
 public:
  std::uint32_t use(std::uint32_t loaded) {
    const auto [found, is_new] = numbers_.try_emplace(loaded, static_cast<std::uint32_t>(order_.size()));
    if (is_new) order_.push_back(loaded);
    return found->second;
  }
  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  std::map<std::uint32_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> order_;
};

saved::SavedGraph describe(const Saver::Prepared& graph, const Blocks& blocks, UsedModules& modules) {
  saved::SavedGraph out{.name = graph.name, .file = graph.file, .launch = graph.launch, .kernels = graph.kernels};
  for (saved::Kernel& kernel : out.kernels) kernel.module = modules.use(kernel.module);
  out.node_kernels = graph.node_kernels;
  out.slices = graph.slices;
  const auto ranges = [&](const auto& from, std::vector<saved::Range>& to) {
    for (const auto& [address, bytes] : from) to.push_back(blocks.range(address, bytes));
  };
  ranges(graph.allocations, out.allocations);
  ranges(graph.changed, out.changed_outside);
  ranges(graph.dead, out.dead);
  for (const AddressPiece& piece : graph.memory) {
    out.memory.push_back({blocks.range(piece.address, piece.bytes), piece.hash});
  }
  for (const Place& place : graph.after) out.expected.ranges.push_back(blocks.range(place.start, place.bytes));
  out.expected.hashes = graph.hashes_file;
  for (const auto& [from, to] : {std::pair{&graph.named_inputs, &out.inputs}, {&graph.named_outputs, &out.outputs}}) {
    for (const internal::NamedPlace& one : *from) {
      to->push_back({one.name, blocks.range(one.address, one.bytes), one.dtype, one.shape});
    }
  }
  return out;
}

}  // namespace

struct Saver::State {
  saved::FolderWriter writer;
  CodeOf code_of;
  // The one that was there when the first graph is finished is replaced.
  bool replaces_bundle;
  LoadedModules modules = {};
  std::map<std::string, std::weak_ptr<const Prepared>> prepared = {};  // by name
  Graphs begun = {}, graphs = {};                                      // those that are not finished, and that are
  CUcontext context = nullptr;                                         // of these
  saved::Machine machine = {};

  absl::StatusOr<saved::Manifest> manifest(const Graphs& of) const {
    saved::Manifest out{.machine = machine};
    Blocks blocks;
    UsedModules used;
    for (const auto& graph : of) {
      for (const saved::Kernel& kernel : graph->kernels) used.use(kernel.module);
      for (const auto& [start, place] : graph->places) {
        CGRT_RETURN_IF_ERROR(blocks.add(graph->name, place, place.module.has_value() ? used.use(*place.module) : 0));
      }
    }
    out.blocks = blocks.list();
    for (const auto& graph : of) out.graphs.push_back(describe(*graph, blocks, used));
    for (const std::uint32_t module : used.order()) {
      out.modules.push_back({modules[module].code, modules[module].image->size()});
    }
    return out;
  }

  absl::Status write_code(const Prepared& graph) {
    std::set<std::uint32_t> used;
    for (const saved::Kernel& kernel : graph.kernels) used.insert(kernel.module);
    for (const auto& [start, place] : graph.places) {
      if (place.module.has_value()) used.insert(*place.module);
    }
    for (const std::uint32_t module : used) CGRT_RETURN_IF_ERROR(writer.add_code(*modules[module].image).status());
    return absl::OkStatus();
  }

  // Variables that a loaded module has as they are, before the launch and after it, are left out.
  absl::Status settle_variables(Prepared& graph);

  ~State() {
    while (!begun.empty()) end(std::shared_ptr<Prepared>(begun.back()));
  }

  // Ends the time between begin and finish; removes files that belong to no graph then. Those of a bundle that was
  // there stay.
  void end(const std::shared_ptr<Prepared>& graph) {
    std::erase(begun, graph);
    if (graphs.empty() && replaces_bundle) return;
    Graphs kept = graphs;
    kept.insert(kept.end(), begun.begin(), begun.end());
    if (const auto now = manifest(kept); now.ok()) writer.remove_unused(*now).IgnoreError();
  }

  absl::Status begin(Prepared& graph, std::uint64_t launch, const std::vector<MemoryRange>& dead);
  absl::Status finish(const std::shared_ptr<Prepared>& graph);
  absl::Status compare(Prepared& graph);
};

namespace {

// The calls of a scope are made in the context of the graph, and end no capture; the context is idle.
class IdleContext {
 public:
  static absl::StatusOr<IdleContext> enter(CUcontext context) {
    if (driver::LiveCapture::any()) {
      return absl::FailedPreconditionError(
          "Memory cannot be read while a stream is being captured. End the capture before.");
    }
    auto relaxed = std::make_unique<RelaxedCaptureMode>();
    CGRT_RETURN_IF_ERROR(relaxed->status());
    CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context));
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxSynchronize(), "cuCtxSynchronize"));
    return IdleContext(std::move(relaxed), std::move(current));
  }

 private:
  IdleContext(std::unique_ptr<RelaxedCaptureMode> relaxed, ScopedContext current)
      : relaxed_(std::move(relaxed)), current_(std::move(current)) {}
  std::unique_ptr<RelaxedCaptureMode> relaxed_;
  ScopedContext current_;
};

// Memory that can be read after the launch: what was there before it, and what the graph allocates and leaves.
absl::StatusOr<std::vector<Place>> places_after(const Saver::Prepared& graph) {
  std::vector<Place> after;
  internal::LiveMemory live;
  for (const auto& entry : graph.places) {
    const Place& place = entry.second;
    if (place.has_content) {
      after.push_back(place);
      continue;
    }
    const bool is_left = std::any_of(graph.own.begin(), graph.own.end(), [&](const internal::OwnMemory& own) {
      return !own.is_freed && own.address == place.start && own.bytes == place.bytes;
    });
    if (!is_left) continue;
    CGRT_ASSIGN_OR_RETURN(const internal::LiveRange* const range, live.find(place.start));
    if (range != nullptr && range->end() >= place.end()) after.push_back(place);
  }
  return after;
}

}  // namespace

absl::Status Saver::State::begin(Prepared& graph, std::uint64_t launch, const std::vector<MemoryRange>& dead) {
  CGRT_ASSIGN_OR_RETURN(const IdleContext idle, IdleContext::enter(graph.context));
  if (context != nullptr && context != graph.context) {
    return absl::UnimplementedError(absl::StrCat("Graph \"", graph.name,
                                                 "\" runs in another context than the graphs before it, and a bundle "
                                                 "has one. Save it into another bundle."));
  }
  if (context == nullptr) {
    CGRT_ASSIGN_OR_RETURN(machine, read_machine(graph.device));
    context = graph.context;
  }
  graph.launch = launch;
  graph.places.clear();  // of a call that failed
  graph.allocations.clear();
  graph.memory.clear();
  graph.initial.clear();
  return internal::read_entry(graph, modules, dead,
                              [&](std::span<const std::byte> bytes) { return writer.add_memory(bytes); });
}

absl::Status Saver::State::settle_variables(Prepared& graph) {
  const auto is_named = [&](const Place& place) {
    const auto is_in = [&](const auto& one) { return one.address >= place.start && one.address < place.end(); };
    return std::any_of(graph.allocations.begin(), graph.allocations.end(), is_in) ||
           std::any_of(graph.named_inputs.begin(), graph.named_inputs.end(), is_in) ||
           std::any_of(graph.named_outputs.begin(), graph.named_outputs.end(), is_in);
  };
  std::vector<Place> after;
  std::vector<std::uint64_t> hashes;
  const std::uint64_t* next = graph.hashes.data();
  for (const Place& place : graph.after) {
    const std::uint64_t* const first = std::exchange(next, next + internal::hash_count(place.bytes));
    const auto initial = graph.initial.find(place.start);
    if (initial != graph.initial.end()) {
      const auto content = std::as_bytes(std::span(initial->second));
      if (!is_named(place) && std::equal(first, next, internal::hash_bytes(content).begin())) {
        graph.places.erase(place.start);
        continue;
      }
      if (!modules.in_image(place)->relocated.empty()) {
        return absl::UnimplementedError(absl::StrCat("The variable \"", place.variable, "\" of graph \"", graph.name,
                                                     "\" holds addresses, which are others in each process."));
      }
      CGRT_ASSIGN_OR_RETURN(const saved::Hash hash, writer.add_memory(content));
      graph.memory.push_back({place.start, place.bytes, hash});
    }
    after.push_back(place);
    hashes.insert(hashes.end(), first, next);
  }
  graph.after = std::move(after);
  graph.hashes = std::move(hashes);
  graph.initial.clear();
  std::sort(graph.memory.begin(), graph.memory.end(),
            [](const AddressPiece& a, const AddressPiece& b) { return a.address < b.address; });
  return absl::OkStatus();
}

absl::Status Saver::State::finish(const std::shared_ptr<Prepared>& graph) {
  CGRT_ASSIGN_OR_RETURN(const IdleContext idle, IdleContext::enter(graph->context));
  CGRT_ASSIGN_OR_RETURN(graph->after, places_after(*graph));
  CGRT_ASSIGN_OR_RETURN(graph->hashes, internal::hash_places(graph->context, graph->after));
  CGRT_RETURN_IF_ERROR(settle_variables(*graph));
  if (!graph->hashes.empty()) {
    CGRT_ASSIGN_OR_RETURN(graph->hashes_file, writer.add_expected(graph->hashes));
  }
  CGRT_RETURN_IF_ERROR(write_code(*graph));
  CGRT_ASSIGN_OR_RETURN(graph->file, writer.add_graph(graph->name, graph->graph));
  Graphs with = graphs;
  with.push_back(graph);
  CGRT_ASSIGN_OR_RETURN(const saved::Manifest now, manifest(with));
  CGRT_RETURN_IF_ERROR(writer.finish(now));
  const bool is_first = graphs.empty();
  graphs = std::move(with);
  return is_first && replaces_bundle ? writer.remove_unused(now) : absl::OkStatus();
}

absl::Status Saver::State::compare(Prepared& graph) {
  if (graph.hashes.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const IdleContext idle, IdleContext::enter(graph.context));
  CGRT_ASSIGN_OR_RETURN(graph.changed, internal::find_changes(graph.context, graph.after, graph.hashes));
  graph.hashes = {};
  if (graph.changed.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const saved::Manifest now, manifest(graphs));
  return writer.finish(now);
}

Saver::Saver(std::unique_ptr<State> state) : state_(std::move(state)) {}
Saver::Saver(Saver&&) noexcept = default;
Saver& Saver::operator=(Saver&&) noexcept = default;
Saver::~Saver() = default;

absl::StatusOr<Saver> Saver::create(const std::string& path, CodeOf code_of) {
  const bool replaces_bundle = saved::Folder::open(path).ok();
  CGRT_ASSIGN_OR_RETURN(saved::FolderWriter writer, saved::FolderWriter::create(path));
  return Saver(std::unique_ptr<State>(
      new State{.writer = std::move(writer), .code_of = std::move(code_of), .replaces_bundle = replaces_bundle}));
}

absl::StatusOr<std::shared_ptr<Saver::Prepared>> Saver::prepare(GraphRef graph, const std::string& name,
                                                                SavedMarks marks) {
  return prepare(graph, name, std::move(marks), [](CUgraphNode) -> const NodeNote* { return nullptr; });
}

absl::StatusOr<std::shared_ptr<Saver::Prepared>> Saver::prepare(
    GraphRef graph, const std::string& name, SavedMarks marks,
    absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of) {
  if (state_ == nullptr) return driver::empty_object("Saver");
  if (!saved::is_name(name)) {
    return absl::InvalidArgumentError(absl::StrCat("No graph of a bundle can be called \"", name,
                                                   "\": use 1 to 100 letters, digits, '_', '-' and '.'."));
  }
  if (const auto found = state_->prepared.find(name); found != state_->prepared.end() && !found->second.expired()) {
    return absl::AlreadyExistsError(absl::StrCat("The bundle has a graph \"", name, "\" already."));
  }
  const RelaxedCaptureMode relaxed;
  CGRT_RETURN_IF_ERROR(relaxed.status());
  CGRT_ASSIGN_OR_RETURN(
      std::shared_ptr<Prepared> prepared,
      internal::prepare_graph(graph, name, std::move(marks), note_of, state_->code_of, state_->modules));
  state_->prepared[name] = prepared;
  return prepared;
}

absl::Status Saver::begin(const std::shared_ptr<Prepared>& graph, std::uint64_t launch,
                          const std::vector<MemoryRange>& dead) {
  if (state_ == nullptr) return driver::empty_object("Saver");
  absl::Cleanup end = [&] { state_->end(graph); };
  CGRT_RETURN_IF_ERROR(state_->begin(*graph, launch, dead));
  std::move(end).Cancel();
  state_->begun.push_back(graph);
  return absl::OkStatus();
}

absl::Status Saver::finish(const std::shared_ptr<Prepared>& graph) {
  if (state_ == nullptr) return driver::empty_object("Saver");
  absl::Cleanup end = [&] { state_->end(graph); };
  CGRT_RETURN_IF_ERROR(state_->finish(graph));
  std::move(end).Cancel();
  std::erase(state_->begun, graph);
  return absl::OkStatus();
}

void Saver::abandon(const std::shared_ptr<Prepared>& graph) {
  if (state_ != nullptr) state_->end(graph);
}

absl::StatusOr<OutsideChanges> Saver::compare(const std::shared_ptr<Prepared>& graph) {
  if (state_ == nullptr) return driver::empty_object("Saver");
  CGRT_RETURN_IF_ERROR(state_->compare(*graph));
  const auto is_input = [&](const MemoryRange& range) {
    return std::any_of(graph->named_inputs.begin(), graph->named_inputs.end(), [&](const internal::NamedPlace& input) {
      return range.address < input.address + input.bytes && input.address < range.address + range.bytes;
    });
  };
  OutsideChanges changes;
  for (const MemoryRange& range : graph->changed) {
    if (is_input(range)) continue;
    ++changes.places;
    changes.bytes += range.bytes;
  }
  return changes;
}

}  // namespace cgrt
