#include "cgrt/bundle/shrink.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt {
namespace {

// A part is kept whole when 64 parts of it, one after the other, cannot be dropped: state that is updated in place, of
// which each line would be a trial. Small parts are cheap.
constexpr int kMaxVainHalvings = 6;
constexpr std::uint64_t kSmallPartBytes = 16 * kLineBytes;

constexpr std::uint64_t kConfirmations = 3, kTrialSeed = 1, kConfirmationSeed = 1000;

bool is_dropped_from(const saved::Block& block) {
  return block.kind == ir::MemoryKind::kDevice && block.variable.empty();
}

// Finds those of some lines that can be poisoned together: as large parts as possible at once, halving those that fail.
class Finder {
 public:
  // `content`: what counts as kept.
  Finder(const ShrinkLimits& limits, Spans content, Spans dead)
      : limits_(limits), content_(std::move(content)), dead_(std::move(dead)), start_(absl::Now()) {}

  void use(Trials* trials) { trials_ = trials; }
  // Two replays without poison.
  absl::Status find_varying(const Spans& varied) {
    for (int i = 0; i < 2; ++i) {
      CGRT_ASSIGN_OR_RETURN([[maybe_unused]] const bool is_more, finds_more_varying(varied));
    }
    return absl::OkStatus();
  }
  // Those of `lines` that no replay needs, as far as this poison shows.
  absl::StatusOr<Spans> overwritten(const Spans& lines, const Poison& poison, const Spans& varied = {});
  // Whether all of `lines` can be dropped, in one trial.
  absl::StatusOr<bool> confirm(const Spans& lines, const Poison& poison);

  const Spans& varying() const { return varying_; }
  void keep(Kept reason, const Spans& lines) {
    kept_[static_cast<std::size_t>(reason)] += bytes_of(common(lines, content_));
  }
  ShrinkFindings finish(const Spans& dropped) && {
    return {.dropped = dropped,
            .dead = common(dropped, left_dead_),
            .varying = std::move(varying_),
            .kept_bytes = kept_,
            .replays = replays_,
            .time = absl::Now() - start_};
  }

 private:
  struct Part {
    Spans lines = {};
    Kept reason = Kept::kRead;
    bool is_tried = false;  // and cannot be dropped as it is
    int vain_halvings = 0;  // that it is from, the last ones: none of their halves could be dropped
  };
  struct Smaller {
    bool operator()(const Part& a, const Part& b) const { return bytes_of(a.lines) < bytes_of(b.lines); }
  };

  // Each search may take half of what the ones before it have left.
  struct Budget {
    std::uint64_t replays = 0;
    absl::Time time = {};
  };
  Budget half_of_the_rest() const {
    const std::uint64_t left = limits_.max_replays - std::min(replays_, limits_.max_replays);
    const absl::Time now = absl::Now();
    return {replays_ + left / 2, now + (start_ + limits_.max_time - now) / 2};
  }
  bool is_spent(const Budget& budget) const { return replays_ >= budget.replays || absl::Now() > budget.time; }

  absl::StatusOr<bool> finds_more_varying(const Spans& varied);
  absl::StatusOr<Trial> replay(const TrialRequest& request);
  // Adds the part to `found_` where it holds; else what remains of it, if anything.
  absl::StatusOr<std::optional<Part>> try_part(Part part, const Poison& poison, const Spans& varied);

