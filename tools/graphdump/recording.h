// A command with the recorder (inject/) in it and in all processes that it starts.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace graphdump {

struct Recording {
  std::vector<std::string> command = {};
  std::filesystem::path folder = {};  // for what the recorder writes; absolute
  bool needs_cupti = false;
  std::vector<std::pair<const char*, std::string>> variables = {};  // see inject/environment.h
};

struct RecordedCommand {
  bool has_run = false;
  int exit_status = 0;  // of graphdump, where it has not: why was said
  int wait_status = 0;  // of the command, as wait() gives it
};

// Blocks until the command ends. Signals that ask a process to end are passed on to it.
RecordedCommand run_recorded(const Recording& recording);

// Ends graphdump as the command did, so that who called sees the same: by its signal, or with the status that this
// returns.
int end_as(int wait_status);

}  // namespace graphdump
