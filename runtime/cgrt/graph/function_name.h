// From the symbol that a driver gives a kernel to the one name that graphs have for it, on every machine.
// Internal to graph/.
//
// It is the demangler's: values of enumerations are numbers, since a mangled name holds nothing else, and
// types are written out in full. A device gives the symbol that nvcc made; the simulator gives the name of the
// type driver::KernelIdentity::tag, which holds the same. Two cases are left where the names differ: files compiled
// without RTTI, where the simulator gives the name as in the source, with enumerators by name; and kernels of
// extended lambdas (nvcc --extended-lambda), whose type is another one on the host.
#pragma once

#include <string>

namespace cgrt::internal {

// "_ZN2ns4normILNS_2OpE3EfEEvPT0_i" -> "ns::norm<(ns::Op)3, float>": no return type, no parameters, no
// unnamed namespaces. A name that is not mangled comes back as it is.
std::string function_name(const char* symbol);

}  // namespace cgrt::internal
