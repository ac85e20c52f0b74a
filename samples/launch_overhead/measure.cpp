#include "measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/graph_exec.h"
#include "cgrt/graph/capture.h"
#include "cgrt/graph/cursor.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/inspect/json.h"
#include "cgrt/record/statistics.h"
#include "chain.h"

namespace {

constexpr std::int64_t kMinPairs = 16;
constexpr double kMaxModeSeconds = 2.0;  // a mode that would take longer is not measured
constexpr int kColdSamples = 9;

using Launch = absl::FunctionRef<absl::Status()>;

struct Sample {
  double chain_us = 0, launch_us = 0;
};

absl::StatusOr<Sample> time_once(cgrt::StreamRef stream, Launch launch) {
  using Clock = std::chrono::steady_clock;
  const auto microseconds = [](Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
  const Clock::time_point start = Clock::now();
  CGRT_RETURN_IF_ERROR(launch());
  const Clock::time_point launched = Clock::now();
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return Sample{microseconds(Clock::now() - start), microseconds(launched - start)};
}

template <class Project>
Spread spread_of(const std::vector<Sample>& samples, Project project) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(project(sample));
  return {cgrt::record::median(values), cgrt::record::quantile(values, 0.95), static_cast<std::int64_t>(values.size())};
}

ModeResult result_of(Mode mode, const std::vector<Sample>& samples) {
  ModeResult result;
  result.mode = mode;
  result.chain = spread_of(samples, [](const Sample& s) { return s.chain_us; });
  result.launch = spread_of(samples, [](const Sample& s) { return s.launch_us; });
  return result;
}

// The modes differ in the target alone.
absl::StatusOr<cgrt::Graph> build(const Chain& chain, Mode mode, cgrt::DeviceRef device, cgrt::StreamRef stream) {
  if (mode == Mode::kCaptured) {
    return cgrt::capture(stream, [&](cgrt::StreamRef captured) { return chain.step(captured); });
  }
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(device));
  cgrt::Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(chain.step(mode == Mode::kProgrammatic ? cursor.programmatic() : cursor));
  return graph;
}

// Runs the chain over poisoned outputs and compares with `expected`, or fills it when it is empty.
absl::Status check(const Chain& chain, cgrt::StreamRef stream, Mode mode, Launch launch,
                   std::vector<std::uint32_t>& expected) {
  CGRT_RETURN_IF_ERROR(chain.poison(stream));
  CGRT_RETURN_IF_ERROR(launch());
  CGRT_ASSIGN_OR_RETURN(std::vector<std::uint32_t> found, chain.read_result(stream));
  if (expected.empty()) {
    CGRT_RETURN_IF_ERROR(chain.check_on_host(found));
    expected = std::move(found);
  }
  if (found.empty() || found == expected) return absl::OkStatus();
  const auto at = std::mismatch(found.begin(), found.end(), expected.begin());
  return absl::DataLossError(absl::StrCat(to_string(mode), " differs from eager first in element ",
                                          at.first - found.begin(), ": bits 0x", absl::Hex(*at.first), ", not 0x",
                                          absl::Hex(*at.second)));
}

absl::StatusOr<Spread> measure_cold(const cgrt::Graph& graph, cgrt::StreamRef stream) {
  std::vector<Sample> samples;
  for (int i = 0; i < kColdSamples; ++i) {
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
    CGRT_ASSIGN_OR_RETURN(Sample sample, time_once(stream, [&] { return exec.launch(stream); }));
    samples.push_back(sample);
  }
  return spread_of(samples, [](const Sample& s) { return s.chain_us; });
}

// Eager and `graph_launch` alternate, A B B A, so that a drift of the machine meets both alike.
absl::StatusOr<ModeResult> measure_warm(Mode mode, cgrt::StreamRef stream, Launch eager, Launch graph_launch,
                                        std::int64_t pairs, std::vector<Sample>& eager_samples) {
  std::vector<Sample> own, baseline;
  std::vector<double> ratios;
  for (std::int64_t i = 0; i < pairs / 2; ++i) {
    std::array<Sample, 4> turn;
    for (std::size_t k = 0; k < turn.size(); ++k) {
      CGRT_ASSIGN_OR_RETURN(turn[k], time_once(stream, k == 0 || k == 3 ? eager : graph_launch));
    }
    for (const auto& [a, b] : {std::pair(turn[0], turn[1]), std::pair(turn[3], turn[2])}) {
      baseline.push_back(a);
      own.push_back(b);
      ratios.push_back(a.chain_us / b.chain_us);
    }
  }
  ModeResult result = result_of(mode, own);
  result.eager_median = spread_of(baseline, [](const Sample& s) { return s.chain_us; }).median;
  result.speedup = cgrt::record::median(ratios);
  result.ratio_spread = cgrt::record::spread(ratios);
  eager_samples.insert(eager_samples.end(), baseline.begin(), baseline.end());
  return result;
}

