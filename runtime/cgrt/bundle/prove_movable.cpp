#include "cgrt/bundle/prove_movable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/spans.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/folder.h"

namespace cgrt {
namespace {

using saved::OpenBytes;

constexpr std::uint64_t kSeed = 0x6D6F76656420;
constexpr Poison kPoisons[] = {
    {Poison::Fill::kRandom, kSeed}, {Poison::Fill::kInverse, kSeed}, {Poison::Fill::kZeros, kSeed}};
constexpr int kMaxAttempts = 3;
constexpr char kNotKnown[] = ": an address of it is not known.";

// `graph` with poison in `open`.
ir::GraphIr variant_of(ir::GraphIr graph, std::span<const OpenBytes> open, const Poison& poison) {
  for (const OpenBytes& one : open) {
    auto& kernel = std::get<ir::KernelParams>(graph.nodes[one.node].params);
    const std::uint32_t first = one.at.front(), last = one.at.back();
    std::erase_if(kernel.pointers, [&](const ir::InnerPointer& pointer) {
      return pointer.at <= last && first < pointer.at + saved::kAddressBytes;
    });
    for (const std::uint32_t at : one.at) {
      const std::uint64_t place = std::uint64_t{one.node} * ir::kMaxParameterBytes + at;
      apply(poison, place, std::as_writable_bytes(std::span(kernel.arguments).subspan(at, 1)));
    }
  }
  return graph;
}

const char* what_happened(const Trial& trial) {
  switch (trial.end) {
    case Trial::End::kFault: return "faults";
    case Trial::End::kTimeLimit: return "does not end within the time limit";
    case Trial::End::kReplayed: break;
  }
  return trial.changed.empty() ? "" : "leaves other memory";
}

// Of one graph of a bundle.
class Proof {
 public:
  Proof(const saved::Folder& folder, const saved::SavedGraph& graph, const ir::GraphIr& ir, saved::FolderWriter& writer,
        const MakeTrials& make_trials)
      : folder_(folder), graph_(graph), ir_(ir), writer_(writer), make_trials_(make_trials) {}

  // Why it is not movable; empty: it is.
  absl::StatusOr<std::string> run(std::span<const OpenBytes> open) {
    const std::span<const Poison> poisons = open.empty() ? std::span<const Poison>() : kPoisons;
    CGRT_RETURN_IF_ERROR(write_variants(open, poisons));
    const absl::StatusOr<std::unique_ptr<Trials>> trials = make_trials_(names_);
    if (!trials.ok()) return cannot(trials.status());
    const absl::StatusOr<std::string> why = check_moved(**trials);
    if (!why.ok()) return cannot(why.status());
    if (!why->empty()) return *why;
    for (std::size_t i = 0; i < poisons.size(); ++i) {
      const absl::StatusOr<Trial> trial = replay(**trials, i + 1);
      if (!trial.ok()) return cannot(trial.status());
      if (*what_happened(*trial) == '\0') continue;
      return name_needed(open, poisons[i], *trial);
    }
    return std::string();
  }

 private:
  static std::string cannot(const absl::Status& status) {
    return absl::StrCat("It could not be replayed at other addresses: ", status.message());
  }

  // Graphs of the bundle that are this one but for what is open.
  absl::Status write_variants(std::span<const OpenBytes> open, std::span<const Poison> poisons) {
    saved::Manifest manifest = folder_.manifest();
    names_ = {graph_.name};
    for (const Poison& poison : poisons) {
      saved::SavedGraph variant = graph_;
      for (int i = 0; std::any_of(manifest.graphs.begin(), manifest.graphs.end(),
                                  [&](const saved::SavedGraph& one) { return one.name == variant.name; });
           ++i) {
        variant.name = absl::StrCat("variant-", i);
      }
      CGRT_ASSIGN_OR_RETURN(variant.file, writer_.add_graph(variant.name, variant_of(ir_, open, poison)));
      names_.push_back(variant.name);
      manifest.graphs.push_back(std::move(variant));
    }
    return writer_.finish(manifest);
  }

  // Another replay with nothing poisoned, for what varies. Why there is none; empty: it ended.
  absl::StatusOr<std::string> see_varying(Trials& trials) {
    CGRT_ASSIGN_OR_RETURN(const Trial trial, trials.replay({}));
    if (trial.end != Trial::End::kReplayed) {
      return absl::StrCat("A replay at other addresses ", what_happened(trial), kNotKnown);
    }
    varying_ = united(std::move(varying_), trial.changed);
    return std::string();
  }

