// TrialProcess: trials in a child process, since a replay with poison in its memory may fault or never end. The next
// trial is then one of another process. Internal: for graphdump.
//
//   CGRT_ASSIGN_OR_RETURN(const auto trials, TrialProcess::create(
//       [] { return LoadedTrials::create("step.bundle", {"decode"}, DeviceRef(0)); }, absl::Seconds(20)));
//
// Forks: to be used before this process has made a call of CUDA, and while it has one thread. Not thread-safe.
#pragma once

#include "cgrt/base/language.h"  // first

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cgrt/bundle/trials.h"

namespace cgrt {

class TrialProcess : public Trials {
 public:
  using Make = std::function<absl::StatusOr<std::unique_ptr<Trials>>()>;  // in the child

  // Blocks until `make` has returned there, with its error. A trial that takes longer than `limit` ends with its
  // process.
  static absl::StatusOr<std::unique_ptr<Trials>> create(Make make, absl::Duration limit);
  ~TrialProcess() override;
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  absl::StatusOr<Trial> replay(const TrialRequest& request) override;
  absl::StatusOr<Spans> unexpected() override;
  absl::StatusOr<std::vector<std::uint64_t>> hashes(const std::vector<saved::Range>& ranges) override;

 private:
  using Words = std::vector<std::uint64_t>;
  enum class End { kAnswered, kDied, kTimeLimit };

  TrialProcess(Make make, absl::Duration limit) : make_(std::move(make)), limit_(limit) {}
  absl::Status start();
  absl::Status start_again();  // where the last one has been stopped
  void stop();
  // The words of the answer in `answer`.
  End ask(const Words& question, Words& answer) const;
  // Of a replay without poison; an error where that ends its process.
  absl::StatusOr<Words> ask_of_first(const Words& question);

  const Make make_;
  const absl::Duration limit_;
  pid_t child_ = -1;
  int to_child_ = -1, from_child_ = -1;
};

}  // namespace cgrt
