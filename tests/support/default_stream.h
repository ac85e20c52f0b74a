// What handle 0 means in a file that is compiled with per-thread default streams, and in one that is not.
#pragma once

#include "cgrt/target/launch_target.h"

namespace cgrt::testing {

LaunchTarget zero_of_a_per_thread_file();
LaunchTarget zero_of_a_legacy_file();

}  // namespace cgrt::testing
