// What is wrong with a recorded run, or may be: what its processes did with their executables. `graphdump lint FOLDER`.
//
//   inspect::SharedMemory shared;  // of one process
//   for (const inspect::RecordedExec& exec : process.execs) {
//     const ir::GraphIr& graph = graphs.at(exec.file);
//     CGRT_ASSIGN_OR_RETURN(const std::vector<inspect::Finding> findings, inspect::lint(graph, exec));
//     for (const inspect::Finding& finding : findings) std::puts(to_text(finding).c_str());
//     shared.add(graph, exec);
//   }
//   const std::vector<inspect::Finding> of_pairs = std::move(shared).findings();
//
// The rules are among those of lint.h. Nothing here is an error: a run does not tell what else orders its launches.
#pragma once

#include "cgrt/base/language.h"  // first

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/inspect/lint.h"
#include "cgrt/inspect/recorded_run.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// What lint(graph) finds, and what is to be said of its executable. InvalidArgument where `exec` speaks of nodes or
// memory that the graph does not have.
absl::StatusOr<std::vector<Finding>> lint(const ir::GraphIr& graph, const RecordedExec& exec);

// Executables of a process that may run at the same time and touch the same memory: they were there at the same time,
// and were launched into different streams.
//
// Graphs are not kept, only where they touch memory: at most 2^21 places. No more than 2^22 of them are compared, some
// seconds; what lies beyond is a finding of the rule not-checked. Not thread-safe.
class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  ~SharedMemory();

  // Those of one process, ascending by number, of valid graphs that lint() took. An executable that was not launched
  // adds nothing.
  void add(const ir::GraphIr& graph, const RecordedExec& exec);

  // One for each pair, at most 10 of a severity: the last one counts those beyond. They have no nodes; the text does.
  std::vector<Finding> findings() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cgrt::inspect
