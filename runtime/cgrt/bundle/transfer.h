// Memory written and read in pieces, by several threads where there is much of it. Internal to bundle/.
//
//   CGRT_ASSIGN_OR_RETURN(const std::unique_ptr<Transfers> transfers, Transfers::create(context));
//   const std::vector<Chunk> chunks = ...;
//   CGRT_RETURN_IF_ERROR(transfers->read(chunks, [&](std::size_t i, std::span<const std::byte> bytes) {...}));
//
// All go through one stream, whatever the threads. With a stream for each thread of each call, graphs ran slower for
// good after the second restore of a process: a training step took 303 us in place of 283 (H100, driver 580). Streams,
// copies, threads or pinned memory alone did not do that; why it is so is not known.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/event.h"
#include "cgrt/stream/stream.h"

namespace cgrt::internal {

struct Chunk {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;  // some megabytes at most: so much pinned memory is taken for it
  bool is_on_host = false;
};

class Transfers {
 public:
  static absl::StatusOr<std::unique_ptr<Transfers>> create(CUcontext context);
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // These block until all is done, and return the first error of all. Callbacks are called by several threads at once,
  // in no order, once for each chunk unless one fails. Calls must not overlap. `fill` writes what is to be there.
  absl::Status write(std::span<const Chunk> chunks,
                     absl::FunctionRef<absl::Status(std::size_t, std::span<std::byte>)> fill);
  absl::Status read(std::span<const Chunk> chunks,
                    absl::FunctionRef<absl::Status(std::size_t, std::span<const std::byte>)> see);
  absl::Status write_zeros(std::span<const Chunk> chunks);  // of any size

 private:
  // Where a thread has its chunks on the way.
  struct Lane {
    PinnedBuffer staging = {};
    Event copied = {};  // behind the copy that uses it
    std::span<std::byte> part(std::size_t bytes) const { return {staging.as<std::byte>(), bytes}; }
  };

  Transfers(CUcontext context, Stream stream) : context_(context), stream_(std::move(stream)) {}
  template <class Work>
  absl::Status for_each(std::span<const Chunk> chunks, const Work& work);
  absl::StatusOr<Lane> take_lane(std::size_t bytes);

  CUcontext context_;
  Stream stream_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;  // that no thread has; kept for the next call
};

// Whether all bytes are 0.
bool is_zero(std::span<const std::byte> bytes);

}  // namespace cgrt::internal
