// From the driver's symbol to the name in the source. Internal to graph/.
#pragma once

#include <string>

namespace cgrt::internal {

// "_ZN2ns5scaleIfEEvPT_i" -> "ns::scale<float>": no return type, no parameters, no unnamed
// namespaces. A name that is not mangled comes back as it is.
std::string function_name(const char* symbol);

}  // namespace cgrt::internal
