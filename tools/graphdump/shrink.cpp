// graphdump shrink: leaves out of a bundle what every replay overwrites before it reads it.

#include "cgrt/bundle/shrink.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "again.h"
#include "cgrt/base/counted.h"
#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/loaded_trials.h"
#include "cgrt/bundle/trial_process.h"
#include "cgrt/ir/describe.h"
#include "command.h"
#include "subcommands.h"

namespace graphdump {
namespace {

std::string megabytes(std::uint64_t bytes) { return absl::StrFormat("%.2f MB", static_cast<double>(bytes) / 1e6); }

std::string text_of(const cgrt::ShrunkGraph& graph) {
  const cgrt::ShrinkFindings& findings = graph.findings;
  std::string text = absl::StrCat(graph.name, ": ", megabytes(graph.bytes_before), " before, ",
                                  megabytes(graph.bytes_after), " now; ", cgrt::counted(findings.replays, "replay"),
                                  absl::StrFormat(" in %.1f s\n", absl::ToDoubleSeconds(findings.time)));
  for (std::size_t i = 0; i < findings.kept_bytes.size(); ++i) {
    if (findings.kept_bytes[i] == 0) continue;
    absl::StrAppend(&text, "  kept: ", megabytes(findings.kept_bytes[i]), " ",
                    cgrt::to_string(static_cast<cgrt::Kept>(i)), "\n");
  }
  if (!findings.dead.empty()) {
    absl::StrAppend(&text, "  dropped: ", megabytes(cgrt::bytes_of(findings.dead)), " free in its allocator\n");
  }
  for (const cgrt::Span& span : findings.varying) {
    absl::StrAppend(&text, "  differs from replay to replay: 0x", absl::Hex(span.begin), ", ",
                    cgrt::counted(span.bytes(), "byte"), "\n");
  }
  return text;
}

}  // namespace

int shrink(const ShrinkOptions& options) {
  const absl::Duration limit = absl::Seconds(options.replay_seconds);
  const auto make_trials = [&](const std::vector<std::string>& graphs) {
    return cgrt::TrialProcess::create(
        [&options, graphs] { return cgrt::LoadedTrials::create(options.path, graphs, cgrt::DeviceRef(0)); }, limit);
  };
  const absl::StatusOr<std::vector<cgrt::ShrunkGraph>> shrunk =
      cgrt::shrink(options.path, make_trials, {.max_time = absl::Seconds(options.graph_seconds)});
  if (cgrt::are_addresses_taken(shrunk.status())) run_again_without_randomization();
  if (!shrunk.ok()) return fail(shrunk.status());
  std::string text;
  for (const cgrt::ShrunkGraph& graph : *shrunk) text += text_of(graph);
  return print(text, "", kOk);
}

}  // namespace graphdump
