// Parameters of a node as the driver gives them, in the form in which it takes them. Internal to graph/ and exec/.
#pragma once

#include <cuda.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cgrt::internal {

// kUnimplemented: nodes that the driver does not tell all of, as conditional ones, or that own what they name, as
// allocations.
absl::Status cannot_be_copied(CUgraphNodeType type);

// What the driver adds a node like `node` by, which is in a graph of `context`. `params` is zero before. What it points
// to stays the node's. kUnimplemented for kinds that the driver does not tell.
absl::Status read_params(CUgraphNode node, CUgraphNodeType type, CUcontext context, CUgraphNodeParams& params);

// Parameters of which nothing is somebody else's but a kernel's arguments.
struct OwnedParams {
  CUgraphNodeParams params{};
  std::shared_ptr<const void> arrays;  // that `params` point to; null: none
};
OwnedParams own(const CUgraphNodeParams& params);

// How many operations or semaphores a node has; 1 of other kinds.
unsigned count_of(const CUgraphNodeParams& params);

// Whether nodes with them, no kernels, do the same. Both were zero before they were filled.
bool are_equal(const CUgraphNodeParams& a, const CUgraphNodeParams& b);

// Whether a node of an executable, of one type with `wanted` and no kernel, can be set to it: of copies and memsets in
// two dimensions CUDA changes addresses alone, and of memory operations and semaphores not how many.
bool is_same_shape(const CUgraphNodeParams& node, const CUgraphNodeParams& wanted);

// In whose memory the operands of a copy or memset lie, which CUDA does not change in an executable: a device's
// ordinal, or one of the others.
struct OperandPlaces {
  static constexpr int kHost = -1, kArray = -2, kNone = -3;
  int destination = kNone, source = kNone;
  bool operator==(const OperandPlaces&) const = default;
};
absl::StatusOr<OperandPlaces> places_of(const CUgraphNodeParams& params);

// Whether a rebindable executable can leave out a node of that type. Not memsets: with one that the host has disabled
// or enabled, driver 580 was seen to lose what kernels of the graph had changed, or to fail the launch with 719.
inline bool can_be_left_out(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

}  // namespace cgrt::internal
