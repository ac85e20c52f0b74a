// What the recorder counted in the processes of a run.
#pragma once

#include <filesystem>
#include <string>

namespace graphdump {

// Reads and removes the session files of `folder`, writes run.json there (docs/graphdump.md), and returns what to tell
// the user, who calls the folder `name`.
std::string take_sessions(const std::filesystem::path& folder, const std::string& name);

}  // namespace graphdump
