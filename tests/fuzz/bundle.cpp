// libFuzzer over the reader of bundles: the manifest, its graphs, and all that reads files. Not part of the build:
//
//   tests/fuzz/run.sh SECONDS bundle

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cgrt/saved/folder.h"
#include "cgrt/saved/movable.h"
#include "cgrt/saved/text.h"
#include "fuzz/bundle_input.h"

namespace {

using namespace cgrt;

void read_all(const saved::Folder& folder) {
  constexpr std::uint64_t kMaxZeros = 1 << 20;
  std::vector<std::byte> out;
  for (const saved::SavedGraph& graph : folder.manifest().graphs) {
    (void)folder.read_graph(graph);
    (void)folder.read_expected(graph.expected);
    (void)folder.read_addresses(graph.addresses);
    for (const saved::Piece& piece : graph.memory) {
      if (!piece.hash.has_value() && piece.range.bytes > kMaxZeros) continue;
      out.resize(piece.range.bytes);
      (void)folder.read_piece(piece, out);
    }
  }
  for (const saved::Module& module : folder.manifest().modules) (void)folder.read_code(module);
  (void)saved::compare_saves(folder, folder);
}

// A bundle in which nothing is wrong can be written, and is then what it was.
void check_again(const saved::Folder& folder) {
  absl::StatusOr<saved::FolderWriter> writer = saved::FolderWriter::create(folder.path());
  if (!writer.ok() || !writer->finish(folder.manifest()).ok() || !writer->remove_unused(folder.manifest()).ok()) {
    std::abort();
  }
  const absl::StatusOr<saved::Folder> again = saved::Folder::open(folder.path());
  if (!again.ok() || again->manifest() != folder.manifest() || !again->verify().empty()) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return fuzz::mutate(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::BundleFolder files(std::string_view(reinterpret_cast<const char*>(data), size));
  const absl::StatusOr<saved::Folder> folder = saved::Folder::open(files.path());
  if (!folder.ok()) return 0;
  read_all(*folder);
  const bool is_whole = folder->verify().empty();
  const absl::StatusOr<std::string> text = saved::to_text(*folder);
  if (!is_whole) return 0;
  if (!text.ok()) std::abort();
  check_again(*folder);
  return 0;
}
