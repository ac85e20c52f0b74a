// Pairs of graphs, and what ir::judge must say about each; main.cpp asks a driver whether it is true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/ir/verdict.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

inline constexpr DeviceRef kDevice(0);
inline constexpr int kCount = 64;
inline constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// What the graphs work on. All of it has the same values before each launch.
struct World {
  Stream stream;
  Event first, second, recorded;  // the last has been recorded
  DeviceBuffer memory;            // kWords words; x(i) are kCount of them
  PinnedBuffer host;

  static constexpr std::size_t kWords = 4096;
  static absl::StatusOr<World> create();
  float* x(int i) const { return memory.as<float>() + i * kCount; }
  float* h(int i) const { return host.as<float>() + i * kCount; }
  // Of host memory, behind those of h(): 0 before each launch.
  std::uint32_t* word(int i) const { return reinterpret_cast<std::uint32_t*>(h(32)) + 2 * i; }
};

using Build = std::function<absl::Status(const World&, Graph&)>;
using Step = std::function<absl::Status(const World&, LaunchTarget)>;

// What is known of a pair beyond the verdict.
struct Traits {
  InstantiateFlags flags = InstantiateFlags::kNone;
  bool is_moved = false;  // the graphs differ in what no file says: addresses of buffers, functions of the host
  bool is_shown = false;  // what is lost shows in what the graph writes
  const char* documented =
      nullptr;                    // what CUDA documents as refused, or leaves open: both answers pass, and are printed
  const char* lenient = nullptr;  // what the simulator takes and a device does not
  std::optional<ir::Update> update = std::nullopt;  // where flags make it another than the verdict's
};

struct Pair {
  std::string name;
  Build a, b;
  Step step_b;  // where B is a step that the executable of A can be rebound to
  ir::Rung rung;
  ir::Update update;
  Traits traits = {};
};

std::vector<Pair> kernel_pairs();
std::vector<Pair> copy_pairs();
std::vector<Pair> structure_pairs();

// A pair whose graphs are steps.
Pair steps(std::string name, Step a, Step b, ir::Rung rung, ir::Update update, Traits traits = {});

}  // namespace cgrt::testing
