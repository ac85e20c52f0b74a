// What rows about captures that fail work on, and what a message says of the call that ended one.
#pragma once

#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "behaviour/cluster_probe.h"

namespace cgrt::testing {

inline const LaunchConfig kTooLarge{.grid = 1, .block = 4096};

inline int code_of(const absl::Status& status) {
  return status.ok() ? 0 : static_cast<int>(cuda_result(status).value_or(CUDA_ERROR_UNKNOWN));
}
inline int code_of(CUresult result) { return static_cast<int>(result); }

// "certain, this thread: cuMemAlloc_v2 900".
inline std::string told(const absl::Status& status) {
  const std::string message(status.message());
  const std::regex story(
      "was ended by (a call of|one of the calls that failed meanwhile; the first is of) (the same thread|thread [0-9]+)"
      "[^:]*:.*?(cu[A-Za-z0-9_]+) returned ([0-9]+)");
  std::smatch found;
  if (!std::regex_search(message, found, story)) return "nothing";
  return absl::StrCat(found[1] == "a call of" ? "certain" : "one of several", ", ",
                      found[2] == "the same thread" ? "this thread" : "another thread", ": ", found[3].str(), " ",
                      found[4].str());
}

// What calls work on, made anew for each.
struct Scene {
  static absl::StatusOr<Scene> create(World& world, StreamKind kind) {
    Scene scene;
    CGRT_ASSIGN_OR_RETURN(scene.context, ContextRef(world.device()).get());
    CGRT_ASSIGN_OR_RETURN(scene.stream, Stream::create(world.device(), {.kind = kind}));
    CGRT_ASSIGN_OR_RETURN(scene.side, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.other, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.fork, Event::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.join, Event::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.outside, Event::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.buffer, DeviceBuffer::create(world.device(), 256));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(scene.exec, instantiate(graph));
    CGRT_RETURN_IF_ERROR(scene.other.ref().record(scene.outside));
    CGRT_RETURN_IF_ERROR(scene.other.ref().synchronize());
    return scene;
  }
  absl::Status launch(StreamRef s, const LaunchConfig& config) const {
    return cgrt::launch(s, config, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 1.0f, 8);
  }

  CUcontext context = nullptr;
  Stream stream, side, other;  // captured; joins; stays outside
  Event fork, join, outside;   // recorded in the captured stream; in a side stream; outside
  DeviceBuffer buffer;
  GraphExec exec;
};

}  // namespace cgrt::testing
