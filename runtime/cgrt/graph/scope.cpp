#include "cgrt/graph/scope.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "cgrt/base/log.h"
#include "cgrt/graph/graph_state.h"

namespace cgrt {
namespace internal {

thread_local constinit std::uint64_t scope_id = 0;

}  // namespace internal

namespace {

thread_local Scope* innermost = nullptr;
thread_local internal::CaptureScopes* capturing = nullptr;

void note_in_captures() {
  for (internal::CaptureScopes* capture = capturing; capture != nullptr; capture = capture->outer()) {
    const absl::Status noted = capture->state().note_scope();
    if (!noted.ok()) log_warning(absl::StrCat("A scope was not recorded: ", noted.message()));
  }
}

}  // namespace

Scope::Scope(std::string_view name) : name_(name), outer_(innermost), outer_id_(internal::scope_id) {
  static std::atomic<std::uint64_t> next{1};
  innermost = this;
  internal::scope_id = next.fetch_add(1, std::memory_order_relaxed);
  if (capturing != nullptr) note_in_captures();
}

Scope::~Scope() {
  innermost = outer_;
  internal::scope_id = outer_id_;
  if (capturing != nullptr) note_in_captures();
}

std::string current_scope_path() {
  std::string path;
  for (const Scope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    path = path.empty() ? std::string(scope->name_) : absl::StrCat(std::string(scope->name_), "/", path);
  }
  return path;
}

namespace internal {

CaptureScopes::CaptureScopes(GraphState& state) : state_(state), outer_(capturing) { capturing = this; }
CaptureScopes::~CaptureScopes() { capturing = outer_; }

}  // namespace internal
}  // namespace cgrt
