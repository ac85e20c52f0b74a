// Work in several threads. Internal to bundle/.
//
//   Queue queue(chunks.size());
//   const absl::Status status = in_threads(4, [&] { while (const auto i = queue.next()) ...; return absl::OkStatus();
//   });
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace cgrt::internal {

// Numbers from 0, each handed out once. Thread-safe.
class Queue {
 public:
  explicit Queue(std::size_t count) : count_(count) {}
  // nullopt: there is none any more.
  std::optional<std::size_t> next() {
    const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    return i < count_ ? std::optional(i) : std::nullopt;
  }
  void stop() { next_.store(count_, std::memory_order_relaxed); }

 private:
  std::size_t count_;
  std::atomic<std::size_t> next_{0};
};

// Calls `work` in so many threads, of which the caller's is one, or in as many as can be had. Blocks until all have
// returned; the first failure of them.
absl::Status in_threads(std::size_t threads, absl::FunctionRef<absl::Status()> work);

}  // namespace cgrt::internal
