#include "cgrt/graph/scope.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "cgrt/base/log.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt {
namespace internal {

thread_local constinit std::uint64_t scope_id = 0;

}  // namespace internal

namespace {

thread_local Scope* innermost = nullptr;

}  // namespace

void Scope::note_in_captures() {
  for (auto* capture = internal::CaptureScopes::innermost; capture != nullptr; capture = capture->outer_) {
    const absl::Status noted = driver::to_status(capture->note(), "cuGraphGetNodes");
    if (!noted.ok()) log_warning(absl::StrCat("A scope was not recorded: ", noted.message()));
  }
}

Scope::Scope(std::string_view name) : name_(name), outer_(innermost), outer_id_(internal::scope_id) {
  static std::atomic<std::uint64_t> next{1};
  innermost = this;
  internal::scope_id = next.fetch_add(1, std::memory_order_relaxed);
  if (internal::CaptureScopes::innermost != nullptr) note_in_captures();
}

Scope::~Scope() {
  innermost = outer_;
  internal::scope_id = outer_id_;
  if (internal::CaptureScopes::innermost != nullptr) note_in_captures();
}

std::string current_scope_path() {
  std::string path;
  for (const Scope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    path = path.empty() ? std::string(scope->name_) : absl::StrCat(std::string(scope->name_), "/", path);
  }
  return path;
}

namespace internal {

CUresult CaptureScopes::note() {
  if (state_.is_scope_noted()) return CUDA_SUCCESS;
  // The graph of a capture in progress is the driver's: asked for only when a scope needs it.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUresult result =
      driver::api().StreamGetCaptureInfo(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  state_.handle.reset(graph);
  const CUresult noted = state_.note_scope();
  state_.handle.release();
  return noted;
}

}  // namespace internal
}  // namespace cgrt
