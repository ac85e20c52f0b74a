// A bundle in a process that has a framework: beside.py and expected.py load this library and call it between replays
// of their own.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace {

constexpr int kCopies = 2;

// Loads copies of the bundle wherever there is room, replays them in turn, and says what differs from the recording.
absl::StatusOr<std::vector<std::string>> replay_copies(const std::string& path) {
  const cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(const cgrt::Bundle bundle, cgrt::Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(device));
  std::vector<cgrt::LoadedBundle> copies;
  for (int i = 0; i < kCopies; ++i) {
    const cgrt::LoadOptions options{.placement = cgrt::BundlePlacement::kAsSavedOrAnywhere};
    CGRT_ASSIGN_OR_RETURN(cgrt::LoadedBundle loaded, bundle.load(device, options));
    copies.push_back(std::move(loaded));
  }
  std::vector<std::string> differences;
  for (const cgrt::saved::SavedGraph& graph : bundle.folder().manifest().graphs) {
    for (cgrt::LoadedBundle& copy : copies) CGRT_RETURN_IF_ERROR(copy.restore(graph.name));
    for (cgrt::LoadedBundle& copy : copies) CGRT_RETURN_IF_ERROR(copy.launch(graph.name, stream));
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    for (std::size_t i = 0; i < copies.size(); ++i) {
      CGRT_ASSIGN_OR_RETURN(const std::vector<cgrt::MemoryDifference> found, copies[i].check(graph.name));
      for (const cgrt::MemoryDifference& one : found) {
        differences.push_back(absl::StrCat("copy ", i, ", ", graph.name, ": ", one.text));
      }
    }
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const std::vector<cgrt::saved::Block>& blocks = bundle.folder().manifest().blocks;
    const std::vector<void*> now = copies[i].blocks();
    std::size_t moved = 0;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      moved += now[block] != nullptr && reinterpret_cast<std::uintptr_t>(now[block]) != blocks[block].address;
    }
    std::cout << "copy " << i << ": " << moved << " of " << blocks.size() << " blocks at other addresses\n";
  }
  return differences;
}

// A graph of a bundle at other addresses than it was saved at, to be timed.
struct Timed {
  std::string graph;
  cgrt::LoadedBundle loaded;
  cgrt::Stream stream;
  cgrt::Event start, end;
};

absl::StatusOr<std::unique_ptr<Timed>> load_timed(const std::string& path, const std::string& graph) {
  const cgrt::DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(const cgrt::Bundle bundle, cgrt::Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(cgrt::LoadedBundle loaded,
                        bundle.load(device, {.placement = cgrt::BundlePlacement::kAnywhere, .graphs = {graph}}));
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event start, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event end, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  return std::make_unique<Timed>(Timed{graph, std::move(loaded), std::move(stream), std::move(start), std::move(end)});
}

absl::StatusOr<absl::Duration> time_of(Timed& timed, int replays, bool is_by_host) {
  const absl::Time before = absl::Now();
  CGRT_RETURN_IF_ERROR(timed.stream.ref().record(timed.start));
  for (int i = 0; i < replays; ++i) {
    CGRT_RETURN_IF_ERROR(timed.loaded.launch(timed.graph, timed.stream));
    if (is_by_host) CGRT_RETURN_IF_ERROR(timed.stream.ref().synchronize());
  }
  CGRT_RETURN_IF_ERROR(timed.stream.ref().record(timed.end));
  CGRT_RETURN_IF_ERROR(timed.stream.ref().synchronize());
  if (is_by_host) return absl::Now() - before;
  return cgrt::elapsed_time(timed.start, timed.end);
}

bool holds(const absl::Status& status) {
  if (!status.ok()) std::cerr << status.message() << std::endl;
  return status.ok();
}

}  // namespace

// Null where it cannot be loaded, as errors of the two below: said on standard error. It is not freed.
extern "C" [[gnu::visibility("default")]] void* load_graph(const char* path, const char* graph) {
  absl::StatusOr<std::unique_ptr<Timed>> timed = load_timed(path, graph);
  return holds(timed.status()) ? timed->release() : nullptr;
}

// Puts its memory back to what was saved. 0: it failed.
extern "C" [[gnu::visibility("default")]] int restore_graph(void* graph) {
  auto& timed = *static_cast<Timed*>(graph);
  return holds(timed.loaded.restore(timed.graph)) ? 1 : 0;
}

// Of one of `replays` in a row, between two events; by the host's clock each is waited for. Negative: it failed.
extern "C" [[gnu::visibility("default")]] double replay_microseconds(void* graph, int replays, int is_by_host) {
  const absl::StatusOr<absl::Duration> time = time_of(*static_cast<Timed*>(graph), replays, is_by_host != 0);
  return holds(time.status()) ? absl::ToDoubleMicroseconds(*time) / replays : -1;
}

// How many differences there were; -1: the bundle could not be replayed. Prints them.
extern "C" [[gnu::visibility("default")]] int replay_beside(const char* path) {
  const auto differences = replay_copies(path);
  if (!differences.ok()) {
    std::cout << differences.status().message() << std::endl;
    return -1;
  }
  for (const std::string& one : *differences) std::cout << one << "\n";
  std::cout << std::flush;
  return static_cast<int>(differences->size());
}
