#include "cgrt/base/text_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cgrt {

absl::Status write_text_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return file_error(errno, path, "cannot be opened for writing");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool is_closed = std::fclose(file) == 0;  // the last bytes may leave only now
  if (!is_written) return file_error(write_error, path, "cannot be written");
  return is_closed ? absl::OkStatus() : file_error(errno, path, "cannot be written");
}

std::string file_name_error(const std::string& path) {
  const std::filesystem::path file(path), folder = file.parent_path();
  std::error_code ignored;
  if (file.filename().empty() || std::filesystem::is_directory(file, ignored)) {
    return absl::StrCat("\"", path, "\" is not the name of a file");
  }
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return "";
  return absl::StrCat("\"", path, "\" cannot be written: there is no folder ", folder.string());
}

absl::StatusOr<std::string> read_text(std::FILE* stream, const std::string& name) try {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (std::size_t count = buffer.size(); count != 0 && text.size() <= kMaxBytes;) {
    count = std::fread(buffer.data(), 1, buffer.size(), stream);
    text.append(buffer.data(), count);
  }
  if (std::ferror(stream) != 0) return file_error(errno, name, "cannot be read");
  if (text.size() > kMaxBytes) return absl::InvalidArgumentError(absl::StrCat(name, ": longer than 1 GiB"));
  return text;
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError(absl::StrCat(name, ": too long for the memory of this machine"));
}

absl::Status file_error(int error, const std::string& path, const char* what) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

}  // namespace cgrt
