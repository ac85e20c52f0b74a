// What changes the kernels of a rebindable executable: the new values of words, and the kernel in front of its next
// launch that takes them to the device. Internal to exec/.
//
//   set() ──> pending ──before_launch()──> a patch kernel in the launch's stream ──> the nodes of the executable
//
// The values are an argument of that kernel, so that launches in flight keep theirs. CUDA runs launches of one
// executable after each other, but orders no patch behind the launch before: in another stream than that one's, a patch
// waits for it.
//
// Patch kernels are no nodes of the graph, whose launches would each be slower by one kernel.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/patch.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

class Patches {
 public:
  // For an executable of `context` with these words.
  absl::Status begin(CUcontext context, std::size_t words);

  // Takes the words to the device. Waits for a copy.
  absl::Status upload_words(const std::vector<driver::NodeWord>& words);

  // `word` has that value from the next launch on.
  void set(std::uint32_t word, std::uint64_t value);

  // Does what is pending, in front of a launch of `exec` into `stream`.
  absl::Status before_launch(CUgraphExec exec, StreamRef stream) {
    return ABSL_PREDICT_TRUE(pending_count_ == 0 && !has_patched_) ? absl::OkStatus() : patch(exec, stream);
  }
  absl::Status after_launch(StreamRef stream);
  // Uploads `exec`: behind a patch whose launch has failed, which the next launch still waits for.
  absl::Status upload(CUgraphExec exec, StreamRef stream);
  // After a launch that failed: a patch in front of it is under way, and the next launch must not overtake it.
  void after_failure(StreamRef stream) {
    if (has_patched_) note_last(stream).IgnoreError();
  }
  // Before the executable is destroyed. Waits for a patch that has no launch behind it; CUDA waits for launches.
  void finish();

 private:
  absl::Status patch(CUgraphExec exec, StreamRef stream);
  absl::Status launch_kernels(StreamRef stream);
  absl::Status wait_for_last(StreamRef stream);
  absl::Status note_last(StreamRef stream);
  absl::Status check_device(StreamRef stream) const;

  using PendingList = PatchList<kMaxPatches>;
  Patch& pending(std::size_t i) { return pending_[i / kMaxPatches]->patches[i % kMaxPatches]; }

  CUcontext context_ = nullptr;
  std::shared_ptr<DeviceBuffer> words_;                // as patches in flight read them; null: there are none
  std::vector<std::unique_ptr<PendingList>> pending_;  // as the patch kernel takes them
  std::vector<std::uint32_t> places_;                  // by word: among those pending, if it is there
  std::size_t pending_count_ = 0;
  Event launched_;                            // behind the last launch or upload, or the patch of a launch that failed
  std::optional<std::uint64_t> last_stream_;  // its stream's id; nullopt: there was none
  bool is_uploaded_ = false;                  // the executable
  bool has_patched_ = false;                  // with no launch behind it yet
};

}  // namespace cgrt::internal
