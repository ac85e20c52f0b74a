// Writes every graph that this program instantiates, when CGRT_DUMP_DIR names a folder:
//
//   CGRT_DUMP_DIR=/tmp/graphs ./my_program
//   graphdump show /tmp/graphs/my_program-4711-0.cgrt.json
//
// Linked into every program that uses cgrt::runtime; costs one branch per instantiate when the
// variable is not set. A file that cannot be written is a warning in the log, never an error of the
// program. Files are <program>-<process id>-<number>.cgrt.json, numbered in order of instantiation; a file that is
// there already is left alone.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace cgrt {

// The same from code: from now on into `directory`; empty: no more. It is not created: where it is missing,
// each graph is a warning in the log, and no error. Thread-safe.
void dump_graphs_to(std::string directory);

}  // namespace cgrt
