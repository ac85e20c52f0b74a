#include "support/loaded_kernels.h"

#include "bound_cubin_80.inc"
#include "bound_cubin_90.inc"
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

std::string_view bound_cubin_80() { return view(::bound_cubin_80); }
std::string_view bound_cubin_90() { return view(::bound_cubin_90); }

}  // namespace cgrt::testing
