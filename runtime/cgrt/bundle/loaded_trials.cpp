#include "cgrt/bundle/loaded_trials.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/relocation.h"
#include "cgrt/bundle/transfer.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/saved/hash.h"

namespace cgrt {
namespace {

// Nothing else may be there, and nothing is accessible there. Null: something is there that no device has access to.
absl::StatusOr<std::unique_ptr<internal::AddressSpace>> take_old_addresses(const std::vector<saved::Block>& blocks,
                                                                           CUcontext context) {
  auto space = internal::AddressSpace::reserve(blocks, context, internal::Placement::kAsSaved);
  if (are_addresses_taken(space.status())) return nullptr;
  return space;
}

// An address that was overlooked would be right where memory is at addresses that other memory had.
absl::Status check_elsewhere(const std::vector<saved::Block>& blocks, const std::vector<void*>& places) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto begin = reinterpret_cast<std::uint64_t>(places[i]), end = begin + blocks[i].bytes;
    if (begin == 0 || !blocks[i].variable.empty()) continue;  // the driver puts variables where it likes
    const bool is_old = std::any_of(blocks.begin(), blocks.end(), [&](const saved::Block& block) {
      return block.variable.empty() && begin < block.address + block.bytes && block.address < end;
    });
    if (!is_old) continue;
    return absl::FailedPreconditionError(absl::StrCat("Memory ", i, " of the bundle came to lie at 0x",
                                                      absl::Hex(begin),
                                                      ", which is an address that its "
                                                      "memory had before, so that replays show nothing."));
  }
  return absl::OkStatus();
}

std::uint64_t end_of_line(std::uint64_t address, std::uint64_t end) {
  return std::min(end, (address / kLineBytes + 1) * kLineBytes);
}

}  // namespace

const std::byte* LoadedTrials::Part::content() const {
  static const Bytes zeros = std::make_unique<std::byte[]>(saved::kMaxPieceBytes);
  return saved != nullptr ? saved.get() : zeros.get();
}

void LoadedTrials::Part::keep(std::span<const std::byte> bytes) {
  saved = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
  std::memcpy(saved.get(), bytes.data(), bytes.size());
}

// Looks at all memory after a replay: what it has become, and what is to be put back.
class LoadedTrials::Sweep {
 public:
  Sweep(LoadedTrials& trials, const TrialRequest& request) : trials_(trials), request_(request) {}

  absl::Status see_reference(std::size_t i, std::span<const std::byte> now) {
    Part& part = trials_.parts_[i];
    part.reference = nullptr;
    if (std::memcmp(now.data(), part.content(), now.size()) == 0) return absl::OkStatus();
    part.reference = std::make_unique_for_overwrite<std::byte[]>(now.size());
    std::memcpy(part.reference.get(), now.data(), now.size());
    add_dirty(part, now);
    return absl::OkStatus();
  }

  absl::Status see(std::size_t i, std::span<const std::byte> now) {
    const Part& part = trials_.parts_[i];
    const std::span<const std::byte> reference = trials_.reference_of(part);
    const Spans poisoned = within(request_.poisoned, part.span);
    const bool is_reference = std::memcmp(now.data(), reference.data(), now.size()) == 0;
    if (!is_reference) add_fates(part, now, reference, poisoned);
    if (!is_reference || part.reference != nullptr) add_dirty(part, now);
    return absl::OkStatus();
  }

  // Puts memory back to what was saved.
  absl::Status restore() {
    std::vector<internal::Chunk> chunks;
    for (const Dirty& one : dirty_) {
      const Part& part = *one.part;
      chunks.push_back(
          {part.chunk.address + (one.span.begin - part.span.begin), one.span.bytes(), part.chunk.is_on_host});
    }
    return trials_.transfers_->write(chunks, [&](std::size_t i, std::span<std::byte> out) {
      const Dirty& one = dirty_[i];
      std::memcpy(out.data(), one.part->content() + (one.span.begin - one.part->span.begin), out.size());
      return absl::OkStatus();
    });
  }