  // With nothing poisoned.
  absl::StatusOr<std::string> check_moved(Trials& trials) {
    varying_.clear();
    CGRT_ASSIGN_OR_RETURN(std::string why, see_varying(trials));
    if (!why.empty()) return why;
    CGRT_ASSIGN_OR_RETURN(Spans unexpected, trials.unexpected());
    // What varies does so rarely in some places: look whether it explains the difference.
    for (int i = 0; i < kMaxAttempts && !unexpected.empty(); ++i) {
      CGRT_ASSIGN_OR_RETURN(why, see_varying(trials));
      if (!why.empty()) return why;
      std::erase_if(unexpected, [&](const Span& unit) { return !within(varying_, unit).empty(); });
    }
    if (unexpected.empty()) return std::string();
    const saved::Range range = ranges_of(folder_.manifest(), {unexpected.front()}).front();
    return absl::StrCat("A replay at other addresses leaves other memory than the launch that was saved, in block ",
                        range.block, ", bytes ", range.offset, " to ", range.offset + range.bytes - 1, kNotKnown);
  }

  absl::StatusOr<Trial> replay(Trials& trials, std::size_t graph) {
    for (int attempts = 1;; ++attempts) {
      CGRT_ASSIGN_OR_RETURN(Trial trial, trials.replay({.graph = graph}));
      trial.changed = without(trial.changed, varying_);
      if (trial.changed.empty() || attempts == kMaxAttempts) return trial;
      CGRT_RETURN_IF_ERROR(see_varying(trials).status());
    }
  }

  // The first of `open` that the graph needs, by halving: each half in processes of its own.
  absl::StatusOr<std::string> name_needed(std::span<const OpenBytes> open, const Poison& poison, Trial trial) {
    while (open.size() > 1) {
      const std::span<const OpenBytes> half = open.first(open.size() / 2);
      CGRT_RETURN_IF_ERROR(write_variants(half, {&poison, 1}));
      const absl::StatusOr<std::unique_ptr<Trials>> trials = make_trials_(names_);
      if (!trials.ok()) return cannot(trials.status());
      const absl::StatusOr<std::string> why = check_moved(**trials);
      if (!why.ok()) return cannot(why.status());
      if (!why->empty()) return *why;
      const absl::StatusOr<Trial> of_half = replay(**trials, 1);
      if (!of_half.ok()) return cannot(of_half.status());
      const bool is_needed = *what_happened(*of_half) != '\0';
      open = is_needed ? half : open.subspan(half.size());
      if (is_needed) trial = *of_half;
    }
    return absl::StrCat(open.front().why_not, " A replay with something else there ", what_happened(trial), ".");
  }

  const saved::Folder& folder_;
  const saved::SavedGraph& graph_;
  const ir::GraphIr& ir_;
  saved::FolderWriter& writer_;
  const MakeTrials& make_trials_;
  std::vector<std::string> names_;  // of the graph and its variants
  Spans varying_;
};

absl::Status prove_all(const saved::Folder& folder, std::vector<saved::Movability>& graphs,
                       const MakeTrials& make_trials) {
  CGRT_ASSIGN_OR_RETURN(saved::FolderWriter writer, saved::FolderWriter::create(folder.path()));
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    if (!graphs[i].why_not.empty()) continue;
    const saved::SavedGraph& graph = folder.manifest().graphs[i];
    CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, folder.read_graph(graph));
    CGRT_ASSIGN_OR_RETURN(graphs[i].why_not, Proof(folder, graph, ir, writer, make_trials).run(graphs[i].open));
    graphs[i].open.clear();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<saved::Movability>> prove_movable(const std::string& path,
                                                             std::vector<saved::Movability> graphs,
                                                             const MakeTrials& make_trials) {
  CGRT_ASSIGN_OR_RETURN(const saved::Folder before, saved::Folder::open(path));
  // Loads at other addresses are of graphs that are movable.
  std::vector<saved::Movability> assumed = graphs;
  for (saved::Movability& one : assumed) one.open.clear();
  CGRT_RETURN_IF_ERROR(saved::mark_movable(before, assumed));
  absl::StatusOr<saved::Folder> folder = saved::Folder::open(path);
  absl::Status status = folder.status();
  if (status.ok()) status = prove_all(*folder, graphs, make_trials);
  // What is not proven is not assumed, also where this fails.
  const absl::Status written = saved::mark_movable(before, graphs);
  CGRT_RETURN_IF_ERROR(status);
  CGRT_RETURN_IF_ERROR(written);
  return graphs;
}

}  // namespace cgrt
