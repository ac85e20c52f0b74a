// From the symbol of a kernel to the name that graphs have for it: the same that snapshot() writes. Internal to
// inspect/.
//
// Thread-safe: a pure function.
#pragma once

#include <string>

namespace cgrt::inspect {

// "_ZN2ns4normILNS_2OpE3EfEEvPT0_i" -> "ns::norm<(ns::Op)3, float>": no return type, no parameters, no unnamed
// namespaces. A symbol that is not mangled comes back as it is, and so does one that repeats its parts so often that
// the name might be longer than 16 MiB.
std::string kernel_name(const std::string& symbol);

}  // namespace cgrt::inspect
