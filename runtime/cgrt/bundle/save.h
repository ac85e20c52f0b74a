// Saver: writes graphs with their code and memory as a bundle (saved/manifest.h). For the recorder of graphdump, which
// sees each instantiation and each launch of a process, and for programs that save their own graphs.
//
//   CGRT_ASSIGN_OR_RETURN(Saver saver, Saver::create("step.bundle", code_of));
//   CGRT_ASSIGN_OR_RETURN(const auto step, saver.prepare(graph.ref(), "step"));   // while its nodes are there
//   CGRT_RETURN_IF_ERROR(saver.begin(step));                                       // before the launch
//   CGRT_RETURN_IF_ERROR(exec.launch(stream));
//   CGRT_RETURN_IF_ERROR(saver.finish(step));                                      // after it
//
// What the graph reaches is saved: the memory of its arguments, and that of addresses which are found in this memory. A
// number that is the address of live memory is taken for it, so there may be more than the graph uses, never less.
//
// begin(), finish() and compare() wait for the graph's context, which ends all captures in it (driver 580): no stream
// of it may be captured then. Other work on the device between begin() and finish() is the caller's to prevent: what it
// writes is taken for the graph's. prepare() ends no capture. Not thread-safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/bundle/buffer_mark.h"
#include "cgrt/graph/graph.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/saved/folder.h"

namespace cgrt {

// The image that a function is from, and that lives until the next question; kNotFound with a sentence where it is not
// known or not certain.
using CodeOf = std::function<absl::StatusOr<std::string_view>(CUfunction function, const std::string& symbol)>;

// Memory that changes between launches, and that no input is named for.
struct OutsideChanges {
  std::uint64_t places = 0, bytes = 0;
};

// Empty when moved from: abandon() does nothing then, and every other call is kFailedPrecondition.
class Saver {
 public:
  // A graph as it was when it was instantiated, and what of its memory is to be saved.
  struct Prepared;

  // Errors of saved::FolderWriter::create.
  static absl::StatusOr<Saver> create(const std::string& path, CodeOf code_of);
  Saver(Saver&&) noexcept;
  Saver& operator=(Saver&&) noexcept;
  ~Saver();

  // Reads the graph and its code, no memory; the graph may be destroyed then. kUnimplemented names the node that cannot
  // be replayed elsewhere: a host node, a conditional node, a wait for an event, an external semaphore, an array,
  // another device, a kernel that uses textures, surfaces or the device's heap (known of cubins alone).
  // kInvalidArgument: a mark whose operand is not there. kAlreadyExists: a graph of that name is prepared, and not
  // given up, or saved.
  absl::StatusOr<std::shared_ptr<Prepared>> prepare(GraphRef graph, const std::string& name, SavedMarks marks = {});
  // The same, with what `note_of` knows of its nodes: see snapshot().
  absl::StatusOr<std::shared_ptr<Prepared>> prepare(GraphRef graph, const std::string& name, SavedMarks marks,
                                                    absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of);

  // Reads the memory, before the launch of that number. `dead`: memory that an allocator holds free. Blocks until the
  // context is idle. kFailedPrecondition while a capture of this library is live; kInvalidArgument for a mark that
  // names no memory of the graph.
  absl::Status begin(const std::shared_ptr<Prepared>& graph, std::uint64_t launch = 1,
                     const std::vector<MemoryRange>& dead = {});
  // Waits for the launch, reads what memory is now, and writes the bundle with this graph in it.
  absl::Status finish(const std::shared_ptr<Prepared>& graph);
  // In place of finish() where the launch has failed. The end of the Saver does it for all that are not finished.
  void abandon(const std::shared_ptr<Prepared>& graph);
  // Before another launch, and once: what changed since the one that was saved, which no launch of the graph has done.
  // Writes the manifest again where there is any.
  absl::StatusOr<OutsideChanges> compare(const std::shared_ptr<Prepared>& graph);

 private:
  struct State;
  explicit Saver(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cgrt
