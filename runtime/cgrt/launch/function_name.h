// From the symbol that a driver gives a kernel to the one name that graphs have for it, on every machine.
// Internal to launch/, graph/ and exec/.
//
// The name is what a demangler makes of the symbol: types are written out in full, and enumerators are numbers, since a
// mangled name holds no more. On a device the symbol is nvcc's. On the simulator it comes from the name of the type
// driver::KernelIdentity::tag, which holds the same symbol. The two names differ in two cases: in files compiled
// without RTTI, where the simulator has the name as in the source, with enumerators by name; and for kernels of
// extended lambdas (nvcc --extended-lambda), whose type is another one on the host.
#pragma once

#include <string>
#include <string_view>

namespace cgrt::internal {

// "_ZN2ns4normILNS_2OpE3EfEEvPT0_i" -> "ns::norm<(ns::Op)3, float>": no return type, no parameters, no
// unnamed namespaces. A name that is not mangled comes back as it is.
std::string function_name(const char* symbol);

// Whether `wanted` is that name, with or without its namespaces and its template arguments.
bool has_name(std::string_view name, std::string_view wanted);

}  // namespace cgrt::internal
