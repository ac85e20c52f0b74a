#include "cgrt/inspect/text_file.h"

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace cgrt::inspect {

absl::Status write_text_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return file_error(errno, path, "cannot be opened for writing");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool is_closed = std::fclose(file) == 0;  // the last bytes may leave only now
  if (!is_written) return file_error(write_error, path, "cannot be written");
  return is_closed ? absl::OkStatus() : file_error(errno, path, "cannot be written");
}

absl::Status file_error(int error, const std::string& path, const char* what) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

}  // namespace cgrt::inspect