  const ShrinkLimits limits_;
  const Spans content_, dead_;
  const absl::Time start_;
  Trials* trials_ = nullptr;
  std::uint64_t replays_ = 0;
  Spans found_ = {}, varying_ = {}, left_dead_ = {};
  std::array<std::uint64_t, static_cast<std::size_t>(Kept::kCount)> kept_ = {};
};

absl::StatusOr<bool> Finder::finds_more_varying(const Spans& varied) {
  ++replays_;
  CGRT_ASSIGN_OR_RETURN(const Trial trial, trials_->replay({.varied = varied}));
  if (trial.end != Trial::End::kReplayed) {
    return absl::FailedPreconditionError(
        absl::StrCat("a replay from the saved state ",
                     trial.end == Trial::End::kFault ? "faults" : "does not end within the time limit",
                     ": graphdump play says more"));
  }
  varying_ = united(std::move(varying_), trial.changed);
  return !trial.changed.empty();
}

absl::StatusOr<Trial> Finder::replay(const TrialRequest& request) {
  for (int attempts = 1;; ++attempts) {
    ++replays_;
    CGRT_ASSIGN_OR_RETURN(Trial trial, trials_->replay(request));
    // What varies does so rarely in some places: look whether it explains the difference.
    if (trial.changed.empty() || varying_.empty() || attempts == 3) return trial;
    CGRT_ASSIGN_OR_RETURN(const bool is_more, finds_more_varying(request.varied));
    if (!is_more) return trial;
  }
}

absl::StatusOr<std::optional<Finder::Part>> Finder::try_part(Part part, const Poison& poison, const Spans& varied) {
  CGRT_ASSIGN_OR_RETURN(const Trial trial,
                        replay({.poison = poison, .poisoned = united(found_, part.lines), .varied = varied}));
  part.is_tried = true;
  if (trial.end != Trial::End::kReplayed) {
    part.reason = Kept::kFault;
    return part;
  }
  part.reason = Kept::kRead;
  const Spans left = without(trial.left, dead_);
  if (trial.changed.empty()) {
    found_ = united(std::move(found_), part.lines);
    keep(Kept::kNotOverwritten, common(found_, left));
    found_ = without(found_, left);
    left_dead_ = united(std::move(left_dead_), common(trial.left, dead_));
    return std::nullopt;
  }
  // A replay that read poison may have written zeros for it.
  if (poison.fill == Poison::Fill::kZeros) return part;
  const Spans rest = without(part.lines, left);
  if (rest == part.lines) return part;
  keep(Kept::kNotOverwritten, common(part.lines, left));
  if (rest.empty()) return std::nullopt;
  return Part{.lines = rest};
}

absl::StatusOr<Spans> Finder::overwritten(const Spans& lines, const Poison& poison, const Spans& varied) {
  const Budget budget = half_of_the_rest();
  found_.clear();
  std::priority_queue<Part, std::vector<Part>, Smaller> parts;
  const auto add = [&](std::optional<Part> part) {
    if (part.has_value() && !part->lines.empty()) parts.push(*std::move(part));
  };
  add(Part{.lines = lines});
  while (!parts.empty()) {
    Part part = parts.top();
    parts.pop();
    keep(Kept::kVarying, common(part.lines, varying_));
    part.lines = without(part.lines, varying_);
    if (part.lines.empty()) continue;
    if (part.is_tried && is_spent(budget)) {
      keep(Kept::kUndecided, part.lines);
      continue;
    }
    if (!part.is_tried) {
      CGRT_ASSIGN_OR_RETURN(std::optional<Part> rest, try_part(std::move(part), poison, varied));
      add(std::move(rest));
      continue;
    }
    auto [lower, upper] = halves(part.lines);
    const bool is_given_up = part.vain_halvings >= kMaxVainHalvings && bytes_of(part.lines) > kSmallPartBytes;
    if (upper.empty() || is_given_up) {
      keep(part.reason, part.lines);
      continue;
    }
    CGRT_ASSIGN_OR_RETURN(std::optional<Part> low, try_part(Part{.lines = std::move(lower)}, poison, varied));
    if (!low.has_value()) {
      // With the lower half found, the upper one alone is what was tried with it.
      add(Part{.lines = std::move(upper), .reason = part.reason, .is_tried = true});
      continue;
    }
    CGRT_ASSIGN_OR_RETURN(std::optional<Part> high, try_part(Part{.lines = std::move(upper)}, poison, varied));
    if (high.has_value() && low->is_tried && high->is_tried) {
      low->vain_halvings = high->vain_halvings = part.vain_halvings + 1;
    }
    add(std::move(low));
    add(std::move(high));
  }
  keep(Kept::kVarying, common(found_, varying_));
  return without(found_, varying_);
}

absl::StatusOr<bool> Finder::confirm(const Spans& lines, const Poison& poison) {
  CGRT_ASSIGN_OR_RETURN(const Trial trial, replay({.poison = poison, .poisoned = lines}));
  left_dead_ = united(std::move(left_dead_), common(trial.left, dead_));
  return trial.end == Trial::End::kReplayed && trial.changed.empty() && without(trial.left, dead_).empty();
}

// Memory that is not all zeros, which takes no file.
Spans content_of(const saved::Manifest& manifest, const saved::SavedGraph& graph) {
  std::vector<saved::Range> ranges;
  for (const saved::Piece& piece : graph.memory) {
    if (piece.hash.has_value()) ranges.push_back(piece.range);
  }
  return spans_of(manifest, ranges);
}

// Each that has a name, and all together that change from launch to launch.
std::vector<Spans> inputs_of(const saved::Manifest& manifest, const saved::SavedGraph& graph) {
  std::vector<Spans> inputs;
  for (const saved::Buffer& input : graph.inputs) inputs.push_back(spans_of(manifest, {input.range}));
  if (!graph.changed_outside.empty()) inputs.push_back(spans_of(manifest, graph.changed_outside));
  return inputs;
}

// The lines of a graph's memory that have content and may be dropped.
Spans candidates_of(const saved::Manifest& manifest, const saved::SavedGraph& graph, const Spans& inputs,
                    Finder& finder) {
  std::vector<saved::Range> host, device;
  for (const saved::Piece& piece : graph.memory) {
    (is_dropped_from(manifest.blocks[piece.range.block]) ? device : host).push_back(piece.range);
  }
  finder.keep(Kept::kNotDevice, spans_of(manifest, host));
  const Spans in_device = spans_of(manifest, device);
  finder.keep(Kept::kInput, common(in_device, inputs));
  const Spans rest = without(in_device, inputs);
  Spans lines;
  for (const saved::Range& range : ranges_of(manifest, rest)) {  // a line of two blocks is none
    for (const Span& span : whole_lines(spans_of(manifest, {range}))) lines.push_back(span);
  }
  lines = united(std::move(lines));
  finder.keep(Kept::kSmall, without(rest, lines));
  return lines;
}

// What of `lines` holds in trials with other poison than theirs.
absl::StatusOr<Spans> confirmed(Spans lines, const ShrinkLimits& limits, Finder& finder) {
  for (std::uint64_t round = 0; round < kConfirmations; ++round) {
    bool is_confirmed = true;
    for (const Poison::Fill fill : {Poison::Fill::kRandom, Poison::Fill::kInverse}) {
      const Poison poison = {fill, kConfirmationSeed + round};
      CGRT_ASSIGN_OR_RETURN(const bool holds, finder.confirm(lines, poison));
      if (holds) continue;
      is_confirmed = false;
      CGRT_ASSIGN_OR_RETURN(lines, finder.overwritten(lines, poison));
      lines = at_least(std::move(lines), limits.min_hole_bytes);
    }
    if (is_confirmed) return lines;
  }
  finder.keep(Kept::kUndecided, lines);
  return Spans();
}

// The pieces that `graph` has when memory has no content in `dropped`.
absl::StatusOr<std::vector<saved::Piece>> pieces_without(const saved::Folder& folder, const saved::SavedGraph& graph,
                                                         const Spans& dropped, saved::FolderWriter& writer) {
  const saved::Manifest& manifest = folder.manifest();
  std::vector<saved::Piece> pieces;
  std::vector<std::byte> bytes;
  for (const saved::Piece& piece : graph.memory) {
    const Spans whole = spans_of(manifest, {piece.range});
    const Spans kept = without(whole, dropped);
    if (kept == whole) {
      pieces.push_back(piece);
      continue;
    }
    if (kept.empty()) continue;
    if (piece.hash.has_value()) {
      bytes.resize(piece.range.bytes);
      CGRT_RETURN_IF_ERROR(folder.read_piece(piece, bytes));
    }
    for (const saved::Range& range : ranges_of(manifest, kept)) {
      saved::Piece part = {.range = range};
      if (piece.hash.has_value()) {
        const auto content = std::span(bytes).subspan(range.offset - piece.range.offset, range.bytes);
        if (!std::all_of(content.begin(), content.end(), [](std::byte byte) { return byte == std::byte{}; })) {
          CGRT_ASSIGN_OR_RETURN(part.hash, writer.add_memory(content));
        }
      }
      pieces.push_back(part);
    }
  }
  return pieces;
}

// That the graph leaves what the bundle says, wherever it leaves the same each time.
absl::Status check_expected(const saved::Folder& folder, Trials& trials) {
  Finder finder(ShrinkLimits{}, {}, {});
  finder.use(&trials);
  CGRT_RETURN_IF_ERROR(finder.find_varying({}));
  CGRT_ASSIGN_OR_RETURN(Spans unexpected, trials.unexpected());
  std::erase_if(unexpected, [&](const Span& span) { return !within(finder.varying(), span).empty(); });
  if (unexpected.empty()) return absl::OkStatus();
  const saved::Range range = ranges_of(folder.manifest(), {unexpected.front()}).front();
  return absl::FailedPreconditionError(
      absl::StrCat("a replay leaves other memory than the launch that was saved, in block ", range.block, ", bytes ",
                   range.offset, " to ", range.offset + range.bytes - 1, ": graphdump play says more"));
}

// Changes `graph`, a copy of one of the folder's.
absl::StatusOr<ShrunkGraph> shrink_graph(const saved::Folder& folder, const MakeTrials& make_trials,
                                         const ShrinkLimits& limits, saved::FolderWriter& writer,
                                         saved::SavedGraph& graph) {
  const saved::Manifest& manifest = folder.manifest();
  ShrunkGraph result = {.name = graph.name, .bytes_before = bytes_of(content_of(manifest, graph))};
  {
    CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Trials> trials, make_trials({graph.name}));
    CGRT_RETURN_IF_ERROR(check_expected(folder, *trials));
  }
  CGRT_ASSIGN_OR_RETURN(result.findings, find_overwritten(manifest, graph, make_trials, limits));
  CGRT_ASSIGN_OR_RETURN(graph.memory, pieces_without(folder, graph, result.findings.dropped, writer));
  if (!result.findings.dead.empty()) {
    const Spans expected = spans_of(manifest, graph.expected.ranges);
    graph.expected.ranges = ranges_of(manifest, without(expected, result.findings.dead));
    CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Trials> trials, make_trials({graph.name}));
    CGRT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, trials->hashes(graph.expected.ranges));
    CGRT_ASSIGN_OR_RETURN(graph.expected.hashes, writer.add_expected(hashes));
  }
  result.bytes_after = bytes_of(content_of(manifest, graph));
  return result;
}

}  // namespace

