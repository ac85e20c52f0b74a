// What `graphdump save` adds to the recorder: graphs that were chosen are prepared when they are instantiated, and
// saved around one of their launches. A graph that cannot be saved is a note in the session, with the reason. The
// recorder and the hooks tell it what happens. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "cgrt/graph/snapshot.h"
#include "inject/session_file.h"

namespace graphdump::saving {

// Whether the process was started by `graphdump save`.
bool is_on();

// `exec` was made of `graph`, as the one of that number; null: that has failed. In relaxed capture mode.
void on_instantiate(CUgraph graph, CUgraphExec exec, std::uint32_t number, ExecRecord* record,
                    absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of);
// It is now as if it had been made of `graph`. In relaxed capture mode, as the next.
void on_update(CUgraphExec exec, CUgraph graph, absl::FunctionRef<const cgrt::NodeNote*(CUgraphNode)> note_of);
// The parameters of one of its nodes were set.
void on_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params);
// It is not what it was made as any more, and what it is is not known. `how`: "a node was disabled".
void on_change(CUgraphExec exec, std::string_view how);
// Around the driver's call, on its thread; the latter in relaxed capture mode.
void before_exec_destroy(CUgraphExec exec);
void after_exec_destroy(CUresult result);

// Around a launch, on its thread. `is_capturing`: a capture is live, of whatever thread: then memory cannot be read.
// While a graph is being saved, launches of other threads wait.
void before_launch(CUgraphExec exec, bool is_capturing);
void after_launch(CUgraphExec exec, CUresult result);

// A mark of NVTX; one that does not begin with "cgrt:" is none of ours:
//   cgrt:input:NAME:0xADDRESS:BYTES[:DTYPE:SHAPE]     shape as 4x128; output alike
//   cgrt:dead:0xADDRESS:BYTES                         an allocator holds this memory free
//   cgrt:dead:clear                                   and none of what was said before
void on_mark(std::string_view text);

}  // namespace graphdump::saving
