// Rows whose notes are not compared between the simulator and a device, each with its reason.
#pragma once

#include <cstring>

namespace cgrt::testing {

struct Exemption {
  const char* row;
  const char* reason;
};
// A row written while no device was at hand: the next transcript has it, and then it goes from here.
inline constexpr const char* kNotRun = "not run on a device yet";
inline constexpr const char* kOneGpu = "the transcript is of a machine with one GPU; run on two by hand";
inline constexpr Exemption kExemptions[] = {
    {"elapsed time is device time", "the simulator has no GPU time to tell and answers kUnimplemented"},
    {"every target works in a context that is not the primary one", "the simulator has primary contexts only"},
    {"every target works in a green context", "the simulator has primary contexts only"},
    {"copies between two devices carry the values, in every target", kOneGpu},
    {"a rebound executable runs on its own device, launched into a stream of another one, too", kOneGpu},
};

// The reason; null when the row is compared.
inline const char* exemption(const char* row) {
  for (const Exemption& exemption : kExemptions) {
    if (std::strcmp(exemption.row, row) == 0) return exemption.reason;
  }
  return nullptr;
}

}  // namespace cgrt::testing
