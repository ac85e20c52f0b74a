// Shrinking: leaves out of a bundle the content of memory that every replay overwrites before it reads it. Internal:
// for graphdump shrink.
//
//   const auto in_child = [](const std::vector<std::string>& graphs) {
//     return TrialProcess::create([graphs] { return LoadedTrials::create("step.bundle", graphs, DeviceRef(0)); },
//                                 absl::Seconds(20));
//   };
//   CGRT_ASSIGN_OR_RETURN(const std::vector<ShrunkGraph> graphs, shrink("step.bundle", in_child));
//
// Found out by trials (bundle/trials.h). Memory is dropped, in multiples of 512 bytes, where each byte is overwritten
// and replays with poison in it leave all other memory as a replay without: with two kinds of random bytes and with
// zeros, and with other inputs. What makes a replay fault, hang or differ is kept, as are inputs and what differs from
// replay to replay. Where an allocator said that memory is free, it need not be overwritten. A trial shows what one
// replay did: a graph that chooses by its inputs what it overwrites may need memory with other inputs that it did not
// need in any trial.
//
// Blocks, for minutes where much is decided by halving. Thread-safe for different bundles.
#pragma once

#include "cgrt/base/language.h"  // first

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cgrt/bundle/trials.h"
#include "cgrt/saved/folder.h"
#include "cgrt/saved/manifest.h"

namespace cgrt {

struct ShrinkLimits {
  // Of each graph. What is not decided by then is kept.
  std::uint64_t max_replays = 4000;
  absl::Duration max_time = absl::Minutes(5);
  // Less memory in one piece is kept: a hole makes a file more.
  std::uint64_t min_hole_bytes = 4096;
};

// Why memory that is not all zeros is kept.
enum class Kept { kNotDevice, kInput, kNotOverwritten, kRead, kFault, kVarying, kUndecided, kSmall, kCount };
const char* to_string(Kept reason);

struct ShrinkFindings {
  Spans dropped = {};
  Spans dead = {};     // of `dropped`: free and not overwritten, so that a replay leaves anything there
  Spans varying = {};  // differs from replay to replay
  std::array<std::uint64_t, static_cast<std::size_t>(Kept::kCount)> kept_bytes = {};
  std::uint64_t replays = 0;
  absl::Duration time = {};
};

// kFailedPrecondition: no replay without poison ends.
absl::StatusOr<ShrinkFindings> find_overwritten(const saved::Manifest& manifest, const saved::SavedGraph& graph,
                                                const MakeTrials& make_trials, const ShrinkLimits& limits = {});

struct ShrunkGraph {
  std::string name = {};
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of memory that is not all zeros
  ShrinkFindings findings = {};
};

// Graph by graph, and then writes the bundle: until then it is as it was. kFailedPrecondition as well where a replay
// leaves other memory than the bundle says, though it leaves the same each time.
absl::StatusOr<std::vector<ShrunkGraph>> shrink(const std::string& path, const MakeTrials& make_trials,
                                                const ShrinkLimits& limits = {});

}  // namespace cgrt
