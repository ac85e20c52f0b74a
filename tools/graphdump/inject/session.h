// This process's session file (session_file.h) and the folder that it and the graphs' files are in.
// Thread-safe.
#pragma once

#include <string>

#include "inject/session_file.h"

namespace graphdump {

// Made at the first call from what `graphdump run` put into the environment; null: it did not, or the file cannot be
// made.
Session* session();
const std::string& session_folder();

// "python3-4711", in front of the names of this process's files.
std::string file_prefix();

// Adds a line for the user; those that find no room are left out.
void note(const std::string& sentence);

// The limits that the user gave.
struct Limits {
  std::uint64_t max_bytes = 0;  // of all files of this process; 0: none
  std::uint64_t min_nodes = 0;  // of a graph that is written
};
const Limits& limits();

}  // namespace graphdump
