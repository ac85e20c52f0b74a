#include "cgrt/saved/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/inspect/json.h"
#include "cgrt/ir/describe.h"
#include "cgrt/saved/files.h"
#include "cgrt/saved/threads.h"

namespace cgrt::saved {
namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;

static_assert(std::endian::native == std::endian::little);  // as the files of ExpectedMemory

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

absl::Status in_front(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

std::uint64_t file_bytes(const ExpectedMemory& expected) { return expected_hashes(expected) * sizeof(std::uint64_t); }

std::uint64_t file_bytes(const AddressWords& words) {
  std::uint64_t count = 0;
  for (const AddressWords::InBlock& in_block : words.blocks) count += in_block.count;
  return count * sizeof(std::uint64_t);
}

// A file of 8-byte numbers.
absl::StatusOr<std::vector<std::uint64_t>> read_numbers(const Files& files, Hash hash, std::uint64_t bytes) {
  std::string content;
  CGRT_RETURN_IF_ERROR(files.read(memory_file(hash), hash, bytes, content));
  std::vector<std::uint64_t> numbers(content.size() / sizeof(std::uint64_t));
  std::memcpy(numbers.data(), content.data(), content.size());
  return numbers;
}

// Not validated against the manifest.
absl::StatusOr<ir::GraphIr> read_graph_file(const Files& files, const SavedGraph& saved) {
  const FileName file = graph_file(saved.name, saved.file);
  const std::string path = files.path_of(file);
  absl::StatusOr<std::string> text = files.read_text(file, kMaxTextBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::DataLossError(absl::StrCat(path, ": is not there, and the manifest names it"));
  }
  if (!text.ok()) return text.status();
  if (hash_of(bytes_of(*text)) != saved.file) {
    return absl::DataLossError(absl::StrCat(path, ": has not the hash of its name: it is damaged"));
  }
  absl::StatusOr<ir::GraphIr> graph = inspect::from_json(*text);
  return graph.ok() ? std::move(graph) : in_front(path, graph.status());
}

struct Object {
  FileName file;
  Hash hash;
  std::uint64_t bytes;
};

// All code and memory that the manifest names, each once.
std::vector<Object> objects_of(const Manifest& manifest) {
  std::vector<Object> objects;
  std::set<std::tuple<bool, Hash, std::uint64_t>> known;
  const auto add = [&](bool is_code, Hash hash, std::uint64_t bytes) {
    if (!known.emplace(is_code, hash, bytes).second) return;
    objects.push_back({is_code ? code_file(hash) : memory_file(hash), hash, bytes});
  };
  for (const Module& module : manifest.modules) add(true, module.code, module.bytes);
  for (const SavedGraph& graph : manifest.graphs) {
    for (const Piece& piece : graph.memory) {
      if (piece.hash.has_value()) add(false, *piece.hash, piece.range.bytes);
    }
    if (!graph.expected.ranges.empty()) add(false, graph.expected.hashes, file_bytes(graph.expected));
    if (!graph.addresses.blocks.empty()) add(false, graph.addresses.offsets, file_bytes(graph.addresses));
  }
  return objects;
}

}  // namespace

absl::StatusOr<Folder> Folder::open(const std::string& path) {
  CGRT_ASSIGN_OR_RETURN(Files files, Files::open(path));
  CGRT_ASSIGN_OR_RETURN(const std::string text, files.read_text(manifest_file(), kMaxTextBytes));
  absl::StatusOr<Manifest> manifest = manifest_from_json(text);
  if (!manifest.ok()) return in_front(files.path_of(manifest_file()), manifest.status());
  return Folder(std::make_shared<const Files>(std::move(files)),
                std::make_shared<const Manifest>(*std::move(manifest)));
}

const std::string& Folder::path() const { return files_->path(); }

const SavedGraph* Folder::find_graph(std::string_view name) const {
  const auto found = std::find_if(manifest_->graphs.begin(), manifest_->graphs.end(),
                                  [&](const SavedGraph& graph) { return graph.name == name; });
  return found == manifest_->graphs.end() ? nullptr : &*found;
}

absl::StatusOr<ir::GraphIr> Folder::read_graph(const SavedGraph& graph) const {
  absl::StatusOr<ir::GraphIr> read = read_graph_file(*files_, graph);
  if (!read.ok()) return read;
  const absl::Status status = validate(*manifest_, graph, *read);
  return status.ok() ? std::move(read) : in_front(files_->path_of(graph_file(graph.name, graph.file)), status);
}

absl::StatusOr<std::string> Folder::read_code(const Module& module) const {
  std::string image;
  CGRT_RETURN_IF_ERROR(files_->read(code_file(module.code), module.code, module.bytes, image));
  return image;
}

absl::Status Folder::read_piece(const Piece& piece, std::span<std::byte> out, HashCheck check) const {
  if (out.size() != piece.range.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("A piece of ", piece.range.bytes, " bytes is to be read into ", out.size(), "."));
  }
  if (!piece.hash.has_value()) {
    std::memset(out.data(), 0, out.size());
    return absl::OkStatus();
  }
  return files_->read(memory_file(*piece.hash), check == HashCheck::kVerify ? piece.hash : std::nullopt, out);
}

