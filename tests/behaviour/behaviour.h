// The behaviour suite: one table of rows that runs on the simulator and on a real device. Each row
// notes what it saw (return codes, node kinds, edges, values); the notes of the run on an H200 are
// committed as its transcript, and the simulator's notes must equal them.
//
//   BEHAVIOUR("an event that was never recorded is complete") {
//     CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
//     notes.completion("event", event.ref().completion());
//     return absl::OkStatus();
//   }
//
// A row that returns an error, or breaks an EXPECT, fails. One that returns a skip (support/skip.h) was not run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

// What a row saw, line by line.
class Notes {
 public:
  void line(std::string text) { lines_.push_back(std::move(text)); }
  // "name: 0 OK" or "name: 904 FAILED_PRECONDITION": CUresult where there is one.
  void status(const std::string& name, const absl::Status& status);
  void completion(const std::string& name, const absl::StatusOr<Completion>& completion);
  // Kinds, functions, dimensions, edges and scopes.
  absl::Status graph(const std::string& name, const Graph& graph);
  void expect(bool condition, const char* text, int line);

  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::vector<std::string> lines_, failures_;
};

class World {
 public:
  explicit World(Simulator* simulator) : simulator_(simulator) {}
  DeviceRef device() const { return DeviceRef(0); }
  Simulator* simulator() const { return simulator_; }  // null on a device

 private:
  Simulator* simulator_;
};

// Keeps a stream's later work from starting until opened or destroyed.
class Gate {
 public:
  static absl::StatusOr<Gate> close(World& world, StreamRef stream);
  Gate(Gate&& other) noexcept
      : world_(std::exchange(other.world_, nullptr)), stream_(other.stream_), flag_(std::move(other.flag_)) {}
  ~Gate() { open(); }
  void open();

 private:
  Gate(World& world, StreamRef stream) : world_(&world), stream_(stream) {}
  World* world_;  // null: open
  StreamRef stream_;
  std::unique_ptr<PinnedBuffer> flag_;
};

// Device floats with known contents, and what they are now.
absl::StatusOr<DeviceBuffer> device_floats(World& world, const std::vector<float>& values);
absl::StatusOr<DeviceBuffer> device_floats(World& world, std::size_t count, float value);
absl::StatusOr<std::vector<float>> read_floats(World& world, const DeviceBuffer& buffer);

// Lets go of what graphs kept until `done`; false after five seconds. The driver calls back when it
// likes.
bool collect_until(const std::function<bool()>& done);

using BehaviourFunction = std::function<absl::Status(World& world, Notes& notes)>;
struct Behaviour {
  std::string name;
  BehaviourFunction run;
};
std::vector<Behaviour>& behaviours();
// With the rows that are generated from tests/operations.
std::vector<Behaviour> all_behaviours();

struct RegisterBehaviour {
  RegisterBehaviour(std::string name, BehaviourFunction run) {
    behaviours().push_back({std::move(name), std::move(run)});
  }
};

}  // namespace cgrt::testing

#define EXPECT(...) notes.expect(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __LINE__)

#define BEHAVIOUR(name) CGRT_BEHAVIOUR_AT(CGRT_CONCAT(behaviour_, __LINE__), name)
#define CGRT_BEHAVIOUR_AT(function, name)                                                            \
  static absl::Status function(cgrt::testing::World& world, cgrt::testing::Notes& notes);            \
  static const cgrt::testing::RegisterBehaviour CGRT_CONCAT(function, _registered)(name, &function); \
  static absl::Status function([[maybe_unused]] cgrt::testing::World& world, cgrt::testing::Notes& notes)
