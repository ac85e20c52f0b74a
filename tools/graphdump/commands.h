// What graphdump's subcommands do. Each returns the exit status of the program.
#pragma once

#include <cstddef>
#include <string>

namespace graphdump {

// As diff(1) does, so that scripts can tell a difference from a failure.
enum ExitStatus { kOk = 0, kDifferent = 1, kError = 2 };

struct ShowOptions {
  std::string file;
  std::string format = "text";
  bool all = false, full_names = false;  // of text
};

struct StatsOptions {
  std::string file;
  std::string format = "text";
};

struct DiffOptions {
  std::string a, b;
  std::size_t limit = 100;  // lines; 0: all
};

int run_show(const ShowOptions& options);
int run_stats(const StatsOptions& options);
int run_diff(const DiffOptions& options);

// Writes to standard output and error, and returns `status`; kError when the output cannot be
// written for another reason than a reader that left.
int print(const std::string& out, const std::string& err, ExitStatus status);

}  // namespace graphdump
