// Nodes of a graph and what they wait for.
//
//   CGRT_ASSIGN_OR_RETURN(KernelNode a, graph.add_kernel({}, config, kernel, x, n));
//   CGRT_ASSIGN_OR_RETURN(KernelNode b, graph.add_kernel(after(a), config, kernel, y, n));
//   CGRT_ASSIGN_OR_RETURN(KernelNode c, graph.add_kernel({programmatic(b)}, config, kernel, y, n));
//
// Values; they own nothing and are valid as long as their graph, the one that this was moved into, or an executable
// of either.
#pragma once

#include <cuda.h>

#include <array>

#include "absl/types/span.h"
#include "cgrt/target/launch_target.h"

namespace cgrt {

class NodeRef {
 public:
  explicit NodeRef(CUgraphNode node) : handle_(node) {}
  CUgraphNode get() const { return handle_; }
  bool operator==(const NodeRef&) const = default;

 private:
  CUgraphNode handle_;
};

class KernelNode : public NodeRef {
  using NodeRef::NodeRef;
};
class MemcpyNode : public NodeRef {
  using NodeRef::NodeRef;
};
class MemsetNode : public NodeRef {
  using NodeRef::NodeRef;
};
class EmptyNode : public NodeRef {
  using NodeRef::NodeRef;
};
class HostNode : public NodeRef {
  using NodeRef::NodeRef;
};
class ChildGraphNode : public NodeRef {
  using NodeRef::NodeRef;
};
class EventRecordNode : public NodeRef {
  using NodeRef::NodeRef;
};
class EventWaitNode : public NodeRef {
  using NodeRef::NodeRef;
};
class MemAllocNode : public NodeRef {
  using NodeRef::NodeRef;
};
class MemFreeNode : public NodeRef {
  using NodeRef::NodeRef;
};
class BatchMemOpNode : public NodeRef {
  using NodeRef::NodeRef;
};
class SemaphoreSignalNode : public NodeRef {
  using NodeRef::NodeRef;
};
class SemaphoreWaitNode : public NodeRef {
  using NodeRef::NodeRef;
};
class ConditionalNode : public NodeRef {
  using NodeRef::NodeRef;
};

struct Dependency {
  Dependency(NodeRef node_) : node(node_) {}
  Dependency(KernelNode node_, EdgeKind kind_ = EdgeKind::kFull) : node(node_), kind(kind_), is_kernel(true) {}

  NodeRef node;
  EdgeKind kind = EdgeKind::kFull;
  bool is_kernel = false;  // known to be one, so that a cursor may wait for it programmatically
};

using Dependencies = absl::Span<const Dependency>;

template <class... Nodes>
std::array<Dependency, sizeof...(Nodes)> after(Nodes... nodes) {
  return {Dependency(nodes)...};
}

// The dependent kernel may start when `node` triggers: see EdgeKind.
inline Dependency programmatic(KernelNode node) { return Dependency(node, EdgeKind::kProgrammatic); }

// The dependent may start when all blocks of `node` have begun: see EdgeKind.
inline Dependency launched(KernelNode node) { return Dependency(node, EdgeKind::kLaunchCompletion); }

}  // namespace cgrt
