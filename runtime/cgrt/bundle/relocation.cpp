#include "cgrt/bundle/relocation.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace cgrt::internal {

Relocation::Relocation(const std::vector<saved::Block>& blocks, const std::vector<CUdeviceptr>& addresses,
                       std::vector<saved::AddressWord> words)
    : words_(std::move(words)) {
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    forward_.push_back({blocks[i].address, blocks[i].bytes, addresses[i], i});
    if (addresses[i] == 0) continue;
    backward_.push_back({addresses[i], blocks[i].bytes, blocks[i].address, i});
    has_moved_ = has_moved_ || addresses[i] != blocks[i].address;
  }
  std::sort(backward_.begin(), backward_.end(), [](const Place& a, const Place& b) { return a.from < b.from; });
}

const Relocation::Place* Relocation::find(const std::vector<Place>& places, std::uint64_t address) {
  const auto after = std::upper_bound(places.begin(), places.end(), address,
                                      [](std::uint64_t value, const Place& place) { return value < place.from; });
  if (after == places.begin()) return nullptr;
  const Place& place = *std::prev(after);
  return address - place.from <= place.bytes ? &place : nullptr;
}

absl::Status Relocation::apply(const saved::Range& range, std::span<std::byte> bytes) const {
  const std::uint64_t end = range.offset + range.bytes;
  auto word = std::lower_bound(words_.begin(), words_.end(), saved::AddressWord{range.block, range.offset});
  for (; word != words_.end() && word->block == range.block && word->offset + saved::kAddressBytes <= end; ++word) {
    std::byte* const at = bytes.data() + (word->offset - range.offset);
    std::uint64_t address = 0;
    std::memcpy(&address, at, sizeof(address));
    const Place* const place = find(forward_, address);
    if (place == nullptr) continue;  // another graph has an address there
    if (place->to == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("Memory ", range.block, " of the bundle has at byte ", word->offset, " the address of memory ",
                       place->block, ", a variable that no graph to be loaded names. Load all graphs of the bundle."));
    }
    address = place->to + (address - place->from);
    std::memcpy(at, &address, sizeof(address));
  }
  return absl::OkStatus();
}

void Relocation::undo(std::span<std::byte> bytes) const {
  for (std::size_t at = 0; at + saved::kAddressBytes <= bytes.size(); at += saved::kAddressBytes) {
    std::uint64_t address = 0;
    std::memcpy(&address, bytes.data() + at, sizeof(address));
    const Place* const place = find(backward_, address);
    if (place == nullptr) continue;
    address = place->to + (address - place->from);
    std::memcpy(bytes.data() + at, &address, sizeof(address));
  }
}

}  // namespace cgrt::internal
