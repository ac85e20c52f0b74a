// The bias of a projection with the activation or the gate behind it: what can be asked for. Plain: no Abseil. The
// functions that plan and launch are in bias_activation.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"

namespace cgrt::kernels {

enum class BiasActivation : std::uint8_t { kRelu, kSilu, kGelu, kGeluTanh };  // kGelu: by erf; of -infinity 0 or NaN

enum class BiasGate : std::uint8_t {
  kNone,   // out[r, c] = activation(a[r, c] + bias[c])
  kGated,  // out[r, c] = activation(a[r, c] + bias[c]) * (a[r, columns + c] + bias[columns + c])
};

struct BiasActivationDesc {
  BiasActivation activation = BiasActivation::kGelu;
  BiasGate gate = BiasGate::kNone;
  DType type = DType::kFloat32;         // of all arrays; or float16, bfloat16: computed in float, rounded once
  std::uint64_t rows = 0, columns = 0;  // of `out`
};

// Device addresses of contiguous arrays, aligned to the type's size. With kGated rows of `a`, and the bias, are twice
// as long as those of `out`; else `out` may be `a`. Any other overlap is undefined.
struct BiasActivationArgs {
  void* out = nullptr;
  const void* a = nullptr;
  const void* bias = nullptr;
};

}  // namespace cgrt::kernels
