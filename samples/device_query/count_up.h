// count_up: adds one to a counter; after what it depends on, also over a programmatic edge.
#pragma once

#include <cgrt/launch/kernel.h>

cgrt::Kernel<int*> count_up_kernel();
