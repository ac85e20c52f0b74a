// Measures chains of kernels launched eagerly, as a captured graph, as a graph built by hand, and as
// one with programmatic edges; and checks that all give the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"

enum class Mode { kEager, kCaptured, kExplicit, kProgrammatic };
const char* to_string(Mode mode);  // "eager", ...

struct Spread {
  double median = 0, p95 = 0;
  std::int64_t count = 0;
};

// Times in microseconds; 0 on the simulator, where `count` is the number of runs that were checked.
struct ModeResult {
  Mode mode = Mode::kEager;
  Spread chain{};   // warm: launch the whole chain and synchronize
  Spread launch{};  // the part of it in which the host is launching
  Spread cold{};    // graphs only: the first launch after instantiate, not uploaded, and synchronize
  // Graphs only: eager launches, alternating with this mode's in the order A B B A; `speedup` is
  // the median of the ratios of the pairs, `ratio_spread` half their quartile distance over it.
  double eager_median = 0, speedup = 0, ratio_spread = 0;
};

struct Point {
  std::int64_t nodes = 0, bytes = 0;
  std::string skipped;  // why; empty: measured
  std::vector<ModeResult> modes;
};

struct Sweep {
  std::vector<std::int64_t> nodes, bytes;
  std::int64_t max_pairs = 50;  // at least 16 are taken
};

// The sweep that this device is worth: smaller when `quick`, tiny on the simulator.
Sweep choose_sweep(bool quick);

// kDataLoss when two modes differ in a bit. On a device progress goes to stderr.
absl::StatusOr<std::vector<Point>> measure(cgrt::DeviceRef device, const Sweep& sweep);

// Writes a chain of 4 kernels as chain-captured.cgrt.json and chain-explicit.cgrt.json.
absl::Status write_graphs(cgrt::DeviceRef device, const std::string& directory);
