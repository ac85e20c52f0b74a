// What a session holds of an executable beside its counts: the streams of its launches and what its graph uses of the
// process's memory. Files of graphs hold no addresses; these tell which memory of one is that of another.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "cgrt/graph/snapshot.h"
#include "inject/session_file.h"

namespace graphdump {

// As the session has it: kLegacyStream, kPerThreadStream with the number of this thread, or the handle.
std::uint64_t number_of(CUstream stream);

// Lock-free; a load and a comparison where the first stream comes again. `stream` is not null.
void note_stream(ExecRecord& record, CUstream stream);

// For the thread that instantiates. `nodes` and `memory` are those of the snapshot `graph`.
void list_memory(Session& session, ExecRecord& record, const cgrt::ir::GraphIr& graph,
                 const std::vector<CUgraphNode>& nodes, const std::vector<cgrt::AllocationId>& memory);

}  // namespace graphdump
