#include "support/loaded_kernels.h"

#include "loaded_cubin.inc"
#include "loaded_fatbin.inc"
#include "loaded_ptx.inc"

namespace cgrt::testing {
namespace {

template <std::size_t kSize>
std::string_view view(const unsigned char (&bytes)[kSize]) {
  return {reinterpret_cast<const char*>(bytes), kSize};
}

}  // namespace

std::string_view loaded_ptx() { return view(::loaded_ptx); }
std::string_view loaded_cubin() { return view(::loaded_cubin); }
std::string_view loaded_fatbin() { return view(::loaded_fatbin); }

}  // namespace cgrt::testing
