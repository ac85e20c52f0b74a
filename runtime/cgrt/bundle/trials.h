// Trials: replays of a saved graph with poison in its memory, which show what it overwrites before it reads, and of
// variants of it. Internal: for bundle/shrink.h and bundle/prove_movable.h.
#pragma once

#include "cgrt/base/language.h"  // first

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/bundle/spans.h"
#include "cgrt/saved/manifest.h"

namespace cgrt {

struct Poison {
  enum class Fill : std::uint32_t {
    kLowestBit,  // flips one bit of each 8 bytes: another token, position or seed
    kNudge,      // flips bits of the lowest byte of each 8: an index or an address stays near to what it was
    kRandom,     // bytes that `seed` and the address make
    kInverse,    // their complement: with kRandom, each bit has had both values
    kZeros,      // what memory has in it that a process was just given
  };
  Fill fill = Fill::kRandom;
  std::uint64_t seed = 0;
};

// Turns what memory at `address` has in it into poison.
void apply(const Poison& poison, std::uint64_t address, std::span<std::byte> bytes);

struct TrialRequest {
  std::size_t graph = 0;  // which one of those that the trials are of
  Poison poison = {};
  Spans poisoned = {};  // whole lines
  Spans varied = {};    // has Fill::kLowestBit in the saved state, also for the replay that this one is compared with
};

struct Trial {
  enum class End : std::uint32_t { kReplayed, kFault, kTimeLimit };
  End end = End::kReplayed;
  // Lines that still have poison in them, and lines with a byte that is neither poison nor what a replay without
  // poison leaves there.
  Spans left = {}, changed = {};
};

class Trials {
 public:
  virtual ~Trials() = default;
  // One replay from the saved state of the first graph, all memory compared. Without poison: what has changed does so
  // from replay to replay, and is not compared in later trials. An error: no trial is possible.
  virtual absl::StatusOr<Trial> replay(const TrialRequest& request) = 0;
  // What a replay of the first graph leaves otherwise than its bundle expects, where addresses of memory that is
  // elsewhere count as what they were: units of saved::kExpectedBytes, a member each.
  virtual absl::StatusOr<Spans> unexpected() = 0;
  // What that replay leaves: a hash for each saved::kExpectedBytes, as in saved::ExpectedMemory.
  virtual absl::StatusOr<std::vector<std::uint64_t>> hashes(const std::vector<saved::Range>& ranges) = 0;
};

// Of graphs of a bundle, which share its memory; replays of all are compared with those of the first.
using MakeTrials = std::function<absl::StatusOr<std::unique_ptr<Trials>>(const std::vector<std::string>& graphs)>;

struct LineFate {
  bool is_left = false, is_changed = false;
};
// Of a line after a trial. `poison`: what was put there; empty: nothing.
LineFate fate_of(std::span<const std::byte> now, std::span<const std::byte> reference,
                 std::span<const std::byte> poison);

}  // namespace cgrt
