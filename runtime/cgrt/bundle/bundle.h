// Bundle: saved graphs (saved/manifest.h), replayed by a program that knows nothing of the one that captured them: no
// framework, no Python, and only the driver.
//
//   CGRT_ASSIGN_OR_RETURN(const Bundle bundle, Bundle::open("step.bundle"));
//   CGRT_ASSIGN_OR_RETURN(LoadedBundle step, bundle.load(DeviceRef(0)));
//   CGRT_ASSIGN_OR_RETURN(const NamedBuffer token, step.input("decode", "token"));
//   CGRT_RETURN_IF_ERROR(copy(stream, token.data, &id, token.bytes));
//   CGRT_RETURN_IF_ERROR(step.launch("decode", stream));
//
// Kernels, tables in memory and structures hold addresses, so memory gets the addresses that it had: load a bundle
// before anything else takes them. One that was saved twice (graphdump save --movable) knows all of these, and can be
// loaded anywhere (BundlePlacement): beside a framework in one process, or several times. Its device code is as trusted
// as a program. Nothing of a bundle runs on the host. A Bundle is a value and thread-safe. Calls on one LoadedBundle
// must not overlap, but for launch().
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cgrt/device/context.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/saved/folder.h"
#include "cgrt/stream/stream.h"

namespace cgrt {

// Memory of a LoadedBundle, valid as long as that is.
struct NamedBuffer {
  void* data = nullptr;  // on the device; on the host where it was there when it was saved
  std::size_t bytes = 0;
  std::string dtype = {};                 // as it was named when saved: "float16"; empty: not
  std::vector<std::uint64_t> shape = {};  // empty: not known
};

// Memory that is not what it was after the launch that was saved.
struct MemoryDifference {
  saved::Range range;  // the first kExpectedBytes in which it differs
  std::string text;    // "output "logits", bytes 4096 to 8191 of 65536" or "memory 3 (0x7f..., 2097152 bytes), ..."
};

// What a load took. Code and memory are loaded side by side.
struct LoadTimes {
  absl::Duration addresses, code, memory, graphs;
  std::uint64_t memory_bytes = 0;  // that were read and put there
};

// Empty when moved from: blocks() is empty then, times() is zero, and every other call is kFailedPrecondition.
class LoadedBundle {
 public:
  LoadedBundle(LoadedBundle&&) noexcept;
  LoadedBundle& operator=(LoadedBundle&&) noexcept;
  // Waits for the device, and gives memory, code and addresses back.
  ~LoadedBundle();

  // Asynchronous. Begins with the memory as it is, as the launch before left it: see restore. The caller orders
  // launches of graphs that have memory in common. Fails as GraphExec::launch does; kNotFound lists the graphs that
  // there are.
  absl::Status launch(std::string_view graph, StreamRef stream);
  // For update, rebinding and all else. Valid as long as this is.
  absl::StatusOr<GraphExec*> exec(std::string_view graph);

  // kNotFound lists the names that there are.
  absl::StatusOr<NamedBuffer> input(std::string_view graph, std::string_view name) const;
  absl::StatusOr<NamedBuffer> output(std::string_view graph, std::string_view name) const;

  // Puts all memory of `graph` back to what it was before the launch that was saved, also what other graphs have in
  // common with it. Load does it for all graphs, and for the first last. Blocks; launches must have ended.
  absl::Status restore(std::string_view graph);
  // Compares all memory with what it was after that launch: to be called after restore() and one launch, which must
  // have ended. Blocks. By block, at most one difference each; empty: bit-equal, where addresses of memory that is
  // elsewhere count as what they were.
  absl::StatusOr<std::vector<MemoryDifference>> check(std::string_view graph) const;

  // Where the manifest's blocks are now. Null: a variable that none of the graphs uses.
  std::vector<void*> blocks() const;
  const LoadTimes& times() const;

 private:
  friend class Bundle;
  struct State;
  explicit LoadedBundle(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class BundleRebinding { kNone, kRebindable };  // see instantiate_rebindable

enum class BundlePlacement {
  kAsSaved,            // at the addresses that memory had
  kAnywhere,           // at others
  kAsSavedOrAnywhere,  // at others where those are taken
};

struct LoadOptions {
  saved::HashCheck check = saved::HashCheck::kVerify;
  BundleRebinding rebinding = BundleRebinding::kNone;
  BundlePlacement placement = BundlePlacement::kAsSaved;
  std::vector<std::string> graphs = {};  // empty: all
};

// Whether a load failed since addresses that it needs are taken. They are not in a process without address
// randomization (setarch -R) that does the same before it loads.
bool are_addresses_taken(const absl::Status& status);

class Bundle {
 public:
  // See saved::Folder::open. Needs no driver.
  static absl::StatusOr<Bundle> open(const std::string& path);
  const saved::Folder& folder() const { return folder_; }

  // Blocks; raises limits of the context, such as its stack, to those that were saved. kFailedPrecondition names what
  // the device or driver is not (architecture, multiprocessors, driver), which addresses are taken, or which graph
  // cannot be loaded at others and why, and what to do; kDataLoss names a damaged file; kUnimplemented a node that
  // cannot be replayed. Nothing is left behind then.
  absl::StatusOr<LoadedBundle> load(ContextRef context, const LoadOptions& options = {}) const;

 private:
  explicit Bundle(saved::Folder folder) : folder_(std::move(folder)) {}
  saved::Folder folder_;
};

}  // namespace cgrt
