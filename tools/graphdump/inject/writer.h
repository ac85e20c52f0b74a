// Writes graphs as files on a thread of its own: the process goes on meanwhile. What waits is written before the
// process ends by exit() or by returning from main; who ends otherwise may lose the last milliseconds' graphs.
// Thread-safe.
#pragma once

#include <functional>
#include <string>

#include "cgrt/ir/graph_ir.h"
#include "inject/session_file.h"

namespace graphdump::writer {

// As `name`, into the session's folder. `record`: what is to hold the name, or why there is no file; may be null.
// `is_wanted`: asked by the thread that writes, after the graphs before are written; null: it is.
void write(cgrt::ir::GraphIr graph, std::string name, ExecRecord* record,
           std::function<bool(const cgrt::ir::GraphIr&)> is_wanted = nullptr);

// Returns when all is written.
void flush();

}  // namespace graphdump::writer
