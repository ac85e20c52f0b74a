// The rows of graphbench: one list of what is measured against what, in which unit, and how much
// slower than its baseline it may be.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cgrt/record/record.h"
#include "measure.h"
#include "setup.h"

namespace graphbench {

enum class Unit { kNanoseconds, kNanosecondsPerNode, kMicroseconds };

// kThin: at most 5 % or 60 ns slower than the raw twin. kBuilding: 15 %, or 60 ns for each call.
// kGraphWins: 2.5 times as fast as the baseline at 1000 nodes. kRebindable: 2.5 % slower there. kPatch: 2 us slower at
// one node. kPatchedPointers, kPatchedGrids: 10 and 12 us slower at 1000 nodes. kSwitched: 10 us slower.
// kCallSite: 250 ns for each of 1000 calls, whatever the baseline takes. kRecapture: 8 % slower at 1000 nodes.
// kEarlyStart: 1.15 times as fast as the baseline there. kNotSlower: than the baseline.
enum class Limit {
  kUnlimited,
  kThin,
  kBuilding,
  kGraphWins,
  kRebindable,
  kPatch,
  kPatchedPointers,
  kPatchedGrids,
  kSwitched,
  kCallSite,
  kRecapture,
  kEarlyStart,
  kNotSlower
};

using MakeSide = absl::StatusOr<Side> (*)(const Setup& setup, int nodes);

struct Case {
  const char* name;
  Unit unit;
  Limit limit;
  MakeSide own;
  MakeSide baseline;  // null: none
  const char* baseline_name;
  // One timed interval does at most `max_repeats` operations, fewer on graphs so large that they would hold more
  // than `node_budget` nodes together: what is in flight or alive at once stays small.
  int max_repeats;
  int node_budget;
  bool by_nodes = true;                // a row for each number of nodes; else one row
  bool baseline_needs_driver = false;  // calls that are not in cgrt's table, so not on the simulator
  bool is_call_per_node = false;       // an operation is as many calls as nodes
};

const std::vector<Case>& all_cases();

enum class Judgement { kWithin, kBroken, kNone };

struct Verdict {
  Judgement judgement = Judgement::kNone;
  std::string text;  // "ok", "broken: 0.88, limit 0.95 or 60 ns", "no limit"
};

// One measured row and what is to be said of it. On the simulator its figures stay 0.
struct Outcome {
  cgrt::record::Row row;
  Verdict verdict;
};
absl::StatusOr<Outcome> run_case(const Case& one, const Setup& setup, int nodes, int pairs, Sampling sampling);

}  // namespace graphbench
