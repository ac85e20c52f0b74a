// The activations in double, for tests and the simulator's host body.
#pragma once

#include <cmath>

#include "cgrt_kernels/bias_activation/bias_activation_desc.h"

namespace cgrt::kernels {

inline double bias_activation_reference(BiasActivation activation, double x) {
  switch (activation) {
    case BiasActivation::kRelu: return x < 0 ? 0 : x;
    case BiasActivation::kSilu: return x / (1 + std::exp(-x));
    case BiasActivation::kGelu: return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case BiasActivation::kGeluTanh: break;
  }
  return x / (1 + std::exp(-2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

}  // namespace cgrt::kernels
