#include "cases.h"

#include <algorithm>
#include <climits>
#include <cstdio>

#include "cgrt/base/status_macros.h"
#include "loop.h"
#include "own.h"
#include "raw.h"
#include "raw_rebound.h"
#include "rebound.h"

namespace graphbench {
namespace {

constexpr double kThinRatio = 1 / 1.05;
constexpr double kBuildingRatio = 1 / 1.15;
constexpr double kRebindableRatio = 1 / 1.025;
constexpr double kSlackNanoseconds = 60;  // below this a ratio says more of the clock than of the library
constexpr double kRecaptureRatio = 1 / 1.08;
constexpr double kGraphRatio = 2.5, kEarlyStartRatio = 1.15;
constexpr int kRatioNodes = 1000;

const char* to_text(Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds: return "ns";
    case Unit::kNanosecondsPerNode: return "ns/node";
    case Unit::kMicroseconds: return "us";
  }
  return "";
}

double nanoseconds_in(Unit unit, int nodes) {
  switch (unit) {
    case Unit::kNanoseconds: return 1;
    case Unit::kNanosecondsPerNode: return nodes;
    case Unit::kMicroseconds: return 1000;
  }
  return 1;
}

template <class... Args>
std::string format(const char* text, Args... args) {
  char buffer[128];
  std::snprintf(buffer, sizeof(buffer), text, args...);
  return buffer;
}

// A limit in nanoseconds, at one number of nodes: more than the baseline, or of each call.
struct Excess {
  int nodes;
  double limit;  // 0: another kind of limit
};
Excess excess_limit(Limit limit) {
  switch (limit) {
    case Limit::kPatch: return {1, 2000};
    case Limit::kPatchedPointers: return {1000, 10000};
    case Limit::kPatchedGrids: return {1000, 12000};
    case Limit::kSwitched: return {1, 10000};
    case Limit::kCallSite: return {1000, 250};
    default: return {0, 0};
  }
}

Verdict judge(const Case& one, const Figures& figures, int nodes) {
  if (one.limit == Limit::kUnlimited) return {Judgement::kNone, "no limit"};
  if (const Excess at = excess_limit(one.limit); at.limit != 0) {
    if (nodes != at.nodes) return {Judgement::kNone, "no limit"};
    const double excess =
        one.limit == Limit::kCallSite ? figures.median / nodes : figures.median - figures.baseline_median;
    const bool is_within = excess <= at.limit;
    return {is_within ? Judgement::kWithin : Judgement::kBroken,
            format(is_within ? "ok: %.0f ns of %.0f" : "broken: %.0f ns, at most %.0f", excess, at.limit)};
  }
  if (one.limit == Limit::kNotSlower) {
    if (figures.speedup >= 1) return {Judgement::kWithin, "ok"};
    return {Judgement::kBroken, format("broken: %.3f, at least 1 wanted", figures.speedup)};
  }
  if ((one.limit == Limit::kRebindable || one.limit == Limit::kRecapture) && nodes != kRatioNodes) {
    return {Judgement::kNone, "no limit"};
  }
  if (one.limit == Limit::kGraphWins || one.limit == Limit::kEarlyStart) {
    if (nodes != kRatioNodes) return {Judgement::kNone, "no limit"};
    const double wanted = one.limit == Limit::kGraphWins ? kGraphRatio : kEarlyStartRatio;
    if (figures.speedup >= wanted) return {Judgement::kWithin, "ok"};
    return {Judgement::kBroken, format("broken: %.2f times, at least %.2f wanted", figures.speedup, wanted)};
  }
  const double ratio = one.limit == Limit::kThin         ? kThinRatio
                       : one.limit == Limit::kRebindable ? kRebindableRatio
                       : one.limit == Limit::kRecapture  ? kRecaptureRatio
                                                         : kBuildingRatio;
  const double slack = kSlackNanoseconds * (one.is_call_per_node ? nodes : 1);
  const double excess = figures.median - figures.baseline_median;
  if (figures.speedup >= ratio) return {Judgement::kWithin, "ok"};
  if (excess <= slack) return {Judgement::kWithin, format("ok: +%.0f ns of %.0f", excess, slack)};
  return {Judgement::kBroken,
          format("broken: %.3f, +%.0f ns; at least %.3f or at most +%.0f ns", figures.speedup, excess, ratio, slack)};
}

template <int kKernels>
absl::StatusOr<Side> while_of(const Setup& setup, int) {
  return while_node(setup, kKernels);
}
template <int kKernels>
absl::StatusOr<Side> host_loop_of(const Setup& setup, int) {
  return host_checked_loop(setup, kKernels);
}

template <MakeSide kMake, int kVariants>
absl::StatusOr<Side> of_variants(const Setup& setup, int) {
  return kMake(setup, kVariants);
}

}  // namespace

