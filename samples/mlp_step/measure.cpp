#include "measure.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/stream/event.h"

namespace {

constexpr int kPairs = 16, kNewBatchRounds = 9;

using Bits = std::vector<std::uint16_t>;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

struct Setup {
  cgrt::DeviceRef device;
  cgrt::StreamRef stream;
  const Workload& workload;
  const Mlp& mlp;
  std::map<std::uint64_t, MlpPlan> plans;
  std::map<std::uint64_t, Bits> expected;  // what eager gave
  cgrt::Event start, end;

  Runner runner(Way way) const { return Runner(way, device, stream, plans, mlp.arrays()); }
  std::uint64_t tokens(int step) const {
    return workload.tokens[static_cast<std::size_t>(step) % workload.tokens.size()];
  }
};

// One step over poisoned arrays.
absl::StatusOr<Bits> run_poisoned(const Setup& setup, Runner& runner, std::uint64_t tokens) {
  CGRT_RETURN_IF_ERROR(setup.mlp.poison(setup.stream));
  CGRT_RETURN_IF_ERROR(runner.step(tokens));
  return setup.mlp.read_out(setup.stream, tokens);
}

absl::Status compare(const Setup& setup, Way way, std::uint64_t tokens, const Bits& found) {
  const Bits& expected = setup.expected.at(tokens);
  const auto at = std::mismatch(found.begin(), found.end(), expected.begin());
  if (at.first == found.end()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(to_string(way), ", ", tokens, " tokens: element ", at.first - found.begin(),
                                          " has the bits 0x", absl::Hex(*at.first), ", eager gave 0x",
                                          absl::Hex(*at.second)));
}

// All numbers of tokens, twice: the second time with the executables that the first has made.
absl::Status check(const Setup& setup, Runner& runner) {
  for (std::size_t step = 0; step < 2 * setup.workload.tokens.size(); ++step) {
    const std::uint64_t tokens = setup.tokens(static_cast<int>(step));
    CGRT_ASSIGN_OR_RETURN(const Bits found, run_poisoned(setup, runner, tokens));
    CGRT_RETURN_IF_ERROR(compare(setup, runner.way(), tokens, found));
  }
  return absl::OkStatus();
}

absl::StatusOr<PassTimes> time_pass(const Setup& setup, Runner& runner) {
  const int steps = setup.workload.steps;
  PassTimes times;
  for (int step = 0; step < steps; ++step) {
    const Clock::time_point start = Clock::now();
    CGRT_RETURN_IF_ERROR(runner.step(setup.tokens(step)));
    const Clock::time_point returned = Clock::now();
    CGRT_RETURN_IF_ERROR(setup.stream.synchronize());
    times.host += microseconds(returned - start) / steps;
    times.step += microseconds(Clock::now() - start) / steps;
  }
  CGRT_RETURN_IF_ERROR(setup.stream.record(setup.start.ref()));
  for (int step = 0; step < steps; ++step) CGRT_RETURN_IF_ERROR(runner.step(setup.tokens(step)));
  CGRT_RETURN_IF_ERROR(setup.stream.record(setup.end.ref()));
  CGRT_RETURN_IF_ERROR(setup.stream.synchronize());
  if (cgrt::is_simulated()) return PassTimes{};
  CGRT_ASSIGN_OR_RETURN(const absl::Duration elapsed, cgrt::elapsed_time(setup.start.ref(), setup.end.ref()));
  times.back_to_back = absl::ToDoubleMicroseconds(elapsed) / steps;
  return times;
}

// Steps of a runner that has seen none of the numbers of tokens; the first makes its first executable.
absl::Status time_new_batches(const Setup& setup, Way way, std::vector<double>& times) {
  for (int round = 0; round < kNewBatchRounds; ++round) {
    Runner runner = setup.runner(way);
    CGRT_RETURN_IF_ERROR(runner.step(setup.plans.begin()->first));
    CGRT_RETURN_IF_ERROR(setup.stream.synchronize());
    std::set<std::uint64_t> seen = {setup.plans.begin()->first};
    for (const std::uint64_t tokens : setup.workload.tokens) {
      if (!seen.insert(tokens).second) continue;
      const Clock::time_point start = Clock::now();
      CGRT_RETURN_IF_ERROR(runner.step(tokens));
      CGRT_RETURN_IF_ERROR(setup.stream.synchronize());
      times.push_back(cgrt::is_simulated() ? 0 : microseconds(Clock::now() - start));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WayResult> measure_way(const Setup& setup, Way way, Runner& eager, Runner& captured) {
  WayResult result{.way = way};
  Runner runner = setup.runner(way);
  CGRT_RETURN_IF_ERROR(check(setup, runner));
  struct Compared {
    Runner& runner;
    std::vector<PassTimes>& passes;
  };
  std::vector<Compared> order = {{eager, result.eager_passes}, {runner, result.passes}};
  if (way == Way::kRebound) order.push_back({captured, result.captured_passes});
  for (int turn = 0; turn < (cgrt::is_simulated() ? 1 : kPairs / 2); ++turn) {
    const auto measure = [&](Compared& one) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const PassTimes times, time_pass(setup, one.runner));
      one.passes.push_back(times);
      return absl::OkStatus();
    };
    for (Compared& one : order) CGRT_RETURN_IF_ERROR(measure(one));
    for (std::size_t i = order.size(); i-- > 0;) CGRT_RETURN_IF_ERROR(measure(order[i]));
  }
  CGRT_RETURN_IF_ERROR(check(setup, runner));  // the measured launches left it intact
  CGRT_RETURN_IF_ERROR(time_new_batches(setup, way, result.new_batch));

  runner.take_counts();
  for (int step = 0; step < setup.workload.steps; ++step) CGRT_RETURN_IF_ERROR(runner.step(setup.tokens(step)));
  CGRT_RETURN_IF_ERROR(setup.stream.synchronize());
  result.executables = runner.executables();
  result.counts = runner.take_counts();
  return result;
}

}  // namespace

absl::StatusOr<std::vector<WayResult>> measure(cgrt::DeviceRef device, const Workload& workload) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(Mlp mlp, Mlp::create(device, stream.ref(), workload.shape));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event start, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(cgrt::Event end, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  Setup setup{device, stream.ref(), workload, mlp, {}, {}, std::move(start), std::move(end)};
  Runner eager = setup.runner(Way::kEager);
  for (const std::uint64_t tokens : workload.tokens) {
    if (setup.plans.contains(tokens)) continue;
    CGRT_ASSIGN_OR_RETURN(MlpPlan plan, mlp.plan(tokens));
    setup.plans.emplace(tokens, std::move(plan));
    CGRT_ASSIGN_OR_RETURN(setup.expected[tokens], run_poisoned(setup, eager, tokens));
  }
  std::vector<WayResult> results(1);
  Runner captured = setup.runner(Way::kCaptured);
  CGRT_RETURN_IF_ERROR(check(setup, captured));
  for (const Way way : {Way::kCaptured, Way::kExplicit, Way::kUpdated, Way::kRebound}) {
    CGRT_ASSIGN_OR_RETURN(WayResult result, measure_way(setup, way, eager, captured));
    results.front().passes.insert(results.front().passes.end(), result.eager_passes.begin(), result.eager_passes.end());
    results.push_back(std::move(result));
  }
  CGRT_RETURN_IF_ERROR(time_new_batches(setup, Way::kEager, results.front().new_batch));
  return results;
}

absl::StatusOr<double> check_small(cgrt::DeviceRef device) {
  CGRT_ASSIGN_OR_RETURN(const cgrt::Stream stream, cgrt::Stream::create(device));
  const MlpShape shape{.hidden = 128, .intermediate = 192, .max_tokens = 5};
  CGRT_ASSIGN_OR_RETURN(Mlp mlp, Mlp::create(device, stream.ref(), shape));
  CGRT_ASSIGN_OR_RETURN(const MlpPlan plan, mlp.plan(shape.max_tokens));
  CGRT_RETURN_IF_ERROR(mlp.poison(stream.ref()));
  CGRT_RETURN_IF_ERROR(mlp_step(stream.ref(), plan, mlp.arrays()));
  CGRT_ASSIGN_OR_RETURN(const Bits out, mlp.read_out(stream.ref(), shape.max_tokens));
  return mlp.check_on_host(out);
}
