// CaptureContext: what this library knows of a capture that this thread is inside of: the streams that joined it,
// the nodes that it made in it, and the scopes in which they were made. Internal; graph/capture.cpp makes it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cgrt/stream/captured_streams.h"
#include "cgrt/target/launch_attributes.h"

namespace cgrt::internal {

// Nodes from `first_node` on were made in `scope`, until the next run. Positions are those of
// cuGraphGetNodes, which lists nodes in the order of their creation.
struct ScopeRun {
  std::size_t first_node;
  std::string scope;
};

// The nodes that a thread's launches made in a capture. When the graph has just as many, these are all of
// them, and what they were launched with is known; else somebody else made some.
struct CapturedNodes {
  struct Kernel {
    std::size_t position;
    bool is_first;                // of its stream: the other kernels there inherit the same from it
    LaunchAttributes attributes;  // in normal form
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t count = 0;
  std::size_t first_kernel = kNone;  // of the captured stream, if without attributes
  std::vector<Kernel> kernels;       // ascending: others that have attributes or are the first of their stream
  bool is_ambiguous = false;         // some nodes may have gone into another capture
};

// What is noted goes to `nodes`, `runs` and `scope_id`, the captured graph's own.
class CaptureContext final : public CapturedStreams {
 public:
  CaptureContext(CUstream origin, CUstreamCaptureMode mode, CapturedNodes& nodes, std::vector<ScopeRun>& runs,
                 std::uint64_t& scope)
      : CapturedStreams(origin, mode), scope_runs(runs), scope_id(scope), nodes_(nodes) {}

  static CaptureContext* current() { return static_cast<CaptureContext*>(innermost); }
  CaptureContext* outer() const { return static_cast<CaptureContext*>(LiveCapture::outer()); }

  // A call of this library put a node into `stream`, which may be captured or not.
  static void note_node(CUstream stream) {
    std::size_t stream_index = 0;
    if (__builtin_expect(is_active(), false)) note(stream, &stream_index);
  }
  // `compiled_cluster`: see driver::ResolvedFunction.
  static void note_kernel(CUstream stream, const LaunchAttributes* attributes, const Dim3& compiled_cluster) {
    CaptureContext* const capture = current();
    if (__builtin_expect(capture == nullptr, true)) return;
    if (capture->origin() != stream || attributes != nullptr || compiled_cluster != Dim3()) {
      return note_captured_kernel(stream, attributes, compiled_cluster);
    }
    CapturedNodes& nodes = capture->nodes_;
    if (!capture->origin_has_kernel_) {
      capture->origin_has_kernel_ = true;
      nodes.first_kernel = nodes.count;
    }
    ++nodes.count;
  }

  // What kernels that were launched inside this capture need as long as its graph may run. Kept by all captures of the
  // thread: one too many does no harm.
  static void keep(const std::shared_ptr<const void>& resource);
  const std::vector<std::shared_ptr<const void>>& kept() const { return kept_; }

  // The first stream that took work inside this capture and was part of none that is known; null: there was none.
  CUstream outside() const { return outside_; }

  std::vector<ScopeRun>& scope_runs;
  std::uint64_t& scope_id;

 private:
  static CaptureContext* note(CUstream stream, std::size_t* stream_index);
  bool is_first_kernel(std::size_t stream_index);  // and is not from now on
  static void note_captured_kernel(CUstream stream, const LaunchAttributes* attributes, const Dim3& compiled_cluster);

  CapturedNodes& nodes_;
  CUstream outside_ = nullptr;
  bool origin_has_kernel_ = false;
  std::vector<bool> joined_has_kernel_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace cgrt::internal
