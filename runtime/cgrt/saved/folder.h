// The folder of a bundle: what saved/manifest.h describes, on disk.
//
//   CGRT_ASSIGN_OR_RETURN(const saved::Folder folder, saved::Folder::open("step.bundle"));
//   CGRT_ASSIGN_OR_RETURN(const ir::GraphIr graph, folder.read_graph(folder.manifest().graphs[0]));
//
// Made for folders of unknown origin: damaged or foreign files are an error with the file's name and what is wrong;
// names of files are made from hashes and checked names, so no path leaves the folder; what is read is as long as the
// manifest says, and nothing is allocated for sizes that a file does not have.
// A Folder is a value and thread-safe; a FolderWriter is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/hash.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

class Files;

// kSkip: the caller trusts the disk.
enum class HashCheck { kVerify, kSkip };

class Folder {
 public:
  // Reads and validates the manifest. kNotFound: there is none; kInvalidArgument: it is damaged or of another version.
  static absl::StatusOr<Folder> open(const std::string& path);

  const std::string& path() const;
  const Manifest& manifest() const { return *manifest_; }
  // Null: there is none with that name.
  const SavedGraph* find_graph(std::string_view name) const;

  // Validated against the manifest.
  absl::StatusOr<ir::GraphIr> read_graph(const SavedGraph& graph) const;
  absl::StatusOr<std::string> read_code(const Module& module) const;
  // Into `out`, which is as long as the piece; of a piece of zeros zeros. kDataLoss: the content has another hash.
  absl::Status read_piece(const Piece& piece, std::span<std::byte> out, HashCheck check = HashCheck::kVerify) const;
  absl::StatusOr<std::vector<std::uint64_t>> read_expected(const ExpectedMemory& expected) const;
  absl::StatusOr<std::vector<AddressWord>> read_addresses(const AddressWords& words) const;  // ascending

  // Everything that the manifest names is there and has its hash and its length. All that is wrong, a sentence each;
  // empty: nothing. Files that nothing names are no error.
  std::vector<std::string> verify() const;

 private:
  Folder(std::shared_ptr<const Files> files, std::shared_ptr<const Manifest> manifest)
      : files_(std::move(files)), manifest_(std::move(manifest)) {}
  std::shared_ptr<const Files> files_;
  std::shared_ptr<const Manifest> manifest_;
};

// Files are made with mode 0600 and folders with 0700; an object that is there already, undamaged, is not written
// again. Each file has its content before it has its name, and none has the name of one with other content but the
// manifest: a bundle that is there stays readable until finish() replaces it.
class FolderWriter {
 public:
  // Makes the folder where there is none. kAlreadyExists: it has files that are none of a bundle's, or a manifest that
  // cannot be read.
  static absl::StatusOr<FolderWriter> create(const std::string& path);

  absl::StatusOr<Hash> add_code(std::string_view image);
  absl::StatusOr<Hash> add_memory(std::span<const std::byte> bytes);
  absl::StatusOr<Hash> add_expected(std::span<const std::uint64_t> hashes);
  absl::StatusOr<Hash> add_addresses(std::span<const std::uint64_t> offsets);
  absl::StatusOr<Hash> add_graph(const std::string& name, const ir::GraphIr& graph);
  // Writes the manifest, in place of the one that is there: the bundle is complete. kInvalidArgument: it is not valid,
  // or not with its graphs; kDataLoss: a file that it names is not there.
  absl::Status finish(const Manifest& manifest);
  // Deletes code and memory that `manifest` does not name, and graphs of other names.
  absl::Status remove_unused(const Manifest& manifest);

 private:
  explicit FolderWriter(std::shared_ptr<const Files> files) : files_(std::move(files)) {}
  absl::StatusOr<Hash> add(const char* folder, std::span<const std::byte> content);
  std::shared_ptr<const Files> files_;
  std::set<std::string> written_;              // paths of objects
  std::map<std::string, ir::GraphIr> graphs_;  // by path: those that finish() validates without reading them
};

std::string to_json(const Manifest& manifest);
// kInvalidArgument with the path of the offending value, as inspect::from_json. Validated.
absl::StatusOr<Manifest> manifest_from_json(std::string_view text);

}  // namespace cgrt::saved