const char* to_string(Kept reason) {
  switch (reason) {
    case Kept::kNotDevice: return "not memory of the device, or a variable";
    case Kept::kInput: return "an input";
    case Kept::kNotOverwritten: return "not overwritten";
    case Kept::kRead: return "read before it is overwritten";
    case Kept::kFault: return "a replay faults or hangs with other content";
    case Kept::kVarying: return "differs from replay to replay";
    case Kept::kUndecided: return "not decided";
    case Kept::kSmall: return "too small a piece";
    case Kept::kCount: break;
  }
  return "";
}

absl::StatusOr<ShrinkFindings> find_overwritten(const saved::Manifest& manifest, const saved::SavedGraph& graph,
                                                const MakeTrials& make_trials, const ShrinkLimits& limits) {
  Finder finder(limits, content_of(manifest, graph), whole_lines(spans_of(manifest, graph.dead)));
  const std::vector<Spans> inputs = inputs_of(manifest, graph);
  Spans all_inputs;
  for (const Spans& input : inputs) all_inputs = united(std::move(all_inputs), input);
  Spans lines = candidates_of(manifest, graph, all_inputs, finder);
  {
    CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Trials> trials, make_trials({graph.name}));
    finder.use(trials.get());
    CGRT_RETURN_IF_ERROR(finder.find_varying({}));
    for (const Poison::Fill fill :
         {Poison::Fill::kNudge, Poison::Fill::kRandom, Poison::Fill::kInverse, Poison::Fill::kZeros}) {
      CGRT_ASSIGN_OR_RETURN(lines, finder.overwritten(lines, {fill, kTrialSeed}));
    }
    for (const Spans& input : inputs) {
      // A replay may not stand another input at all.
      if (!finder.find_varying(input).ok()) continue;
      CGRT_ASSIGN_OR_RETURN(lines, finder.overwritten(lines, {Poison::Fill::kRandom, kTrialSeed}, input));
    }
    const Spans large = at_least(lines, limits.min_hole_bytes);
    finder.keep(Kept::kSmall, without(lines, large));
    lines = large;
  }
  // In another process, after nothing else.
  CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Trials> trials, make_trials({graph.name}));
  finder.use(trials.get());
  CGRT_RETURN_IF_ERROR(finder.find_varying({}));
  CGRT_ASSIGN_OR_RETURN(lines, confirmed(std::move(lines), limits, finder));
  return std::move(finder).finish(lines);
}

absl::StatusOr<std::vector<ShrunkGraph>> shrink(const std::string& path, const MakeTrials& make_trials,
                                                const ShrinkLimits& limits) {
  CGRT_ASSIGN_OR_RETURN(const saved::Folder folder, saved::Folder::open(path));
  CGRT_ASSIGN_OR_RETURN(saved::FolderWriter writer, saved::FolderWriter::create(path));
  saved::Manifest manifest = folder.manifest();
  std::vector<ShrunkGraph> shrunk;
  for (saved::SavedGraph& graph : manifest.graphs) {
    absl::StatusOr<ShrunkGraph> one = shrink_graph(folder, make_trials, limits, writer, graph);
    if (!one.ok()) return driver::annotate(one.status(), absl::StrCat("Graph \"", graph.name, "\""));
    shrunk.push_back(*std::move(one));
  }
  CGRT_RETURN_IF_ERROR(writer.finish(manifest));
  CGRT_RETURN_IF_ERROR(writer.remove_unused(manifest));
  return shrunk;
}

}  // namespace cgrt
