// graphdump's subcommands, each in a file of its own, and their options. main.cpp alone includes CLI11 and fills in the
// options: to compile it takes longer than a subcommand. All return the exit status of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace graphdump {

struct ShowOptions {
  std::string file;
  std::string format = "text";
  bool all = false, full_names = false;  // of text
};
int show(const ShowOptions& options);

struct StatsOptions {
  std::string file;
  std::string format = "text";
};
int stats(const StatsOptions& options);

struct DiffOptions {
  std::string a, b;
  std::vector<std::string> more;
  bool varying = false;
  std::size_t limit = 100;  // lines; 0: all
};
int diff(const DiffOptions& options);

inline constexpr std::uint64_t kBytesPerMb = 1'000'000;

struct RunOptions {
  static constexpr std::uint64_t kMaxMb = std::numeric_limits<std::uint64_t>::max() / kBytesPerMb;
  std::string folder = "graphs";
  std::uint64_t max_mb = 1024;  // up to kMaxMb
  std::uint64_t min_nodes = 0;
  bool is_timed = false, is_traced = false, is_explained = false;
  std::vector<std::string> command;
};
int run(const RunOptions& options);  // time and explain, too

int emit(const std::string& file);

struct LintOptions {
  std::vector<std::string> files, ignored;
  std::string expected;
  std::string format = "text";
  std::size_t limit = 100;  // lines of a file; 0: all
  bool lists_rules = false, is_strict = false;
};
int lint(const LintOptions& options);

// save, play and shrink load bundles, and with them a driver: they are there with GRAPHDUMP_LOADS_BUNDLES.
struct SaveOptions {
  std::string folder;
  std::vector<std::uint32_t> graphs;
  std::uint64_t min_nodes = 0, launch = 1;
  std::string range;
  std::vector<std::string> inputs, outputs;
  bool is_movable = false;
  std::vector<std::string> command;
};
int save(const SaveOptions& options);

struct PlayOptions {
  std::string path, graph;
  std::vector<std::string> inputs, outputs;  // "NAME=FILE"
  std::uint64_t repeat = 0;
  bool no_check = false, is_anywhere = false;
};
int play(const PlayOptions& options);

struct ShrinkOptions {
  std::string path;
  double replay_seconds = 20, graph_seconds = 120;
};
int shrink(const ShrinkOptions& options);

int verify(const std::string& path);  // of a bundle

struct WhyOptions {
  std::string file, a, b;
};
int why(const WhyOptions& options);

}  // namespace graphdump
