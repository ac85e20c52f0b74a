// A plugin that links cgrt statically: built twice, so that one process has two copies of the library.
// See copies.cpp for what the functions are called for.
#include <cstdio>
#include <optional>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/simulator/simulator.h"

namespace {

constexpr cgrt::DeviceRef kDevice(0);
std::optional<cgrt::Simulator> simulator;
cgrt::Event event;

}  // namespace

extern "C" {

// Null: makes a simulator and returns its table; else uses the other plugin's.
const void* start_simulator(const void* table) {
  if (table == nullptr) {
    simulator.emplace();
    return &cgrt::driver::api();
  }
  cgrt::driver::install(*static_cast<const cgrt::driver::Api*>(table));
  return table;
}

void stop_simulator() { simulator.reset(); }

// Instantiates a graph of that many nodes, which is dumped.
int instantiate_nodes(int count) {
  cgrt::Graph graph = *cgrt::Graph::create(kDevice);
  for (int i = 0; i < count; ++i) static_cast<void>(graph.add_empty({}));
  return cgrt::instantiate(graph).ok() ? 0 : 1;
}

void dump_to(const char* directory) { cgrt::dump_graphs_to(directory); }

// Captures, and calls the other plugin inside.
int capture_around(int (*inside)(CUstream)) {
  const cgrt::Stream stream = *cgrt::Stream::create(kDevice);
  int answer = -1;
  const absl::Status status = cgrt::capture(stream, [&](cgrt::StreamRef s) {
                                answer = inside(s.get());
                                return absl::OkStatus();
                              }).status();
  if (!status.ok()) std::printf("the capture: %s\n", status.ToString().c_str());
  return status.ok() ? answer : -2;
}

// Records an event in somebody's capture and asks it: a Completion, or -1.
int record_and_ask(CUstream stream) {
  event = *cgrt::Event::create(kDevice);
  if (!cgrt::StreamRef(stream).record(event).ok()) return -1;
  const absl::StatusOr<cgrt::Completion> answer = event.ref().completion();
  return answer.ok() ? static_cast<int>(*answer) : -1;
}

// Asks it again, after that capture: the CUresult of the refusal, 0 for an answer.
int ask_again() {
  const absl::StatusOr<cgrt::Completion> answer = event.ref().completion();
  event = cgrt::Event();
  return static_cast<int>(cgrt::cuda_result(answer.status()).value_or(CUDA_SUCCESS));
}

}  // extern "C"
