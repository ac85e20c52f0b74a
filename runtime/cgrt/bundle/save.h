// Saver: writes graphs with their code and memory as a bundle (saved/manifest.h). For the recorder of graphdump, which
// sees each instantiation and each launch of a process, and for programs that save their own graphs.
//
//   CGRT_ASSIGN_OR_RETURN(Saver saver, Saver::create("step.bundle", code_of));
//   CGRT_ASSIGN_OR_RETURN(Saver::Prepared step, saver.prepare(graph.ref(), "step"));   // while its nodes are there
//   CGRT_RETURN_IF_ERROR(saver.begin(step));                                           // before the launch
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));
//   CGRT_RETURN_IF_ERROR(saver.finish(step));                                          // after it
//
// Not thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/saved/folder.h"

namespace cgrt {

// The image that a function is from, and that lives until the next question; kNotFound with a sentence where it is not
// known or not certain.
using CodeOf = std::function<absl::StatusOr<std::string_view>(CUfunction function, const std::string& symbol)>;

class Saver {
 public:
  // A graph as it was when it was instantiated, and what of its memory is to be saved.
  struct Prepared;

  static absl::StatusOr<Saver> create(const std::string& path, CodeOf code_of);
  Saver(Saver&&) noexcept;
  Saver& operator=(Saver&&) noexcept;
  ~Saver();

  // Reads the graph and its code, no memory. kUnimplemented names the node that cannot be replayed elsewhere: a host
  // node, a conditional node, a wait for an event, an external semaphore, an array, another device.
  absl::StatusOr<std::shared_ptr<Prepared>> prepare(GraphRef graph, const std::string& name);
  struct Marks {
    std::vector<saved::Buffer> inputs = {}, outputs = {};
  };
  // Reads the memory. Blocks until the context is idle. kFailedPrecondition while a capture is live.
  absl::Status begin(Prepared& graph);
  // Waits for the launch, reads what memory is now, and writes the bundle with this graph in it.
  absl::Status finish(Prepared& graph);

 private:
  struct State;
  explicit Saver(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cgrt
