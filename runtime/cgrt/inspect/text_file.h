// Writing a text to a file, with errors that name the path.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace cgrt::inspect {

// Replaces the file. kNotFound when the folder does not exist, kPermissionDenied, or what else the
// file system said, with the path in front.
absl::Status write_text_file(const std::string& path, const std::string& text);

// errno as a status: "<path>: <what>: No such file or directory".
absl::Status file_error(int error, const std::string& path, const char* what);

}  // namespace cgrt::inspect