  Trial finish() && {
    for (const auto& [address, bytes] : varying_) trials_.varying_[address] |= bytes;
    return {.left = united(std::move(left_)), .changed = united(std::move(changed_))};
  }

 private:
  struct Dirty {
    const Part* part;
    Span span;
  };

  void add_dirty(const Part& part, std::span<const std::byte> now) {
    Span all = {};
    for (std::uint64_t at = part.span.begin, next = 0; at < part.span.end; at = next) {
      next = end_of_line(at, part.span.end);
      const std::uint64_t offset = at - part.span.begin;
      if (std::memcmp(&now[offset], part.content() + offset, next - at) == 0) continue;
      if (all.end == 0) all.begin = at;
      all.end = next;
    }
    if (all.end == 0) return;
    const std::lock_guard lock(mutex_);
    dirty_.push_back({&part, all});
  }

  void add_fates(const Part& part, std::span<const std::byte> now, std::span<const std::byte> reference,
                 const Spans& poisoned) {
    std::vector<std::byte> poison;
    if (!poisoned.empty()) {
      poison.assign(part.content(), part.content() + now.size());
      for (const Span& span : poisoned) {
        apply(request_.poison, span.begin, std::span(poison).subspan(span.begin - part.span.begin, span.bytes()));
      }
    }
    Spans left, changed;
    std::map<std::uint64_t, Line> varying;
    auto next_poisoned = poisoned.begin();
    for (std::uint64_t at = part.span.begin, next = 0; at < part.span.end; at = next) {
      next = end_of_line(at, part.span.end);
      const std::uint64_t offset = at - part.span.begin, bytes = next - at;
      while (next_poisoned != poisoned.end() && next_poisoned->end <= at) ++next_poisoned;
      const bool is_poisoned = next_poisoned != poisoned.end() && next_poisoned->begin <= at;
      const auto line = now.subspan(offset, bytes);
      auto expected = reference.subspan(offset, bytes);
      if (std::memcmp(line.data(), expected.data(), bytes) == 0) continue;
      if (request_.poisoned.empty() && request_.graph == 0) {
        for (std::size_t i = 0; i < bytes; ++i) varying[at][i] = line[i] != expected[i];
      }
      std::byte masked[kLineBytes];
      if (const auto found = trials_.varying_.find(at); found != trials_.varying_.end()) {
        for (std::size_t i = 0; i < bytes; ++i) masked[i] = found->second[i] ? line[i] : expected[i];
        expected = {masked, bytes};
      }
      const LineFate fate = fate_of(
          line, expected,
          is_poisoned ? std::span<const std::byte>(poison).subspan(offset, bytes) : std::span<const std::byte>());
      if (fate.is_left) left.push_back({at, next});
      if (fate.is_changed) changed.push_back({at, next});
    }
    const std::lock_guard lock(mutex_);
    left_.insert(left_.end(), left.begin(), left.end());
    changed_.insert(changed_.end(), changed.begin(), changed.end());
    varying_.merge(varying);
  }

  LoadedTrials& trials_;
  const TrialRequest& request_;
  std::mutex mutex_;
  std::vector<Dirty> dirty_;
  Spans left_, changed_;
  std::map<std::uint64_t, Line> varying_;
};

