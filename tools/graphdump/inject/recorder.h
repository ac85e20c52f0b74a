// What the recorder knows of the graphs of this process, and the files that it writes. It is told what happens, on the
// thread on which it happened, by the hooks of the driver's functions (hooks.cpp) and by NVTX (nvtx.cpp). Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace graphdump::recorder {

// A node was added to a graph.
void on_node(CUgraphNode node);
// It is a child graph node, which holds a copy of `child`.
void on_child(CUgraphNode node, CUgraph child);
// It is a conditional node, with the bodies that `params` has by now.
void on_conditional(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS& params);
void on_conditional_handle(CUgraphConditionalHandle handle, unsigned at_launch, unsigned flags);
void on_clone(CUgraph original, CUgraph clone);
// Around the driver's call, on the thread that makes it. What is known of the graph is taken out before, as another
// thread may get the handle until the call returns, and put back where the call fails.
void before_graph_destroy(CUgraph graph);
void after_graph_destroy(CUresult result);
// A user object was given to the graph, which may be that of a capture.
void on_user_object(CUgraph graph);

// `stream` is not null, as in on_launch().
void on_capture_begin(CUstream stream, CUstreamCaptureMode mode);
// `graph`: of no matter where `result` is an error; how that came about is noted in the session then.
void on_capture_end(CUstream stream, CUgraph graph, CUresult result);
// Whether a capture is live, of whatever thread. Lock-free.
bool is_capturing();
// The NVTX ranges of this thread are others than before.
void on_scope_change();

// An executable was made of `graph`, which is written; `exec`: null when that has failed.
void on_instantiate(CUgraph graph, CUgraphExec exec);
// CUPTI's view of that, before: a node was copied into another graph or executable, and has this id there; and a node
// is no more.
void on_node_clone(CUgraphNode original, CUgraphNode clone, const void* into, std::uint64_t id);
void on_node_destroy(CUgraphNode node);
// As around the destruction of a graph.
void before_exec_destroy(CUgraphExec exec);
void after_exec_destroy(CUresult result);

// The graph with the parameters that were set since the last launch is written, the first times. `stream` is not null:
// that is CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
void on_launch(CUgraphExec exec, CUstream stream);
enum class ExecCall { kUpload, kSetEnabled };
void on_exec_call(CUgraphExec exec, ExecCall call);
// `node`, of the graph that `exec` was made of, got these parameters in `exec`.
void on_set_params(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams& params);
// `graph`: what a whole-graph update was given. The first ones that succeed are written, too.
void on_update(CUgraphExec exec, CUgraph graph, bool is_refused);

// A launch outside of graphs and captures.
void on_kernel_launch(std::int64_t nanoseconds);

}  // namespace graphdump::recorder