const std::vector<Case>& all_cases() {
  using enum Unit;
  using enum Limit;
  static const std::vector<Case>& cases = *new std::vector<Case>{
      // At most 100 nodes in flight: a launch that finds the queue full measures the device.
      {"graph_launch", kMicroseconds, kThin, own::graph_launch, raw::graph_launch, "raw cuGraphLaunch", 20, 100},
      {"graph_launch_sync", kMicroseconds, kThin, own::graph_launch_sync, raw::graph_launch_sync,
       "raw cuGraphLaunch + cuStreamSynchronize", 10, 1000},
      {"explicit_add", kNanosecondsPerNode, kBuilding, own::explicit_add, raw::explicit_add, "raw cuGraphAddKernelNode",
       100, 1000, true, true, true},
      {"capture", kNanosecondsPerNode, kBuilding, own::capture, raw::capture, "raw capture of cuLaunchKernelEx", 100,
       1000, true, true, true},
      {"capture_into", kNanosecondsPerNode, kUnlimited, own::capture_into, raw::capture_into,
       "raw cuStreamBeginCaptureToGraph", 100, 1000, true, true, true},
      {"instantiate", kNanosecondsPerNode, kUnlimited, own::instantiate, raw::instantiate,
       "raw cuGraphInstantiateWithParams", 10, 100},
      {"set_params", kNanoseconds, kThin, own::set_params, raw::set_params, "raw cuGraphExecKernelNodeSetParams", 200,
       INT_MAX, true, true},
      {"update_unchanged", kNanosecondsPerNode, kThin, own::update_unchanged, raw::update_unchanged,
       "raw cuGraphExecUpdate", 50, 2000},
      {"update_pointers", kNanosecondsPerNode, kThin, own::update_pointers, raw::update_pointers,
       "raw cuGraphExecUpdate", 50, 2000},
      {"recapture_and_update", kNanosecondsPerNode, kRecapture, own::recapture_and_update, raw::recapture_and_update,
       "raw capture of cuLaunchKernelEx + cuGraphExecUpdate", 50, 2000, true, true, true},
      {"rebindable_launch_sync", kMicroseconds, kRebindable, own::rebindable_launch_sync, own::graph_launch_sync,
       "cgrt graph_launch_sync", 10, 1000},
      {"rebound_pointers", kMicroseconds, kPatch, own::rebound_pointers, raw::rebound_pointers,
       "raw patch kernel + cuGraphLaunch + cuStreamSynchronize", 1, 1, true, true},
      {"rebound_grids", kMicroseconds, kPatch, own::rebound_grids, raw::rebound_grids,
       "raw patch kernel + cuGraphLaunch + cuStreamSynchronize", 1, 1, true, true},
      {"rebound_pointers_over_unpatched", kMicroseconds, kPatchedPointers, own::rebound_pointers,
       own::rebindable_launch_sync, "cgrt rebindable_launch_sync", 1, 1},
      {"rebound_grids_over_unpatched", kMicroseconds, kPatchedGrids, own::rebound_grids, own::rebindable_launch_sync,
       "cgrt rebindable_launch_sync", 1, 1},
      {"rebound_captured_pointers", kMicroseconds, kPatchedPointers, own::rebound_captured_pointers,
       own::rebindable_launch_sync, "cgrt rebindable_launch_sync", 1, 1},
      {"rebound_four_pointers", kMicroseconds, kUnlimited, own::rebound_four_pointers, own::four_pointers_launch_sync,
       "cgrt, the same unpatched", 1, 1},
      {"rebind_pointers_launch_sync", kMicroseconds, kUnlimited, own::rebind_pointers_launch_sync,
       raw::set_pointers_launch_sync, "raw cuGraphExecKernelNodeSetParams of all + cuGraphLaunch + cuStreamSynchronize",
       1, 1, true, true},
      {"bound_pointers_launch_sync", kMicroseconds, kUnlimited, own::bound_pointers_launch_sync,
       raw::set_pointers_launch_sync, "raw cuGraphExecKernelNodeSetParams of all + cuGraphLaunch + cuStreamSynchronize",
       1, 1, true, true},
      {"bound_grids_launch_sync", kMicroseconds, kUnlimited, own::bound_grids_launch_sync, raw::set_grids_launch_sync,
       "raw cuGraphExecKernelNodeSetParams of all + cuGraphLaunch + cuStreamSynchronize", 1, 1, true, true},
      {"bound_pointers_over_unpatched", kMicroseconds, kUnlimited, own::bound_pointers_launch_sync,
       own::rebindable_launch_sync, "cgrt rebindable_launch_sync", 1, 1},
      {"bound_grids_over_unpatched", kMicroseconds, kUnlimited, own::bound_grids_launch_sync,
       own::rebindable_launch_sync, "cgrt rebindable_launch_sync", 1, 1},
      {"alternatives_of_2", kMicroseconds, kSwitched, of_variants<own::switched_alternatives, 2>,
       of_variants<own::alternatives_launch_sync, 2>, "cgrt, not switching", 1, 1, false},
      {"alternatives_of_4", kMicroseconds, kSwitched, of_variants<own::switched_alternatives, 4>,
       of_variants<own::alternatives_launch_sync, 4>, "cgrt, not switching", 1, 1, false},
      {"alternatives_of_2_over_plain", kMicroseconds, kUnlimited, of_variants<own::alternatives_launch_sync, 2>,
       own::places_launch_sync, "cgrt, the kernels that run alone", 1, 1, false},
      {"alternatives_of_4_over_plain", kMicroseconds, kUnlimited, of_variants<own::alternatives_launch_sync, 4>,
       own::places_launch_sync, "cgrt, the kernels that run alone", 1, 1, false},
      {"rebind", kNanosecondsPerNode, kCallSite, own::rebind, raw::set_all_params, "raw cuGraphExecKernelNodeSetParams",
       20, 20000, true, true},
      {"snapshot", kNanosecondsPerNode, kUnlimited, own::snapshot, nullptr, "", 20, 1000},
      {"compare_equal", kNanosecondsPerNode, kUnlimited, own::compare_equal, nullptr, "", 20, 1000},
      {"diff", kNanosecondsPerNode, kUnlimited, own::diff, nullptr, "", 20, 1000},
      {"eager_chain", kMicroseconds, kThin, own::eager_chain, raw::eager_chain,
       "raw cuLaunchKernelEx + cuStreamSynchronize", 10, 100, true, false, true},
      {"graph_over_eager", kMicroseconds, kGraphWins, own::graph_launch_sync, own::eager_chain, "cgrt eager_chain", 10,
       100},
      {"programmatic_launch_sync", kMicroseconds, kThin, own::programmatic_launch_sync, raw::programmatic_launch_sync,
       "raw chain with programmatic edges", 10, 1000},
      {"programmatic_over_plain", kMicroseconds, kEarlyStart, own::programmatic_launch_sync, own::graph_launch_sync,
       "cgrt graph_launch_sync", 10, 1000},
      {"programmatic_over_plain_16_mib", kMicroseconds, kNotSlower, own::programmatic_large_launch_sync,
       own::large_launch_sync, "cgrt, with full edges", 10, INT_MAX, false},
      {"programmatic_over_eager", kMicroseconds, kGraphWins, own::programmatic_launch_sync, own::eager_chain,
       "cgrt eager_chain", 10, 100},
      {"while_of_1", kMicroseconds, kNotSlower, while_of<1>, host_loop_of<1>,
       "cgrt graph of 2 + cuStreamSynchronize + a look", 100, INT_MAX, false},
      {"while_of_4", kMicroseconds, kNotSlower, while_of<4>, host_loop_of<4>,
       "cgrt graph of 5 + cuStreamSynchronize + a look", 100, INT_MAX, false},
      {"while_of_16", kMicroseconds, kNotSlower, while_of<16>, host_loop_of<16>,
       "cgrt graph of 17 + cuStreamSynchronize + a look", 100, INT_MAX, false},
      {"eager_launch", kNanoseconds, kThin, own::eager_launch, raw::eager_launch, "raw cuLaunchKernelEx", 100, INT_MAX,
       false},
      {"event_query", kNanoseconds, kThin, own::event_query, raw::event_query, "raw cuEventQuery", 500, INT_MAX, false},
      {"stream_query", kNanoseconds, kThin, own::stream_query, raw::stream_query, "raw cuStreamQuery", 500, INT_MAX,
       false},
      {"event_query_after_eager", kNanoseconds, kThin, own::event_query_after_eager, raw::event_query_after_eager,
       "raw cuEventQuery", 500, INT_MAX, false},
      {"stream_query_after_eager", kNanoseconds, kThin, own::stream_query_after_eager, raw::stream_query_after_eager,
       "raw cuStreamQuery", 500, INT_MAX, false},
      {"event_record", kNanoseconds, kThin, own::event_record, raw::event_record, "raw cuEventRecord", 100, INT_MAX,
       false},
      {"occupancy_suggest", kNanoseconds, kThin, own::occupancy_suggest, raw::occupancy_suggest,
       "raw cuOccupancyMaxPotentialBlockSize", 100, INT_MAX, false},
  };
  return cases;
}

