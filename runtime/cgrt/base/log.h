// The library's log: warnings and errors that no return value can carry, such as a destroy that
// failed inside a destructor. Lines go to standard error through spdlog's logger "cgrt"; an
// application that registers a logger of that name receives them instead.
//
//   spdlog::register_logger(std::make_shared<spdlog::logger>("cgrt", my_sink));
//
// Thread-safe.
#pragma once

#include <string_view>

namespace cgrt {

void log_warning(std::string_view message);
void log_error(std::string_view message);

}  // namespace cgrt
