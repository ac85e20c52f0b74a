// What graphdump's subcommands share.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace graphdump {

// As diff(1) does, so that scripts can tell a finding from a failure.
enum ExitStatus { kOk = 0, kDifferent = 1, kError = 2 };

// Of a file, of standard input for "-", of a folder that is a bundle with one graph, or of a bundle for "FOLDER:GRAPH".
absl::StatusOr<cgrt::ir::GraphIr> read_graph(const std::string& file);

// Whether the folder is a bundle.
bool is_bundle(const std::string& folder);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Writes to standard output and error, and returns `status`; kError when the output cannot be
// written for another reason than a reader that left.
int print(const std::string& out, const std::string& err, ExitStatus status);

// "graphdump: SENTENCE" to standard error; returns kError.
int fail(std::string_view sentence);
int fail(const absl::Status& status);

// Of which only the first `limit` are kept; 0: all.
class Lines {
 public:
  explicit Lines(std::size_t limit) : limit_(limit) {}
  void add(const std::string& line);
  // With a last line that says how many more there are.
  std::string finish() &&;

 private:
  std::size_t limit_, count_ = 0;
  std::string text_;
};

}  // namespace graphdump
