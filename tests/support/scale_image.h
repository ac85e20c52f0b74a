// An image of code with a kernel and a variable, as text.
#pragma once

namespace cgrt::testing {

// The kernel is scale(float*, float*, float), mangled.
inline constexpr char kScaleImage[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 16 .b8 table[64];
.visible .entry _Z5scalePfS_f(.param .u64 scale_0, .param .u64 scale_1, .param .f32 scale_2)
{ ret; }
)";

}  // namespace cgrt::testing
