// Which memory the nodes of an executable have addresses of, to say before a launch which of it is gone. Internal to
// exec/.
//
// CUDA numbers allocations for as long as the process lives (CU_POINTER_ATTRIBUTE_BUFFER_ID), so that memory which was
// freed and allocated again at the same address is another (driver 580: of cudaMalloc, cudaMallocAsync and
// cudaMallocHost, registered, managed and mapped memory; of a range of virtual memory each mapping has a number). A
// word that is no address that the driver knows when the node gets it is a number, and not looked at again; nor is
// memory of the graph's own allocation nodes. Not thread-safe.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {

class AddressGuard {
 public:
  // Of all nodes of `graph` as they are, those inside of others too.
  static absl::StatusOr<AddressGuard> create(const GraphState& graph);

  // After `node` of the executable was set to `params`; of a child graph node: all that is inside. Where this or
  // follow() fails, nodes are left unguarded.
  absl::Status set(CUgraphNode node, const CUgraphNodeParams& params);
  // A disabled node needs no memory.
  void set_enabled(CUgraphNode node, bool is_enabled);
  // After nodes of a rebindable executable changed: those that `state` has are as it says.
  absl::Status follow(const RebindState& state);
  // After an update of the executable with the graph that `other` is of, which has the same nodes.
  void take(AddressGuard&& other);

  // kFailedPrecondition names a node with an address of memory that is not there any more.
  absl::Status check();

 private:
  struct Address {
    std::uint32_t number;  // of a kernel's argument, or of an operand: see visit_operands
    CUdeviceptr value;
    std::uint64_t buffer_id;
    ir::Allocation memory;
  };
  static constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
  struct Node {
    CUgraphNode handle;
    CUgraphNodeType type;
    std::uint32_t owner;  // the node that it is inside of, or kNoNode
    CUfunction function;  // of a kernel; else null
    std::vector<Address> addresses;
    bool is_enabled = true;
  };
  struct OwnMemory {  // of an allocation node
    CUdeviceptr start;
    std::size_t bytes;
  };
  class Resolver;
  static std::string describe(const Node& node);

  static absl::StatusOr<AddressGuard> read(CUgraph graph, const GraphState* state, CUcontext context,
                                           std::vector<OwnMemory> own);
  bool is_inside(std::uint32_t node, std::uint32_t owner) const;
  void find_distinct();
  [[gnu::cold]] absl::Status explain(std::uint64_t was, std::uint64_t is) const;

  CUcontext context_ = nullptr;
  std::vector<Node> nodes_;  // all, by the ids that a snapshot gives them
  absl::flat_hash_map<CUgraphNode, std::uint32_t> ids_;
  std::vector<OwnMemory> own_memory_;
  std::vector<std::pair<std::uint64_t, CUdeviceptr>> distinct_;  // the buffer ids of all addresses, and one in each
  bool is_distinct_known_ = false;
};

}  // namespace cgrt::internal
