// The launch attributes of a graph's kernel nodes, and its child graph nodes. CUDA silently keeps some old attributes
// when an executable is updated; this table is what the update compares to notice it. Internal to graph/ and exec/.
//
// This library knows the attributes of its own launches. For the other nodes (of adopted graphs, and of captured ones
// in which others made nodes too) the driver is asked when they are needed, which takes 0.3 us a node on an H200.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cgrt/driver/kernel_identity.h"
#include "cgrt/target/capture_context.h"
#include "cgrt/target/launch_attributes.h"

namespace cgrt::internal {

struct GraphState;

// A kernel node whose attributes are not the defaults. `path` is its position (cuGraphGetNodes lists nodes in the
// order of their creation), after those of the nodes that it is inside of: child graph nodes, and conditional ones,
// each followed by the number of the body.
struct NodeAttributes {
  std::vector<std::size_t> path;
  CUgraphNode node;
  LaunchAttributes attributes;  // in normal form
};

struct ChildNode {
  std::vector<std::size_t> path;
  CUgraphNode node;
  std::vector<CUgraphNode> inside;  // by position
};

struct NodeTable {
  std::vector<NodeAttributes> attributes;  // ascending by path
  std::vector<ChildNode> children;         // each after those that it is inside of
};

// Until it is let go, no executable has NodeKnowledge::complete() read a driver graph: for an owner that changes one
// without having completed it.
std::unique_lock<std::mutex> hold_completion();

// What is known of the nodes of one driver graph, without those of the children and bodies that this library put in.
class NodeKnowledge {
 public:
  // Everything, of a graph that is built node by node: what add() is told. Else:
  void know_nothing() { is_complete_.store(false, std::memory_order_relaxed); }
  CapturedNodes& know_captured() {  // what is noted there while it is captured
    is_captured_ = true;
    is_complete_.store(false, std::memory_order_relaxed);
    return captured_;
  }
  // As much as `original` does, of its copy by the driver, whose nodes are `nodes` when there are any to name.
  absl::Status know_as(const NodeKnowledge& original, const std::vector<CUgraphNode>& nodes);

  bool is_complete() const { return is_complete_.load(std::memory_order_acquire); }
  // Asks the driver if need be. Thread-safe; `graph` must not be changed before it has returned once.
  absl::Status complete(CUgraph graph);
  // For a graph that is_complete() and has copies of captured nodes from position `first` on.
  absl::Status add_captured(CUgraph graph, CapturedNodes captured, std::size_t first);

  // For a node that was just made, of a graph that is_complete().
  void add(std::size_t position, CUgraphNode node, const LaunchAttributes& attributes);

  // For a graph that is_complete(): the node at that position is gone.
  void remove(std::size_t position);

  // For a graph that is_complete(). Thread-safe.
  NodeTable table() const;
  // The same as it was before the first remove(), with the nodes that were added until then.
  NodeTable first_table() const;
  bool is_empty() const { return is_empty_.load(std::memory_order_acquire); }  // the table

 private:
  void set_table(NodeTable table);

  std::atomic<bool> is_complete_{true}, is_empty_{true};
  bool is_captured_ = false;
  CapturedNodes captured_;
  std::unique_ptr<NodeTable> table_;  // null: empty. Behind a mutex: executables read it while their graph grows
  std::unique_ptr<const NodeTable> first_table_;  // null: none was removed
};

// What need not be asked again of kernels of one device, as long as none of their code is unloaded.
struct AskedAttributes {
  absl::flat_hash_map<CUfunction, Dim3> compiled_clusters;
  bool has_preferred_clusters = true;  // the device, as far as is known
};

// In normal form, as the driver has them.
absl::StatusOr<LaunchAttributes> attributes_of(CUgraphNode kernel, AskedAttributes& asked);

// Of a graph and of all that is inside of it.
absl::StatusOr<std::vector<NodeAttributes>> attributes_in(GraphState& state);
absl::StatusOr<NodeTable> node_table(GraphState& state);
// Takes the nodes from position `count` on out of the table: those made later.
void drop_from(NodeTable& table, std::size_t count);

}  // namespace cgrt::internal
