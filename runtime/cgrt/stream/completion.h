// The answers to "is it done?". The fourth is an error: absl::StatusOr<Completion>.
//
//   CGRT_ASSIGN_OR_RETURN(const Completion answer, stream.ref().completion());
//   if (answer == Completion::kPending) std::puts("not yet");
#pragma once

namespace cgrt {

enum class Completion {
  kDone,
  kPending,
  // The stream is being captured, or the event was last recorded in a capture that goes on: there is
  // no work to be done before the graph is launched.
  kCaptured,
};

constexpr const char* to_string(Completion completion) {
  switch (completion) {
    case Completion::kDone: return "done";
    case Completion::kPending: return "pending";
    case Completion::kCaptured: return "captured";
  }
  return "unknown";
}

}  // namespace cgrt
