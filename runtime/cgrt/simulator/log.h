// The driver's log: what failing calls say, to whoever registered a callback. Internal to simulator/.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "cgrt/driver/api.h"

namespace cgrt::simulator {

// The names that the driver exports, which its log has: "cuMemAlloc_v2". In the order of entry_points.def.
#define CGRT_QUOTED(text) #text
#define CGRT_EXPORTED(name) CGRT_QUOTED(name)
inline constexpr const char* kExportedNames[] = {
#define CGRT_ENTRY(name, version, need) CGRT_EXPORTED(cu##name),
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
};
#undef CGRT_EXPORTED
#undef CGRT_QUOTED

// What the log says of the call in progress on this thread, beside its result.
void say(std::string sentence);

void forget_sentence();
CUresult logged(CUresult result, const char* function);

// An entry of the table: calls `kFunction`, and logs when it fails.
template <auto kFunction, std::size_t kIndex>
struct Logged;
template <class... Args, CUresult (*kFunction)(Args...), std::size_t kIndex>
struct Logged<kFunction, kIndex> {
  static CUresult call(Args... args) {
    forget_sentence();
    const CUresult result = kFunction(args...);
    return __builtin_expect(result == CUDA_SUCCESS, true) ? result : logged(result, kExportedNames[kIndex]);
  }
};

}  // namespace cgrt::simulator
