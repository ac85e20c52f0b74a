// Scope: a name for the nodes that are made while it lives, on this thread, by any target.
//
//   {
//     Scope scope("attention");
//     CGRT_RETURN_IF_ERROR(step(target));   // its nodes: "layer0/attention" inside Scope("layer0")
//   }
//
// snapshot() reports the names; the graph itself is unchanged. Eager work has no nodes and is not
// named. Costs two thread-local writes, and one driver call per capture in progress on this thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cgrt {

namespace internal {
struct ScopeRun;
}

class Scope {
 public:
  // `name` must outlive the scope. Destroy scopes on the thread that made them, the last one first.
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  friend std::string current_scope_path();
  static void note_in_captures();
  std::string_view name_;
  Scope* outer_;
  std::uint64_t outer_id_;
};

namespace internal {

extern thread_local constinit std::uint64_t scope_id;
// Differs whenever the names in force differ; 0 outside all scopes.
inline std::uint64_t current_scope_id() { return scope_id; }

// Notes that the next node of `graph` is made in the scope that is in force now, when it is another than `id` says.
CUresult note_scope(CUgraph graph, std::vector<ScopeRun>& runs, std::uint64_t& id);

}  // namespace internal

// "layer0/attention"; empty outside all scopes.
std::string current_scope_path();

}  // namespace cgrt
