// What graphdump's subcommands share. Each stands in a file of its own, and says its options to CLI11 there:
//
//   void add_stats(CLI::App& app, Action& action);
//
// Parsing the command line sets `action` to the one that was asked for; it returns the exit status of the program.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace graphdump {

// As diff(1) does, so that scripts can tell a finding from a failure.
enum ExitStatus { kOk = 0, kDifferent = 1, kError = 2 };

using Action = std::function<int()>;

void add_show(CLI::App& app, Action& action);
void add_stats(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_time(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_emit(CLI::App& app, Action& action);
void add_lint(CLI::App& app, Action& action);
#ifdef GRAPHDUMP_LOADS_BUNDLES
void add_save(CLI::App& app, Action& action);
void add_play(CLI::App& app, Action& action);
void add_shrink(CLI::App& app, Action& action);
#endif
void add_verify(CLI::App& app, Action& action);
void add_why(CLI::App& app, Action& action);

// Of a file, of standard input for "-", of a folder that is a bundle with one graph, or of a bundle for "FOLDER:GRAPH".
absl::StatusOr<cgrt::ir::GraphIr> read_graph(const std::string& file);

// Whether the folder is a bundle.
bool is_bundle(const std::string& folder);

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