absl::StatusOr<std::unique_ptr<Trials>> LoadedTrials::create(const std::string& path,
                                                             const std::vector<std::string>& graphs, ContextRef context,
                                                             BundlePlacement placement) {
  CGRT_ASSIGN_OR_RETURN(Bundle bundle, Bundle::open(path));
  CGRT_ASSIGN_OR_RETURN(const CUcontext handle, context.get());
  std::unique_ptr<internal::AddressSpace> old;
  if (placement == BundlePlacement::kAnywhere) {
    CGRT_ASSIGN_OR_RETURN(old, take_old_addresses(bundle.folder().manifest().blocks, handle));
  }
  CGRT_ASSIGN_OR_RETURN(LoadedBundle loaded, bundle.load(context, {.placement = placement, .graphs = graphs}));
  if (placement == BundlePlacement::kAnywhere) {
    CGRT_RETURN_IF_ERROR(check_elsewhere(bundle.folder().manifest().blocks, loaded.blocks()));
  }
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(handle));
  CGRT_ASSIGN_OR_RETURN(std::unique_ptr<internal::Transfers> transfers, internal::Transfers::create(handle));
  std::unique_ptr<LoadedTrials> trials(new LoadedTrials(std::move(bundle), std::move(old), std::move(loaded),
                                                        std::move(stream), std::move(transfers), graphs));
  CGRT_RETURN_IF_ERROR(trials->read_saved());
  return trials;
}

absl::Status LoadedTrials::read_saved() {
  const std::vector<saved::Block>& blocks = bundle_.folder().manifest().blocks;
  const std::vector<void*> places = loaded_.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (places[i] == nullptr) continue;
    const std::uint64_t begin = blocks[i].address, end = begin + blocks[i].bytes;
    for (std::uint64_t at = begin, next = 0; at < end; at = next) {
      next = std::min(end, (at / saved::kMaxPieceBytes + 1) * saved::kMaxPieceBytes);
      const CUdeviceptr place = reinterpret_cast<CUdeviceptr>(places[i]) + (at - begin);
      chunks_.push_back({place, next - at, blocks[i].kind != ir::MemoryKind::kDevice});
      parts_.push_back({.span = {at, next}, .chunk = chunks_.back()});
    }
  }
  return transfers_->read(chunks_, [this](std::size_t i, std::span<const std::byte> now) {
    if (!internal::is_zero(now)) parts_[i].keep(now);
    return absl::OkStatus();
  });
}

std::span<const std::byte> LoadedTrials::reference_of(const Part& part) const {
  return {part.reference != nullptr ? part.reference.get() : part.content(), part.chunk.bytes};
}

absl::StatusOr<bool> LoadedTrials::set_varied(const Spans& varied) {
  if (varied_ == varied) return true;
  const Spans before = std::exchange(varied_, std::nullopt).value_or(Spans{});
  const Poison poison = {Poison::Fill::kLowestBit};
  for (const Spans* const spans : {&before, &varied}) {  // twice is not at all
    CGRT_RETURN_IF_ERROR(write(poison, *spans));
    for (Part& part : parts_) {
      for (const Span& span : within(*spans, part.span)) {
        if (part.saved == nullptr) part.keep({part.content(), part.chunk.bytes});
        apply(poison, span.begin, {part.saved.get() + (span.begin - part.span.begin), span.bytes()});
      }
    }
  }
  if (!run(0)) return false;
  const TrialRequest no_poison;
  Sweep sweep(*this, no_poison);
  CGRT_RETURN_IF_ERROR(transfers_->read(
      chunks_, [&](std::size_t i, std::span<const std::byte> now) { return sweep.see_reference(i, now); }));
  CGRT_RETURN_IF_ERROR(sweep.restore());
  varied_ = varied;
  return true;
}

absl::Status LoadedTrials::write(const Poison& poison, const Spans& spans) {
  std::vector<internal::Chunk> chunks;
  std::vector<std::pair<const Part*, Spans>> content;
  for (const Part& part : parts_) {
    Spans here = within(spans, part.span);
    if (here.empty()) continue;
    // One copy a part: what is between has its content already.
    chunks.push_back({part.chunk.address + (here.front().begin - part.span.begin), here.back().end - here.front().begin,
                      part.chunk.is_on_host});
    content.emplace_back(&part, std::move(here));
  }
  return transfers_->write(chunks, [&](std::size_t i, std::span<std::byte> out) {
    const auto& [part, here] = content[i];
    const std::uint64_t begin = here.front().begin;
    std::memcpy(out.data(), part->content() + (begin - part->span.begin), out.size());
    for (const Span& span : here) apply(poison, span.begin, out.subspan(span.begin - begin, span.bytes()));
    return absl::OkStatus();
  });
}

