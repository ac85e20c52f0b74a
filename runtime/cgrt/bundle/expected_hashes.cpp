#include "cgrt/bundle/expected_hashes.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/live_memory.h"
#include "cgrt/bundle/transfer.h"
#include "cgrt/saved/hash.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::internal {
namespace {

absl::StatusOr<bool> is_comparable(const Place& place, LiveMemory& live) {
  if (place.kind == ir::MemoryKind::kPageableHost) return false;
  if (place.module.has_value()) return true;
  CGRT_ASSIGN_OR_RETURN(const LiveRange* const range, live.find(place.start));
  return range != nullptr && range->end() >= place.end();
}

}  // namespace

std::uint64_t hash_count(std::uint64_t bytes) { return (bytes + saved::kExpectedBytes - 1) / saved::kExpectedBytes; }

std::vector<std::uint64_t> hash_bytes(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> hashes;
  while (!bytes.empty()) {
    const std::size_t taken = std::min<std::size_t>(bytes.size(), saved::kExpectedBytes);
    hashes.push_back(saved::short_hash_of(bytes.first(taken)));
    bytes = bytes.subspan(taken);
  }
  return hashes;
}

absl::StatusOr<std::vector<std::uint64_t>> hash_places(CUcontext context, const std::vector<Place>& places) {
  std::vector<Chunk> chunks;
  std::vector<std::size_t> firsts;  // of each chunk the number of its first hash
  std::size_t count = 0;
  for (const Place& place : places) {
    for (std::uint64_t at = 0; at < place.bytes; at += saved::kMaxPieceBytes) {
      const std::uint64_t bytes = std::min(saved::kMaxPieceBytes, place.bytes - at);
      chunks.push_back({place.start + at, bytes, place.kind == ir::MemoryKind::kPageableHost});
      firsts.push_back(count);
      count += hash_count(bytes);
    }
  }
  std::vector<std::uint64_t> hashes(count);
  const auto see = [&](std::size_t i, std::span<const std::byte> bytes) {
    const std::vector<std::uint64_t> of_chunk = hash_bytes(bytes);
    std::copy(of_chunk.begin(), of_chunk.end(), hashes.begin() + static_cast<std::ptrdiff_t>(firsts[i]));
    return absl::OkStatus();
  };
  CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Transfers> transfers, Transfers::create(context));
  CGRT_RETURN_IF_ERROR(transfers->read(chunks, see));
  return hashes;
}

absl::StatusOr<std::vector<MemoryRange>> find_changes(CUcontext context, const std::vector<Place>& places,
                                                      const std::vector<std::uint64_t>& hashes) {
  std::vector<Place> compared;
  std::vector<std::uint64_t> before;  // of these
  LiveMemory live;
  const std::uint64_t* next = hashes.data();
  for (const Place& place : places) {
    const std::uint64_t* const first = std::exchange(next, next + hash_count(place.bytes));
    CGRT_ASSIGN_OR_RETURN(const bool is_there, is_comparable(place, live));
    if (!is_there) continue;
    compared.push_back(place);
    before.insert(before.end(), first, next);
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> now, hash_places(context, compared));
  std::vector<MemoryRange> changes;
  std::size_t i = 0;
  for (const Place& place : compared) {
    for (std::uint64_t at = 0; at < place.bytes; at += saved::kExpectedBytes, ++i) {
      if (now[i] == before[i]) continue;
      const std::uint64_t bytes = std::min(saved::kExpectedBytes, place.bytes - at);
      const bool goes_on =
          at != 0 && !changes.empty() && changes.back().address + changes.back().bytes == place.start + at;
      if (goes_on) {
        changes.back().bytes += bytes;
      } else {
        changes.push_back({place.start + at, bytes});
      }
    }
  }
  return changes;
}

}  // namespace cgrt::internal
