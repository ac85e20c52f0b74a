// The NVTX ranges that are open on this thread, as NVTX_INJECTION64_PATH brings them here.
#pragma once

#include <string>

namespace graphdump {

// Whether a range is open.
bool has_scope();
// Their names, outermost first: "layer0/attention". Slashes inside of a name become '|'.
std::string current_scope();

}  // namespace graphdump
