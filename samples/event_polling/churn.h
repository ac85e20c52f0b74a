// churn: x = kFactor * x + kStep, `rounds` times, in every element. Long to compute on the device, and
// known on the host without computing it.
#pragma once

#include <cgrt/launch/kernel.h>

#include <cstdint>

constexpr std::uint32_t kFactor = 1664525, kStep = 1013904223;

cgrt::Kernel<std::uint32_t*, int, int> churn_kernel();  // (x, rounds, count)
