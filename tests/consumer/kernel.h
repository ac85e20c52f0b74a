#pragma once
#include <cgrt/launch/kernel.h>
cgrt::Kernel<float*, float, int> fill_kernel();
