// The command line of a sample, and what all of them exit with:
//   0 fine; 1 a wrong result, or a failure; 2 a wrong command line; 77 skipped, where it cannot run.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

// What to exit with when there is nothing to run: 0 after --help, and 2 after a sentence on what is wrong.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// For a sample without options.
std::optional<int> parse_no_options(const char* program, const char* about, int argc, char** argv);

// For a sample with one option, the file that it writes. `file` holds the default before; `error_of` a name is what is
// wrong with it, or nothing.
std::optional<int> parse_file(const char* program, const char* about, int argc, char** argv, std::string& file,
                              std::string (*error_of)(const std::string&));
