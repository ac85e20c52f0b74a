// What the recorder knows of the graphs of this process, and the files that it writes. It is told what happens by the
// callbacks of CUPTI (inject.cpp), on the thread on which it happens. Thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace graphdump::recorder {

// A node was made, or copied with its graph.
void on_node(CUgraphNode node);
void on_node_clone(CUgraphNode original, CUgraphNode clone);
void on_graph_clone(CUgraph original, CUgraph clone);
// cuGraphAddNode has made a conditional node with `bodies`.
void on_conditional(CUgraphNode node, const CUDA_CONDITIONAL_NODE_PARAMS& params);
void on_conditional_handle(CUgraphConditionalHandle handle, unsigned at_launch, unsigned flags);

void on_capture_begin(CUstream stream);
void on_capture_end(CUstream stream, CUgraph graph);

// Before and after an executable is made of `graph`: the first writes the file. Between the two, on one thread, nodes
// are copied into the executable, which is not told to on_node_clone.
void on_instantiate(CUgraph graph);
void on_instantiated(CUgraphExec exec);
bool is_instantiating();
void on_exec_destroy(CUgraphExec exec);

enum class ExecCall { kLaunch, kUpload, kSetParams };
void on_exec_call(CUgraphExec exec, ExecCall call);
// `graph`: what a whole-graph update was given. The first ones that succeed are written, too.
void on_update(CUgraphExec exec, CUgraph graph, bool is_refused);

// A launch or a copy outside of graphs and captures.
void on_kernel_launch(std::int64_t nanoseconds);
void on_copy();
// How many nodes this thread has made.
std::uint64_t node_count();

}  // namespace graphdump::recorder
