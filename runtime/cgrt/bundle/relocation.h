// Addresses in the memory of a bundle whose blocks are elsewhere than they were saved. Internal to bundle/.
//
//   const Relocation relocation(blocks, addresses, words);
//   CGRT_RETURN_IF_ERROR(relocation.apply(piece.range, bytes));   // what is to be put there
//
// Thread-safe.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::internal {

class Relocation {
 public:
  Relocation() = default;  // nothing is elsewhere
  // `addresses`: where the blocks are now; 0: nowhere. `words`: those that are addresses.
  Relocation(const std::vector<saved::Block>& blocks, const std::vector<CUdeviceptr>& addresses,
             std::vector<saved::AddressWord> words);

  // Whether a block that is loaded is not where it was.
  bool has_moved() const { return has_moved_; }

  // Turns the addresses in what was saved of `range` to what they are now. kFailedPrecondition: one is of a variable
  // that is not loaded.
  absl::Status apply(const saved::Range& range, std::span<std::byte> bytes) const;
  // Turns all words that are addresses now to what they were; the first byte has an address that is a multiple of 8.
  void undo(std::span<std::byte> bytes) const;

 private:
  struct Place {
    std::uint64_t from = 0, bytes = 0, to = 0;
    std::uint32_t block = 0;
  };
  // That `address` is in, or at whose end it is; null: none.
  static const Place* find(const std::vector<Place>& places, std::uint64_t address);

  std::vector<Place> forward_, backward_;  // by `from`
  std::vector<saved::AddressWord> words_;  // ascending
  bool has_moved_ = false;
};

}  // namespace cgrt::internal
