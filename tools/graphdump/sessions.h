// What the recorder counted in the processes of a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace graphdump {

struct Sessions {
  std::string text;                          // for the user
  std::string notes;                         // the part of it that tells what went wrong
  std::vector<std::filesystem::path> files;  // of graphs
};

// Reads and removes the session files of `folder`, which the user calls `name`, and writes run.json there
// (docs/recording.md).
Sessions take_sessions(const std::filesystem::path& folder, const std::string& name);

}  // namespace graphdump