absl::StatusOr<std::vector<std::uint64_t>> Folder::read_expected(const ExpectedMemory& expected) const {
  if (expected.ranges.empty()) return std::vector<std::uint64_t>();
  return read_numbers(*files_, expected.hashes, file_bytes(expected));
}

absl::StatusOr<std::vector<AddressWord>> Folder::read_addresses(const AddressWords& words) const {
  std::vector<AddressWord> read;
  if (words.blocks.empty()) return read;
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> offsets,
                        read_numbers(*files_, words.offsets, file_bytes(words)));
  read.reserve(offsets.size());
  const std::uint64_t* next = offsets.data();
  for (const auto& [block, count] : words.blocks) {
    const std::uint64_t bytes = manifest_->blocks[block].bytes;
    for (std::uint64_t i = 0; i < count; ++i, ++next) {
      const bool is_after = i == 0 || *next >= read.back().offset + kAddressBytes;
      if (!is_after || bytes < kAddressBytes || *next > bytes - kAddressBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat(files_->path_of(memory_file(words.offsets)), ": has an address at byte ", *next, " of block ",
                         block, ", which has ", counted(bytes, "byte"), ", or two at one place"));
      }
      read.push_back({block, *next});
    }
  }
  return read;
}

std::vector<std::string> Folder::verify() const {
  const std::vector<SavedGraph>& graphs = manifest_->graphs;
  const std::vector<Object> objects = objects_of(*manifest_);
  std::vector<absl::Status> found(graphs.size() + objects.size());
  in_threads<std::string>(found.size(), [&](std::size_t i, std::string& buffer) {
    if (i < graphs.size()) {
      found[i] = read_graph(graphs[i]).status();
      if (found[i].ok()) found[i] = read_addresses(graphs[i].addresses).status();
    } else {
      const auto& [file, hash, bytes] = objects[i - graphs.size()];
      found[i] = files_->read(file, hash, bytes, buffer);
    }
  });
  std::vector<std::string> sentences;
  for (const absl::Status& status : found) {
    if (!status.ok()) sentences.emplace_back(status.message());
  }
  return sentences;
}

absl::StatusOr<FolderWriter> FolderWriter::create(const std::string& path) {
  constexpr mode_t kMode = 0700;
  if (::mkdir(path.c_str(), kMode) != 0 && errno != EEXIST) return file_error(errno, path, "cannot be made");
  CGRT_ASSIGN_OR_RETURN(Files files, Files::open(path));
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.list(""));
  for (const std::string& name : names) {
    if (name == kGraphFolder || name == kCodeFolder || name == kMemoryFolder || name.starts_with(kUnfinished)) continue;
    if (name != kManifestFile) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, ": holds \"", ir::printable(name), "\", which is none of a bundle's; name a new folder"));
    }
    if (const absl::Status status = Folder::open(path).status(); !status.ok()) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, ": holds a manifest that cannot be read; name a new folder (", status.message(), ")"));
    }
  }
  for (const char* folder : {kGraphFolder, kCodeFolder, kMemoryFolder}) CGRT_RETURN_IF_ERROR(files.make_folder(folder));
  return FolderWriter(std::make_shared<const Files>(std::move(files)));
}

