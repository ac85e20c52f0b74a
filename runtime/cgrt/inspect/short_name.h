// Kernels' names for places with little room. Internal to inspect/.
//
//   short_name("ns::norm<ns::Row>");   // norm<Row>
#pragma once

#include <string>
#include <string_view>

namespace cgrt::inspect {

// Without what stands before a name's last "::", in template arguments too.
std::string short_name(std::string_view name);

}  // namespace cgrt::inspect
