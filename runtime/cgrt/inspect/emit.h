// A graph as a program that makes it anew: one .cu file of CUDA driver calls, to show somebody else what a graph does
// to the driver without the program that it comes from.
//
//   std::fputs(inspect::to_program(graph).c_str(), file);   // then: nvcc -arch=native repro.cu -lcuda && ./a.out
//
// The program allocates what the graph's allocations say, adds each node with its parameters, launch attributes and
// edges, instantiates, launches once and says what came of it. What a graph's file does not have, it stands in for:
// kernels by kernels that have the same parameters and do nothing, host functions by one that does nothing, semaphores
// and undecoded operations by empty nodes, arrays by memory, other devices by device 0, contents of memory by zeros. A
// `while` begins with 0, since nothing in its body would end it; memory that is waited for holds what ends the wait.
// Equal graphs give equal bytes. For CUDA 13.
//
// Thread-safe: a pure function.
#pragma once

#include <string>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

// The graph must be valid.
std::string to_program(const ir::GraphIr& graph);

}  // namespace cgrt::inspect
