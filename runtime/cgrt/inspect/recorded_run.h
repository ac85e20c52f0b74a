// What `graphdump run` recorded of the processes of a command, beside their graphs: run.json (docs/recording.md).
//
//   CGRT_ASSIGN_OR_RETURN(inspect::RecordedRun run, inspect::run_from_json(text));
//   for (const inspect::RecordedProcess& process : run.processes) {
//     for (const inspect::RecordedExec& exec : process.execs) launches += exec.launches;
//   }
//
// Thread-safe: functions of their arguments and the file.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cgrt::inspect {

inline constexpr char kRunSchema[] = "cgrt-run-1";

// An executable: what its process did with it. What the file does not say is 0 or empty.
struct RecordedExec {
  std::uint64_t number = 0;  // of the process's executables, in the order of instantiation
  std::string file = {};     // the graph's, in the folder of run.json; empty: none was written
  std::uint64_t nodes = 0, launches = 0, uploads = 0, updates = 0, set_params = 0;
  std::vector<std::string> streams = {};  // of its launches: "0x55d0a0", "legacy", "per-thread 4711"; the first few
  bool has_more_streams = false;
  std::uint64_t destroyed_before = 0;  // the number that the next executable would have had; 0: it was not destroyed
  // Beside ir::GraphIr::allocations: two of one number, in graphs of one process, are the same memory. 0: not known.
  std::vector<std::uint64_t> memory = {};
  bool has_user_objects = false;              // a user object was given to the graph or to a child of it
  std::vector<std::uint32_t> host_data = {};  // host nodes with data that is neither static nor on that stack
  std::vector<std::uint32_t> stack_nodes =
      {};  // whose data or operands were on the stack of the thread that instantiated
};

struct RecordedProcess {
  std::string program = {};
  std::int64_t process = 0;
  std::vector<RecordedExec> execs = {};
};

struct RecordedRun {
  std::vector<RecordedProcess> processes = {};
};

// InvalidArgument for any other text, with line and column or with the path of the offending value; a graph's file that
// is not a plain name, or stands there twice, is one. Keys that this reader does not know are skipped. Safe on files of
// unknown origin.
absl::StatusOr<RecordedRun> run_from_json(std::string_view text);

// Errors of the file system or of run_from_json, each with the path in front.
absl::StatusOr<RecordedRun> read_run(const std::string& path);

}  // namespace cgrt::inspect
