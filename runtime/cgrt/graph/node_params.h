// Parameters of a node as the driver gives them, in the form in which it takes them. Internal to graph/ and exec/.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

// kUnimplemented: nodes that the driver does not tell all of, as conditional ones, or that own what they name, as
// allocations.
absl::Status cannot_be_copied(CUgraphNodeType type);

// What the driver adds a node like `node` by, which is in a graph of `context`. `params` is zero before. What it points
// to stays the node's. kUnimplemented for kinds that the driver does not tell.
absl::Status read_params(CUgraphNode node, CUgraphNodeType type, CUcontext context, CUgraphNodeParams& params);

CUgraphNodeParams to_params(const CUDA_KERNEL_NODE_PARAMS& kernel);

// Parameters of which nothing is somebody else's but a kernel's arguments.
struct OwnedParams {
  CUgraphNodeParams params{};
  std::shared_ptr<const void> arrays;  // that `params` point to; null: none
};
OwnedParams own(const CUgraphNodeParams& params);

// Where the values of a kernel's parameters stand in the parameter buffer.
absl::StatusOr<std::vector<ir::Parameter>> parameters_of(CUfunction function);

// Calls visit(address, number) for the operands of a node that is no kernel: of a copy or memset its destination (0) or
// source (1), of memory operations that of one of these. `address` is an integer or a pointer. Copies of this library
// have unified addresses; captured ones may name host memory apart.
template <class Params, class Visit>
void visit_operands(Params& params, Visit visit) {
  if (params.type == CU_GRAPH_NODE_TYPE_MEMSET) return visit(params.memset.dst, 0u);
  if (params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
    for (unsigned i = 0; i < params.memOp.count; ++i) {
      auto& operation = params.memOp.paramArray[i];
      const CUstreamBatchMemOpType type = operation.operation;  // barriers and flushes have no address
      const bool is_wait = type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
      const bool is_write = type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
      if (is_wait || is_write) visit(operation.waitValue.address, i);  // where a write has it, too
    }
    return;
  }
  if (params.type != CU_GRAPH_NODE_TYPE_MEMCPY) return;
  auto& copy = params.memcpy.copyParams;
  const auto visit_side = [&](CUmemorytype type, auto& device, auto& host, std::uint32_t operand) {
    if (type == CU_MEMORYTYPE_HOST) {
      visit(host, operand);
    } else if (type != CU_MEMORYTYPE_ARRAY) {
      visit(device, operand);
    }
  };
  visit_side(copy.dstMemoryType, copy.dstDevice, copy.dstHost, 0);
  visit_side(copy.srcMemoryType, copy.srcDevice, copy.srcHost, 1);
}

inline std::uintptr_t to_number(CUdeviceptr address) { return address; }
inline std::uintptr_t to_number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

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
