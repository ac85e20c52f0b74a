// One function per line of entry_points.def, with the driver's signature. Internal to simulator/.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#include "cgrt/driver/api.h"

namespace cgrt::simulator {

#define CGRT_ENTRY(name, version, need) std::remove_pointer_t<PFN_cu##name##_v##version> name;
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
std::remove_pointer_t<driver::PFN_ResolveKernel> ResolveKernel;
std::remove_pointer_t<driver::PFN_PatchNode> PatchNode;
std::remove_pointer_t<driver::PFN_SetConditional> SetConditional;

}  // namespace cgrt::simulator
