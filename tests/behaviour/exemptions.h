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
inline constexpr const char* kNeedsVulkan = "needs a Vulkan loader on the machine that records the transcript";
inline constexpr Exemption kExemptions[] = {
    {"elapsed time is device time", "the simulator has no GPU time to tell and answers kUnimplemented"},
    {"every target works in a context that is not the primary one", "the simulator has primary contexts only"},
    {"every target works in a green context", "the simulator has primary contexts only"},
    {"copies between two devices carry the values, in every target",
     "the transcript is of a machine with one GPU; run on two by hand"},
    {"capture modes: which thread's unsafe call ends a capture of each", kNotRun},
    {"the ladder with counters: a set, an update, an executable made anew, and refusals", kNotRun},
    {"batch memory operations: they follow in a rebound step, and their addresses a buffer", kNotRun},
    {"inside a capture: remove_programmatic_edges", kNotRun},
    {"external semaphores: a stream waits for a value that the host, another stream or a graph signals", kNeedsVulkan},
    {"external semaphores: a binary one is waited for once for each signal", kNeedsVulkan},
    {"external semaphores: several are one node, captured and built, and are set in both", kNeedsVulkan},
    {"external semaphores: a graph keeps them until its last launch has ended", kNeedsVulkan},
    {"external semaphores: they follow in a rebound step", kNeedsVulkan},
    {"external semaphores: what cannot be is refused", kNeedsVulkan},
    {"inside a capture: ExternalSemaphore::import_fd", kNeedsVulkan},
    {"inside a capture: signal_semaphores", kNeedsVulkan},
    {"inside a capture: signal_semaphore", kNeedsVulkan},
    {"inside a capture: wait_semaphores", kNeedsVulkan},
    {"inside a capture: wait_semaphore", kNeedsVulkan},
    {"inside a capture: Graph::add_semaphore_signal", kNeedsVulkan},
    {"inside a capture: Graph::add_semaphore_wait", kNeedsVulkan},
    {"inside a capture: Cursor::add_semaphores", kNeedsVulkan},
    {"inside a capture: Graph::set_params (2)", kNeedsVulkan},
    {"inside a capture: GraphExec::set_params (3)", kNeedsVulkan},
};

// The reason; null when the row is compared.
inline const char* exemption(const char* row) {
  for (const Exemption& exemption : kExemptions) {
    if (std::strcmp(exemption.row, row) == 0) return exemption.reason;
  }
  return nullptr;
}

}  // namespace cgrt::testing
