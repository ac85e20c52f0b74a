// Resources that graphs and host functions own: the driver lets each go after its last use, and they die in
// collect_released, since the driver's own thread may not call CUDA.
//
//   CGRT_RETURN_IF_ERROR(graph.keep(std::move(scratch)));   // a buffer that the graph's kernels use
//   exec = GraphExec();
//   graph = Graph();
//   const std::size_t freed = collect_released();           // 1, once no launch is in flight
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "cgrt/stream/event.h"

namespace cgrt {

// Lets go of what graphs kept and no longer need (Graph::keep), and of host functions that have returned; returns how
// many of both. Called by create, clone, capture, instantiate, update and rebind. Thread-safe.
[[gnu::visibility("hidden")]] inline std::size_t collect_released();

namespace internal {

extern std::atomic<bool> any_released;
std::size_t collect_all_released();

// Grows with each resource that a graph of whatever thread is given.
extern std::atomic<std::uint64_t> kept_count;

// Its executables launch slower, as the driver counts their launches in flight: by 1.6 us on an H200.
absl::Status keep_in_graph(CUgraph graph, std::shared_ptr<const void> resource);

// A host function of an eager stream that has returned, from the driver's thread. Owns it.
void give_back_function(std::function<void()>* function);
// Lets go of these alone: what graphs kept may be of somebody who is not ready to wait for it.
void collect_functions();

// Lets go of `resource` in a collect_released after `event` is complete.
void keep_until(Event event, std::shared_ptr<const void> resource);

}  // namespace internal

inline std::size_t collect_released() {
  return internal::any_released.load(std::memory_order_acquire) ? internal::collect_all_released() : 0;
}

}  // namespace cgrt
