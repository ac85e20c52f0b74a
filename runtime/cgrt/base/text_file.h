// Text from and to files, with errors that name the path.
//
//   CGRT_RETURN_IF_ERROR(write_text_file("step.dot", inspect::to_dot(graph)));
#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cgrt {

// Replaces the file. kNotFound when the folder does not exist, kPermissionDenied, or what else the
// file system said, with the path in front.
absl::Status write_text_file(const std::string& path, const std::string& text);

// What is wrong with the name of a file to write, for a command line to say before the work begins: that it is a
// folder, or that its folder is not there. Empty: nothing, though writing may still fail. CLI11 takes it as a check.
std::string file_name_error(const std::string& path);

// The rest of an open file; kInvalidArgument above 1 GiB, kResourceExhausted when memory ends. `name`
// stands in front of errors.
absl::StatusOr<std::string> read_text(std::FILE* stream, const std::string& name);

// errno as a status: "<path>: <what>: No such file or directory".
absl::Status file_error(int error, const std::string& path, const char* what);

}  // namespace cgrt
