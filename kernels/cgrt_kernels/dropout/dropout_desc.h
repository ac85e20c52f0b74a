// Dropout: what can be asked for. Plain: no Abseil. The functions that plan and launch are in dropout.h.
#pragma once

#include <cstdint>

#include "cgrt_kernels/common/dtype.h"
#include "cgrt_kernels/common/random_state.h"

namespace cgrt::kernels {

enum class DropoutOp : std::uint8_t {
  kForward,   // draws which elements are kept, writes the mask
  kBackward,  // reads the mask
};
constexpr const char* to_string(DropoutOp op) { return op == DropoutOp::kForward ? "dropout" : "dropout_backward"; }

// out[i] = in[i] / (1 - probability) where element i is kept, else 0, also where in[i] is NaN. Element i of a forward
// launch is kept when number i from the state's offset on is at least probability * 2^32.
struct DropoutDesc {
  DropoutOp op = DropoutOp::kForward;
  DType type = DType::kFloat32;  // of both arrays; or float16, bfloat16
  std::uint64_t count = 0;       // elements, below 2^40
  float probability = 0.5f;      // of an element to be dropped: from 0 to below 1
};

// Device addresses. `out` and `in` are arrays of `count` elements, aligned to the size of these. `out` may be `in`; any
// other overlap is undefined.
struct DropoutArgs {
  void* out = nullptr;
  const void* in = nullptr;      // backward: the gradient of the output, and `out` that of the input
  std::uint8_t* mask = nullptr;  // (count + 7) / 8 bytes: bit i % 8 of byte i / 8 says that element i is kept
  RandomState* state = nullptr;  // forward only: aligned to 8 bytes, and moved on by the launch
};

}  // namespace cgrt::kernels
