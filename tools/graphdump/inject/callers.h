// Which library made a call that the driver refused. The driver's log is written on the thread that calls, so the stack
// tells; what ended a capture, and what to do about it, tells cgrt (driver/capture_log.h).
#pragma once

#include <string>
#include <string_view>

namespace graphdump::callers {

// Before a capture begins; once for the process, thread-safe. Costs nothing until a call is refused.
void listen();

// Of the last refused call of `function` in thread `thread`, the innermost code that is not CUDA's: "libtorch_cuda.so,
// in at::native::item(at::Tensor const&)"; the function is left out where its library does not tell. Empty: not known.
std::string of(long thread, std::string_view function);

}  // namespace graphdump::callers
