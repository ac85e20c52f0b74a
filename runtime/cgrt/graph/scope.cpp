#include "cgrt/graph/scope.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "cgrt/base/log.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/target/capture_context.h"

namespace cgrt {
namespace internal {

thread_local constinit std::uint64_t scope_id = 0;

}  // namespace internal

namespace {

thread_local Scope* innermost = nullptr;

// The graph of a capture in progress is the driver's: asked for only when a scope needs it.
CUresult note_in(internal::CaptureContext& capture) {
  if (capture.scope_id == internal::current_scope_id()) return CUDA_SUCCESS;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUresult result =
      driver::api().StreamGetCaptureInfo(capture.origin(), &status, nullptr, &graph, nullptr, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return internal::note_scope(graph, capture.scope_runs, capture.scope_id);
}

}  // namespace

void Scope::note_in_captures() {
  for (auto* capture = internal::CaptureContext::current(); capture != nullptr; capture = capture->outer()) {
    const absl::Status noted = driver::to_status(note_in(*capture), "cuGraphGetNodes");
    if (!noted.ok()) log_warning(absl::StrCat("A scope was not recorded: ", noted.message()));
  }
}

Scope::Scope(std::string_view name) : name_(name), outer_(innermost), outer_id_(internal::scope_id) {
  static std::atomic<std::uint64_t> next{1};
  innermost = this;
  internal::scope_id = next.fetch_add(1, std::memory_order_relaxed);
  if (internal::CaptureContext::is_active()) note_in_captures();
}

Scope::~Scope() {
  innermost = outer_;
  internal::scope_id = outer_id_;
  if (internal::CaptureContext::is_active()) note_in_captures();
}

std::string current_scope_path() {
  std::string path;
  for (const Scope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    path = path.empty() ? std::string(scope->name_) : absl::StrCat(std::string(scope->name_), "/", path);
  }
  return path;
}

CUresult internal::note_scope(CUgraph graph, std::vector<ScopeRun>& runs, std::uint64_t& id) {
  if (id == current_scope_id()) return CUDA_SUCCESS;
  std::size_t count = 0;
  const CUresult result = driver::api().GraphGetNodes(graph, nullptr, &count);
  if (result != CUDA_SUCCESS) return result;
  if (!runs.empty() && runs.back().first_node == count) runs.pop_back();
  runs.push_back({count, current_scope_path()});
  id = current_scope_id();
  return CUDA_SUCCESS;
}

}  // namespace cgrt