absl::StatusOr<Hash> FolderWriter::add(const char* folder, std::span<const std::byte> content) {
  const Hash hash = hash_of(content);
  const FileName file{folder, to_string(hash)};
  if (!written_.insert(files_->path_of(file)).second) return hash;
  std::string there;
  if (files_->read(file, hash, content.size(), there).ok()) return hash;
  if (const absl::Status status = files_->write(file, content); !status.ok()) {
    written_.erase(files_->path_of(file));
    return status;
  }
  return hash;
}

absl::StatusOr<Hash> FolderWriter::add_code(std::string_view image) { return add(kCodeFolder, bytes_of(image)); }

absl::StatusOr<Hash> FolderWriter::add_memory(std::span<const std::byte> bytes) { return add(kMemoryFolder, bytes); }

absl::StatusOr<Hash> FolderWriter::add_expected(std::span<const std::uint64_t> hashes) {
  return add(kMemoryFolder, std::as_bytes(hashes));
}

absl::StatusOr<Hash> FolderWriter::add_addresses(std::span<const std::uint64_t> offsets) {
  return add(kMemoryFolder, std::as_bytes(offsets));
}

absl::StatusOr<Hash> FolderWriter::add_graph(const std::string& name, const ir::GraphIr& graph) {
  if (!is_name(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ir::printable(name), "\" is no name of a graph: 1 to 100 letters, digits, '_', '-' and '.'"));
  }
  const std::string text = inspect::to_json(graph);
  const Hash hash = hash_of(bytes_of(text));
  CGRT_RETURN_IF_ERROR(files_->write(graph_file(name, hash), bytes_of(text)));
  graphs_.insert_or_assign(files_->path_of(graph_file(name, hash)), graph);
  return hash;
}

absl::Status FolderWriter::finish(const Manifest& manifest) {
  CGRT_RETURN_IF_ERROR(validate(manifest));
  for (const SavedGraph& graph : manifest.graphs) {
    const std::string path = files_->path_of(graph_file(graph.name, graph.file));
    if (!graphs_.contains(path)) {
      CGRT_ASSIGN_OR_RETURN(graphs_[path], read_graph_file(*files_, graph));
    }
    CGRT_RETURN_IF_ERROR(validate(manifest, graph, graphs_[path]));
  }
  for (const Object& object : objects_of(manifest)) {
    CGRT_RETURN_IF_ERROR(files_->check_bytes(object.file, object.bytes));
  }
  return files_->write(manifest_file(), bytes_of(to_json(manifest)));
}

absl::Status FolderWriter::remove_unused(const Manifest& manifest) {
  std::set<std::string> used;
  for (const Object& object : objects_of(manifest)) used.insert(files_->path_of(object.file));
  for (const SavedGraph& graph : manifest.graphs) used.insert(files_->path_of(graph_file(graph.name, graph.file)));
  for (const char* folder : {"", kGraphFolder, kCodeFolder, kMemoryFolder}) {
    CGRT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder));
    for (const std::string& name : names) {
      const FileName file{folder, name};
      const bool is_object = *folder != '\0' && (parse_hash(name).has_value() || name.ends_with(kGraphEnding));
      if ((!is_object && !name.starts_with(kUnfinished)) || used.contains(files_->path_of(file))) continue;
      CGRT_RETURN_IF_ERROR(files_->remove(file));
      written_.erase(files_->path_of(file));
      graphs_.erase(files_->path_of(file));
    }
  }
  return absl::OkStatus();
}

}  // namespace cgrt::saved
