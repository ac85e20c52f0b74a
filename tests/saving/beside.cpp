// A bundle in a process that has a framework: beside.py loads this library and calls it between its own replays.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/bundle.h"
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

}  // namespace

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
