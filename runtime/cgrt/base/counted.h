// counted(1, "node") is "1 node", counted(2, "node") "2 nodes". For messages; Internal.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstdint>
#include <string>

namespace cgrt {

inline std::string counted(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace cgrt
