// Chain: kernels that wait for one another, each scaling an array into the next of a few buffers.
//
//   CGRT_ASSIGN_OR_RETURN(Chain chain, Chain::create(DeviceRef(0), stream.ref(), 1000, 4096));
//   CGRT_RETURN_IF_ERROR(chain.step(stream.ref()));     // eager
//   CGRT_RETURN_IF_ERROR(chain.step(graph.cursor()));   // 1000 nodes
//
// Every run reads the same source, so it gives the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/device/device.h"
#include "cgrt/memory/buffer.h"
#include "cgrt/stream/stream.h"
#include "cgrt/target/launch_target.h"
#include "cgrt_kernels/elementwise/elementwise.h"

class Chain {
 public:
  // `nodes` kernels on arrays of `bytes` bytes (at least 4). Fills the source; synchronizes `stream`.
  static absl::StatusOr<Chain> create(cgrt::DeviceRef device, cgrt::StreamRef stream, std::int64_t nodes,
                                      std::int64_t bytes);

  // The one call site: all kernels of the chain, in order, into any target.
  absl::Status step(cgrt::LaunchTarget target) const;

  // Overwrites what step() writes, so that a result read afterwards was made afterwards.
  absl::Status poison(cgrt::StreamRef stream) const;

  // The bits of the last kernel's output. Synchronizes.
  absl::StatusOr<std::vector<std::uint32_t>> read_result(cgrt::StreamRef stream) const;

  // An error that names the first element (of up to 1024, spread evenly) that differs from the same
  // products taken on the host.
  absl::Status check_on_host(const std::vector<std::uint32_t>& result) const;

 private:
  Chain(cgrt::kernels::ElementwisePlan plan, std::int64_t nodes) : plan_(plan), nodes_(nodes) {}
  float* output_of(std::int64_t node) const;

  cgrt::kernels::ElementwisePlan plan_;
  std::int64_t nodes_;
  std::vector<cgrt::DeviceBuffer> buffers_;  // the source, then those in rotation
};
