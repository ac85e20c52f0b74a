#pragma once

#include "cgrt/launch/kernel.h"

cgrt::Kernel<int*> twin_kernel();
