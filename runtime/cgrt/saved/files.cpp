#include "cgrt/saved/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"

namespace cgrt::saved {
namespace {

constexpr mode_t kFileMode = 0600, kFolderMode = 0700;

// ELOOP is what O_NOFOLLOW says to a link.
absl::Status open_error(int error, const std::string& path) {
  if (error == ELOOP) return absl::DataLossError(absl::StrCat(path, ": is a symbolic link; a bundle has none"));
  return file_error(error, path, "cannot be opened");
}

absl::Status write_all(int file, std::span<const std::byte> content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(errno, path, "cannot be written");
    content = content.subspan(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status check_hash(const std::string& path, Hash expected, std::span<const std::byte> content) {
  const Hash hash = hash_of(content);
  if (hash == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": has the hash ", to_string(hash), ", and the manifest says ",
                                          to_string(expected), ": it is damaged"));
}

// For std::bad_alloc, and for std::length_error of a string.
absl::Status too_long(const std::string& path) {
  return absl::ResourceExhaustedError(absl::StrCat(path, ": too long for the memory of this machine"));
}

}  // namespace

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

FileName manifest_file() { return {"", kManifestFile}; }
FileName graph_file(const std::string& name, Hash hash) {
  return {kGraphFolder, absl::StrCat(name, ".", to_string(hash), kGraphEnding)};
}
FileName code_file(Hash hash) { return {kCodeFolder, to_string(hash)}; }
FileName memory_file(Hash hash) { return {kMemoryFolder, to_string(hash)}; }

absl::StatusOr<Files> Files::open(const std::string& path) {
  Descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return file_error(errno, path, "cannot be opened as a folder");
  return Files(path, std::move(root));
}

std::string Files::path_of(const FileName& file) const {
  return absl::StrCat(path_, "/", file.folder, *file.folder == '\0' ? "" : "/", file.name);
}

absl::StatusOr<Descriptor> Files::open_folder(const char* folder) const {
  const char* name = *folder == '\0' ? "." : folder;
  Descriptor opened(::openat(root_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.is_open()) return opened;
  // With O_DIRECTORY a link is ENOTDIR.
  return file_error(errno, absl::StrCat(path_, "/", folder), "cannot be opened as a folder");
}

absl::StatusOr<Files::Opened> Files::open_file(const FileName& file) const {
  CGRT_ASSIGN_OR_RETURN(const Descriptor folder, open_folder(file.folder));
  // O_NONBLOCK: a pipe would wait for somebody who writes.
  Descriptor opened(::openat(folder.get(), file.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!opened.is_open()) return open_error(errno, path_of(file));
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) return open_error(errno, path_of(file));
  if (!S_ISREG(status.st_mode)) return absl::DataLossError(absl::StrCat(path_of(file), ": is no regular file"));
  return Opened{std::move(opened), static_cast<std::uint64_t>(status.st_size)};
}

absl::StatusOr<Files::Opened> Files::open_file(const FileName& file, std::uint64_t bytes) const {
  absl::StatusOr<Opened> opened = open_file(file);
  if (absl::IsNotFound(opened.status())) {
    return absl::DataLossError(absl::StrCat(path_of(file), ": is not there, and the manifest names it"));
  }
  if (!opened.ok() || opened->bytes == bytes) return opened;
  return absl::DataLossError(
      absl::StrCat(path_of(file), ": has ", counted(opened->bytes, "byte"), ", and the manifest says ", bytes));
}

absl::Status Files::check_bytes(const FileName& file, std::uint64_t bytes) const {
  return open_file(file, bytes).status();
}

absl::Status Files::read_into(const FileName& file, const Descriptor& from, std::span<std::byte> out) const {
  const std::size_t bytes = out.size();
  while (!out.empty()) {
    const ssize_t count = ::read(from.get(), out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(errno, path_of(file), "cannot be read");
    if (count == 0) {
      return absl::DataLossError(
          absl::StrCat(path_of(file), ": ended after ", bytes - out.size(), " of ", counted(bytes, "byte")));
    }
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status Files::read(const FileName& file, const std::optional<Hash>& hash, std::span<std::byte> out) const {
  CGRT_ASSIGN_OR_RETURN(const Opened opened, open_file(file, out.size()));
  CGRT_RETURN_IF_ERROR(read_into(file, opened.file, out));
  return hash.has_value() ? check_hash(path_of(file), *hash, out) : absl::OkStatus();
}

absl::Status Files::read(const FileName& file, Hash hash, std::uint64_t bytes, std::string& out) const try {
  CGRT_ASSIGN_OR_RETURN(const Opened opened, open_file(file, bytes));
  out.resize(bytes);
  CGRT_RETURN_IF_ERROR(read_into(file, opened.file, std::as_writable_bytes(std::span(out))));
  return check_hash(path_of(file), hash, std::as_bytes(std::span(out)));
} catch (const std::exception&) {
  return too_long(path_of(file));
}

absl::StatusOr<std::string> Files::read_text(const FileName& file, std::uint64_t max_bytes) const try {
  CGRT_ASSIGN_OR_RETURN(const Opened opened, open_file(file));
  if (opened.bytes > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_of(file), ": has ", counted(opened.bytes, "byte"), "; at most ", max_bytes, " are read"));
  }
  std::string text(opened.bytes, '\0');
  CGRT_RETURN_IF_ERROR(read_into(file, opened.file, std::as_writable_bytes(std::span(text))));
  return text;
} catch (const std::exception&) {
  return too_long(path_of(file));
}

absl::Status Files::write(const FileName& file, std::span<const std::byte> content) const {
  static std::atomic<std::uint64_t> next{0};
  CGRT_ASSIGN_OR_RETURN(const Descriptor folder, open_folder(file.folder));
  const std::string unfinished = absl::StrCat(kUnfinished, ::getpid(), "-", next++), path = path_of(file);
  const Descriptor opened(
      ::openat(folder.get(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!opened.is_open()) return file_error(errno, path, "cannot be made");
  absl::Status status = write_all(opened.get(), content, path);
  if (status.ok() && ::renameat(folder.get(), unfinished.c_str(), folder.get(), file.name.c_str()) != 0) {
    status = file_error(errno, path, "cannot be named");
  }
  if (!status.ok()) ::unlinkat(folder.get(), unfinished.c_str(), 0);
  return status;
}

absl::Status Files::make_folder(const char* folder) const {
  if (::mkdirat(root_.get(), folder, kFolderMode) == 0 || errno == EEXIST) return absl::OkStatus();
  return file_error(errno, absl::StrCat(path_, "/", folder), "cannot be made");
}

absl::StatusOr<std::vector<std::string>> Files::list(const char* folder) const {
  absl::StatusOr<Descriptor> opened = open_folder(folder);
  if (absl::IsNotFound(opened.status())) return std::vector<std::string>();
  if (!opened.ok()) return opened.status();
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  const std::string path = absl::StrCat(path_, "/", folder);
  const int copy = ::fcntl(opened->get(), F_DUPFD_CLOEXEC, 0);  // closedir closes it
  const std::unique_ptr<DIR, Close> stream(copy < 0 ? nullptr : ::fdopendir(copy));
  if (stream == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    return file_error(error, path, "cannot be listed");
  }
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(stream.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return file_error(errno, path, "cannot be listed");
  return names;
}

absl::Status Files::remove(const FileName& file) const {
  CGRT_ASSIGN_OR_RETURN(const Descriptor folder, open_folder(file.folder));
  if (::unlinkat(folder.get(), file.name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  return file_error(errno, path_of(file), "cannot be deleted");
}

}  // namespace cgrt::saved