absl::Status measure_point(cgrt::DeviceRef device, cgrt::StreamRef stream, const std::vector<Mode>& graph_modes,
                           std::int64_t max_pairs, Point& point) {
  CGRT_ASSIGN_OR_RETURN(const Chain chain, Chain::create(device, stream, point.nodes, point.bytes));
  const auto eager = [&] { return chain.step(stream); };
  std::vector<std::uint32_t> expected;
  CGRT_RETURN_IF_ERROR(check(chain, stream, Mode::kEager, eager, expected));

  const bool simulated = cgrt::is_simulated();
  std::int64_t pairs = 0;
  if (!simulated) {
    CGRT_ASSIGN_OR_RETURN(const Sample once, time_once(stream, eager));
    const double pair_seconds = 2 * once.chain_us * 1e-6;  // a graph takes about as long at worst
    if (pair_seconds * kMinPairs > kMaxModeSeconds) {
      point.skipped = absl::StrCat("one eager chain takes ", static_cast<std::int64_t>(once.chain_us / 1000),
                                   " ms, so a mode would take more than ", kMaxModeSeconds, " s");
      return absl::OkStatus();
    }
    pairs = std::clamp(static_cast<std::int64_t>(kMaxModeSeconds / 2 / pair_seconds), kMinPairs, max_pairs);
  }

  std::vector<Sample> eager_samples;
  point.modes.push_back({.mode = Mode::kEager, .chain = {.count = 1}, .launch = {.count = 1}});
  for (const Mode mode : graph_modes) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::Graph graph, build(chain, mode, device, stream));
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
    const auto launch = [&] { return exec.launch(stream); };
    CGRT_RETURN_IF_ERROR(check(chain, stream, mode, launch, expected));  // cold
    CGRT_RETURN_IF_ERROR(exec.upload(stream));
    CGRT_RETURN_IF_ERROR(check(chain, stream, mode, launch, expected));  // warm from here on
    if (simulated) {
      point.modes.push_back({.mode = mode, .chain = {.count = 1}, .launch = {.count = 1}, .cold = {.count = 1}});
      continue;
    }
    CGRT_ASSIGN_OR_RETURN(ModeResult result, measure_warm(mode, stream, eager, launch, pairs, eager_samples));
    CGRT_ASSIGN_OR_RETURN(result.cold, measure_cold(graph, stream));
    CGRT_RETURN_IF_ERROR(check(chain, stream, mode, launch, expected));  // the measured launches left it intact
    point.modes.push_back(result);
  }
  if (!simulated) point.modes.front() = result_of(Mode::kEager, eager_samples);
  return absl::OkStatus();
}

}  // namespace

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::kEager: return "eager";
    case Mode::kCaptured: return "captured";
    case Mode::kExplicit: return "explicit";
    case Mode::kProgrammatic: return "programmatic";
  }
  return "unknown";
}

Sweep choose_sweep(bool quick) {
  constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
  if (cgrt::is_simulated()) return {.nodes = {1, 10, 100}, .bytes = {4 * kKiB, 64 * kKiB}};
  if (quick) return {.nodes = {1, 100, 1000}, .bytes = {4 * kKiB, 1 * kMiB, 16 * kMiB}, .max_pairs = kMinPairs};
  return {.nodes = {1, 10, 100, 1000, 10000},
          .bytes = {4 * kKiB, 64 * kKiB, 256 * kKiB, 1 * kMiB, 4 * kMiB, 16 * kMiB}};
}

absl::StatusOr<std::vector<Point>> measure(cgrt::DeviceRef device, const Sweep& sweep) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const int major, device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  std::vector<Mode> graph_modes = {Mode::kCaptured, Mode::kExplicit};
  if (major >= 9) graph_modes.push_back(Mode::kProgrammatic);

  std::vector<Point> points;
  for (const std::int64_t nodes : sweep.nodes) {
    for (const std::int64_t bytes : sweep.bytes) {
      Point& point = points.emplace_back();
      point.nodes = nodes;
      point.bytes = bytes;
      const std::string name = absl::StrCat(nodes, " kernels of ", bytes / 1024, " KiB");
      const absl::Status status = measure_point(device, stream.ref(), graph_modes, sweep.max_pairs, point);
      if (!status.ok()) return cgrt::driver::annotate(status, name);
      std::string text = point.skipped.empty() ? "" : absl::StrCat(" skipped: ", point.skipped);
      for (const ModeResult& mode : point.modes) {
        absl::StrAppend(&text, " ", to_string(mode.mode), " ", mode.chain.median, " us");
      }
      if (!cgrt::is_simulated()) std::fprintf(stderr, "%s:%s\n", name.c_str(), text.c_str());
    }
  }
  return points;
}

absl::Status write_graphs(cgrt::DeviceRef device, const std::string& directory) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const Chain chain, Chain::create(device, stream.ref(), 4, 4096));
  for (const Mode mode : {Mode::kCaptured, Mode::kExplicit}) {
    CGRT_ASSIGN_OR_RETURN(const cgrt::Graph graph, build(chain, mode, device, stream.ref()));
    CGRT_ASSIGN_OR_RETURN(const cgrt::ir::GraphIr ir, cgrt::snapshot(graph));
    CGRT_RETURN_IF_ERROR(
        cgrt::inspect::write_file(absl::StrCat(directory, "/chain-", to_string(mode), ".cgrt.json"), ir));
  }
  return absl::OkStatus();
}
