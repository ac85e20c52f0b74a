// The parts of a graph in words, the same wherever a person reads them: text output, differences
// and error messages.
//
//   const std::string node = ir::node_label(graph, 3);                    // node 3 "scale", or: node 3 (memcpy)
//   const std::string place = ir::describe(graph, ir::Pointer{0, 256});   // device#0+0x100
//
// None of these needs a valid graph. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cgrt/ir/graph_ir.h"

namespace cgrt::ir {

// `text` with control characters, line and direction marks, and bytes that are not UTF-8 as \xNN, so
// that a name read from a file cannot steer a terminal.
std::string printable(std::string_view text);

// Bytes of `text` up to the first that are not UTF-8; all of them when there are none.
std::size_t utf8_length(std::string_view text);

std::string node_label(const GraphIr& graph, std::uint32_t id);

// What the graph `body` (1 is bodies[0]) is to its owner: "child of node 3 (child graph)", "body of node 5 (while)",
// "then of", "else of", "case 2 of".
std::string body_label(const GraphIr& graph, std::uint32_t body);

std::string describe(const Dim3& dim);                             // (4,1,1)
std::string describe(const GraphIr& graph, const Pointer& value);  // memory kind, allocation, offset
// device#0+0x100 4096 bytes, 0.5 persisting, else streaming
std::string describe(const GraphIr& graph, const AccessPolicyWindow& window);
// Those that are not at their defaults: "cluster (2,1,1) cooperative"; empty when all are.
std::string describe(const GraphIr& graph, const LaunchAttributes& attributes);

// "0 -> 1", "0 -> 1, programmatic, port 1 to port 0"
std::string describe(const Edge& edge);

// "device#0 = 1, 4 bytes", "wait device#0+0x8 >= 7, 8 bytes"
std::string describe(const GraphIr& graph, const MemOp& operation);

// "semaphore#0: 7"
std::string describe(const SemaphoreValue& value);

// Arguments carry no types, so a scalar is a guess that keeps every bit: a small integer in
// decimal, a plausible float as 2.0f and double as 2.0, and hexadecimal otherwise. More than eight
// bytes are written as {0011..} in memory order, at most 16 of them, and then the addresses among
// them, at most 4: {0000.. 24 bytes, device#0 at 0, device#1+0x100 at 8}.
std::string describe(const GraphIr& graph, const Argument& argument);

}  // namespace cgrt::ir