absl::StatusOr<Outcome> run_case(const Case& one, const Setup& setup, int nodes, int pairs, Sampling sampling) {
  const bool is_full = sampling == Sampling::kFull;
  const bool has_baseline = one.baseline != nullptr && (is_full || !one.baseline_needs_driver);
  CGRT_ASSIGN_OR_RETURN(const Side own, one.own(setup, nodes));
  Side baseline;
  if (has_baseline) {
    CGRT_ASSIGN_OR_RETURN(baseline, one.baseline(setup, nodes));
  }
  const int repeats = std::clamp(one.node_budget / nodes, 1, one.max_repeats);
  CGRT_ASSIGN_OR_RETURN(const Figures figures,
                        measure(own, has_baseline ? &baseline : nullptr, {pairs, repeats, sampling}));

  Outcome outcome;
  outcome.row.name = one.name;
  if (one.by_nodes) outcome.row.params = {{"nodes", nodes}};
  outcome.row.unit = to_text(one.unit);
  if (has_baseline) outcome.row.baseline = one.baseline_name;
  if (!is_full) {
    outcome.verdict.text = one.baseline_needs_driver ? "baseline not run: it needs a driver" : "not judged";
    return outcome;
  }
  const double scale = nanoseconds_in(one.unit, nodes);
  outcome.row.median = figures.median / scale;
  outcome.row.p95 = figures.p95 / scale;
  outcome.row.samples = pairs;
  outcome.row.baseline_median = figures.baseline_median / scale;
  outcome.row.speedup = figures.speedup;
  outcome.row.spread = figures.spread;
  outcome.verdict = judge(one, figures, nodes);
  return outcome;
}

}  // namespace graphbench
