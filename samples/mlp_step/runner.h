// The ways of running a step for a number of tokens that changes: each prepares what it launches from the
// same call site, mlp_step, when it has to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "cgrt/device/device.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/stream/stream.h"
#include "mlp.h"

enum class Way {
  kEager,     // into the stream
  kCaptured,  // an executable for each number of tokens, captured when it first comes
  kExplicit,  // the same, built through a cursor: the products are child graphs
  kUpdated,   // one executable, which takes over the graph of each step; graphs are captured and kept as above
  kRebound,   // one executable with the kernels of all plans, rebound to each step; bindings are kept by tokens
};
const char* to_string(Way way);  // "eager", ...

struct Counts {
  int instantiated = 0, updated = 0;         // or rebound
  std::map<std::string, int> refusals = {};  // updates, by what was to change and why not: instantiated instead
};

class Runner {
 public:
  // `plans`, by tokens, and `arrays` must outlive it.
  Runner(Way way, cgrt::DeviceRef device, cgrt::StreamRef stream, const std::map<std::uint64_t, MlpPlan>& plans,
         const MlpArrays& arrays)
      : way_(way), device_(device), stream_(stream), plans_(plans), arrays_(arrays) {}

  // Puts one step into the stream. `tokens` has a plan.
  absl::Status step(std::uint64_t tokens);

  Way way() const { return way_; }
  int executables() const { return static_cast<int>(execs_.size()) + (one_.has_value() ? 1 : 0); }
  // Since the last call.
  Counts take_counts() { return std::exchange(counts_, {}); }

 private:
  absl::StatusOr<cgrt::Graph> record(const MlpPlan& plan) const;
  absl::Status launch_own(const MlpPlan& plan);
  absl::Status launch_updated(const MlpPlan& plan);
  absl::StatusOr<cgrt::GraphExec> instantiate_for_all() const;
  absl::Status launch_rebound(const MlpPlan& plan);

  Way way_;
  cgrt::DeviceRef device_;
  cgrt::StreamRef stream_;
  const std::map<std::uint64_t, MlpPlan>& plans_;
  const MlpArrays& arrays_;
  std::map<std::uint64_t, cgrt::GraphExec> execs_;   // by tokens
  std::map<std::uint64_t, cgrt::Graph> graphs_;      // by tokens, for updates
  std::map<std::uint64_t, cgrt::Binding> bindings_;  // by tokens, for rebinding
  std::optional<cgrt::GraphExec> one_;               // that is updated or rebound
  std::uint64_t updated_tokens_ = 0;                 // of the graph that it has taken over
  Counts counts_;
};
