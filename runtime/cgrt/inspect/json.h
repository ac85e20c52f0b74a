// Graphs as files: NAME.cgrt.json, which graphdump reads. The format is described in
// json_schema.md, in this folder. What reads files reads the driver's DOT dumps, too (driver_dot.h).
//
//   CGRT_RETURN_IF_ERROR(inspect::write_file("step.cgrt.json", graph));
//   CGRT_ASSIGN_OR_RETURN(ir::GraphIr again, inspect::read_file("step.cgrt.json"));
//
// Equal graphs give equal bytes; a valid graph read back equals the one written, but for text that is
// not UTF-8. One node and one edge a line, so that line-based tools can compare files.
// Thread-safe: functions of their arguments and the file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::inspect {

inline constexpr char kGraphSchema[] = "cgrt-graph";
inline constexpr int kGraphVersion = 5;

// In the lowest version that can say it. Takes any graph; from_json reads those that are valid.
std::string to_json(const ir::GraphIr& graph);

// InvalidArgument for any text that is not a valid graph of this version or an older one, with line and column or
// with the path of the offending value ("nodes[3].grid: expected 3 integers, found an array of 2"). Also for gaps
// between kernels' arguments that no compiler leaves, where they have more than 1 MiB together. Keys that this reader
// does not know are skipped. Safe on files of unknown origin.
absl::StatusOr<ir::GraphIr> from_json(std::string_view text);

// Overwrites. The error names the path; NotFound when the folder does not exist, InvalidArgument for a
// graph that is not valid: what is written can be read again.
absl::Status write_file(const std::string& path, const ir::GraphIr& graph);

// from_driver_dot where the text begins like DOT, else from_json.
absl::StatusOr<ir::GraphIr> from_text(std::string_view text);

// Errors of the file system or of from_text, each with the path in front; InvalidArgument above
// 1 GiB; ResourceExhausted when there is too little memory for the text.
absl::StatusOr<ir::GraphIr> read_file(const std::string& path);

// The same from an open file, such as stdin, to its end; `name` stands in front of errors.
absl::StatusOr<ir::GraphIr> read_stream(std::FILE* stream, const std::string& name);

}  // namespace cgrt::inspect
