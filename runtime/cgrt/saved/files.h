// The files of a bundle's folder. They are opened one below the other by descriptors, so that no name and no symbolic
// link leads out of it. Internal to saved/.
//
//   CGRT_ASSIGN_OR_RETURN(const Files files, Files::open("step.bundle"));
//   CGRT_RETURN_IF_ERROR(files.read(memory_file(hash), out));
//
// Thread-safe. Errors name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/saved/hash.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

struct FileName {
  const char* folder;  // "": the bundle's own
  std::string name;
};

inline constexpr char kGraphFolder[] = "graphs", kCodeFolder[] = "code", kMemoryFolder[] = "memory";
inline constexpr char kGraphEnding[] = ".cgrt.json";
// So begin names of files that have no content yet.
inline constexpr char kUnfinished[] = ".unfinished-";

FileName manifest_file();
FileName graph_file(const std::string& name, Hash hash);
FileName code_file(Hash hash);
FileName memory_file(Hash hash);

class Files {
 public:
  // A symbolic link to the folder itself is followed.
  static absl::StatusOr<Files> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string path_of(const FileName& file) const;

  // kDataLoss: it has another length, is not there, or is no file but a folder, a link, ...
  absl::Status check_bytes(const FileName& file, std::uint64_t bytes) const;
  // All of a file that has as many bytes as `out`, and has this hash where there is one. kDataLoss: it has not, or is
  // not there.
  absl::Status read(const FileName& file, const std::optional<Hash>& hash, std::span<std::byte> out) const;
  // The same of a file that has `bytes` bytes; memory is taken when it has.
  absl::Status read(const FileName& file, Hash hash, std::uint64_t bytes, std::string& out) const;
  // All of a file of at most `max_bytes`; kNotFound: it is not there.
  absl::StatusOr<std::string> read_text(const FileName& file, std::uint64_t max_bytes) const;

  // Under a name of its own at first. Overwrites.
  absl::Status write(const FileName& file, std::span<const std::byte> content) const;
  // No error where there is one.
  absl::Status make_folder(const char* folder) const;
  // Names, in no order; none where there is no folder.
  absl::StatusOr<std::vector<std::string>> list(const char* folder) const;
  absl::Status remove(const FileName& file) const;

 private:
  struct Opened {
    Descriptor file;
    std::uint64_t bytes;
  };
  Files(std::string path, Descriptor root) : path_(std::move(path)), root_(std::move(root)) {}
  absl::StatusOr<Descriptor> open_folder(const char* folder) const;
  absl::StatusOr<Opened> open_file(const FileName& file) const;
  absl::StatusOr<Opened> open_file(const FileName& file, std::uint64_t bytes) const;
  absl::Status read_into(const FileName& file, const Descriptor& from, std::span<std::byte> out) const;

  std::string path_;
  Descriptor root_;
};

}  // namespace cgrt::saved