bool LoadedTrials::run(std::size_t graph) {
  return loaded_.launch(graphs_[graph], stream_).ok() && stream_.ref().synchronize().ok();
}

absl::StatusOr<Trial> LoadedTrials::replay(const TrialRequest& request) {
  CGRT_ASSIGN_OR_RETURN(const bool is_set, set_varied(request.varied));
  if (!is_set) return Trial{.end = Trial::End::kFault};
  CGRT_RETURN_IF_ERROR(write(request.poison, request.poisoned));
  if (!run(request.graph)) return Trial{.end = Trial::End::kFault};
  Sweep sweep(*this, request);
  CGRT_RETURN_IF_ERROR(
      transfers_->read(chunks_, [&](std::size_t i, std::span<const std::byte> now) { return sweep.see(i, now); }));
  CGRT_RETURN_IF_ERROR(sweep.restore());
  return std::move(sweep).finish();
}

absl::Status LoadedTrials::make_reference() {
  CGRT_ASSIGN_OR_RETURN(const bool is_made, set_varied({}));
  if (is_made) return absl::OkStatus();
  return absl::FailedPreconditionError("a replay from the saved state faults: graphdump play says more");
}

template <class Visit>
void LoadedTrials::visit_units(const std::vector<saved::Range>& ranges, Visit visit) const {
  const saved::Manifest& manifest = bundle_.folder().manifest();
  std::vector<std::byte> bytes;
  for (const saved::Range& range : ranges) {
    const std::uint64_t begin = manifest.blocks[range.block].address + range.offset;
    for (std::uint64_t at = begin; at < begin + range.bytes; at += saved::kExpectedBytes) {
      const std::uint64_t end = std::min(begin + range.bytes, at + saved::kExpectedBytes);
      bytes.assign(end - at, std::byte{});
      auto part = std::upper_bound(parts_.begin(), parts_.end(), at,
                                   [](std::uint64_t address, const Part& one) { return address < one.span.end; });
      for (; part != parts_.end() && part->span.begin < end; ++part) {
        const Span here = {std::max(at, part->span.begin), std::min(end, part->span.end)};
        std::memcpy(&bytes[here.begin - at], reference_of(*part).data() + (here.begin - part->span.begin),
                    here.bytes());
      }
      visit(Span{at, end}, std::span(bytes));
    }
  }
}

absl::StatusOr<Spans> LoadedTrials::unexpected() {
  CGRT_RETURN_IF_ERROR(make_reference());
  const saved::ExpectedMemory& expected = bundle_.folder().find_graph(graphs_[0])->expected;
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, bundle_.folder().read_expected(expected));
  std::vector<CUdeviceptr> addresses;
  for (void* const place : loaded_.blocks()) addresses.push_back(reinterpret_cast<CUdeviceptr>(place));
  const internal::Relocation relocation(bundle_.folder().manifest().blocks, addresses, {});
  Spans unexpected;
  std::size_t next = 0;
  visit_units(expected.ranges, [&](Span unit, std::span<std::byte> bytes) {
    const std::uint64_t hash = hashes[next++];
    if (saved::short_hash_of(bytes) == hash) return;
    relocation.undo(bytes);
    if (saved::short_hash_of(bytes) != hash) unexpected.push_back(unit);
  });
  return unexpected;
}

absl::StatusOr<std::vector<std::uint64_t>> LoadedTrials::hashes(const std::vector<saved::Range>& ranges) {
  CGRT_RETURN_IF_ERROR(make_reference());
  std::vector<std::uint64_t> hashes;
  visit_units(ranges, [&](Span, std::span<std::byte> bytes) { hashes.push_back(saved::short_hash_of(bytes)); });
  return hashes;
}

}  // namespace cgrt
