#include "cgrt/bundle/transfer.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "cgrt/base/status_macros.h"
#include "cgrt/bundle/threads.h"
#include "cgrt/memory/copy.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {
namespace {

// 8 threads with one buffer of 4 MB each read files, hash and copy 22 GB/s to an H100, with two buffers each 23 GB/s;
// pinning these takes 16 and 34 ms.
constexpr std::size_t kMaxThreads = 8;
constexpr std::size_t kBytesPerThread = std::size_t{16} << 20;  // below, a thread costs more than it saves

std::byte* pointer_to(const Chunk& chunk) { return reinterpret_cast<std::byte*>(chunk.address); }

}  // namespace

absl::StatusOr<std::unique_ptr<Transfers>> Transfers::create(CUcontext context) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(context));
  return std::unique_ptr<Transfers>(new Transfers(context, std::move(stream)));
}

absl::StatusOr<Transfers::Lane> Transfers::take_lane(std::size_t bytes) {
  Lane lane;
  {
    const std::lock_guard lock(mutex_);
    if (!lanes_.empty()) {
      lane = std::move(lanes_.back());
      lanes_.pop_back();
    }
  }
  if (lane.copied.ref().get() == nullptr) {
    CGRT_ASSIGN_OR_RETURN(lane.copied, Event::create(context_));
  }
  if (lane.staging.size_bytes() < bytes) {
    CGRT_ASSIGN_OR_RETURN(lane.staging, PinnedBuffer::create(context_, bytes));
  }
  return lane;
}

// Calls work(chunk number, lane) for each chunk, in as many threads as they are worth.
template <class Work>
absl::Status Transfers::for_each(std::span<const Chunk> chunks, const Work& work) {
  std::size_t all = 0, largest = 0;
  for (const Chunk& chunk : chunks) {
    all += chunk.bytes;
    if (!chunk.is_on_host) largest = std::max(largest, chunk.bytes);
  }
  Queue queue(chunks.size());
  const auto run = [&]() -> absl::Status {
    RelaxedCaptureMode relaxed;  // pinning memory would end captures
    CGRT_RETURN_IF_ERROR(relaxed.status());
    CGRT_ASSIGN_OR_RETURN(Lane lane, take_lane(largest));
    absl::Status status;
    for (auto i = queue.next(); i.has_value() && status.ok(); i = queue.next()) status = work(*i, lane);
    if (!status.ok()) queue.stop();
    status.Update(lane.copied.ref().synchronize());  // the buffer is in use until then
    const std::lock_guard lock(mutex_);
    lanes_.push_back(std::move(lane));
    return status;
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const absl::Status status = in_threads(std::min({kMaxThreads, cores, all / kBytesPerThread + 1}), run);
  if (!status.ok()) stream_.ref().synchronize().IgnoreError();  // of a copy behind which no event was recorded
  return status;
}

absl::Status Transfers::write(std::span<const Chunk> chunks,
                              absl::FunctionRef<absl::Status(std::size_t, std::span<std::byte>)> fill) {
  if (chunks.empty()) return absl::OkStatus();
  return for_each(chunks, [&](std::size_t i, const Lane& lane) -> absl::Status {
    const Chunk& chunk = chunks[i];
    if (chunk.is_on_host) return fill(i, {pointer_to(chunk), chunk.bytes});
    CGRT_RETURN_IF_ERROR(lane.copied.ref().synchronize());  // the copy before
    CGRT_RETURN_IF_ERROR(fill(i, lane.part(chunk.bytes)));
    CGRT_RETURN_IF_ERROR(copy(stream_, pointer_to(chunk), lane.staging.data(), chunk.bytes));
    return stream_.ref().record(lane.copied);
  });
}

absl::Status Transfers::read(std::span<const Chunk> chunks,
                             absl::FunctionRef<absl::Status(std::size_t, std::span<const std::byte>)> see) {
  if (chunks.empty()) return absl::OkStatus();
  return for_each(chunks, [&](std::size_t i, const Lane& lane) -> absl::Status {
    const Chunk& chunk = chunks[i];
    if (chunk.is_on_host) return see(i, {pointer_to(chunk), chunk.bytes});
    CGRT_RETURN_IF_ERROR(copy(stream_, lane.staging.data(), pointer_to(chunk), chunk.bytes));
    CGRT_RETURN_IF_ERROR(stream_.ref().record(lane.copied));
    CGRT_RETURN_IF_ERROR(lane.copied.ref().synchronize());
    return see(i, lane.part(chunk.bytes));
  });
}

absl::Status Transfers::write_zeros(std::span<const Chunk> chunks) {
  absl::Status status;
  for (const Chunk& chunk : chunks) {
    if (chunk.is_on_host) {
      std::memset(pointer_to(chunk), 0, chunk.bytes);
    } else if (status.ok()) {
      status = fill8(stream_, pointer_to(chunk), 0, chunk.bytes);
    }
  }
  status.Update(stream_.ref().synchronize());  // the memory is in use until then
  return status;
}

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace cgrt::internal
