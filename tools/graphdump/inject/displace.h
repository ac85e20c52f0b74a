// What `graphdump save --movable` adds to the recorder in its second run: memory of CUDA's is taken and kept before the
// process makes its own, so that its memory has other addresses than in the first run.
#pragma once

#include <cuda.h>

namespace graphdump::displace {

// The process made or retained `context`. Takes memory in it where it is the first and the run is the second.
// Thread-safe.
void on_context(CUcontext context);

}  // namespace graphdump::displace
