#include "cgrt/bundle/build_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/ir/describe.h"
#include "cgrt/launch/launch.h"
#include "cgrt/launch/library.h"
#include "cgrt/memory/memory_op.h"

namespace cgrt::internal {
namespace {

Dim3 dim(const ir::Dim3& size) { return Dim3(size.x, size.y, size.z); }

std::string size_text(std::size_t parameters, std::size_t bytes) {
  return absl::StrCat(counted(parameters, "parameter"), " in ", counted(bytes, "byte"));
}

class Builder {
 public:
  Builder(const GraphParts& parts, ContextRef context)
      : parts_(parts), ir_(parts.graph), context_(context), nodes_(ir_.nodes.size(), NodeRef(nullptr)) {
    std::size_t kernels = 0;
    for (std::uint32_t id = 0; id < ir_.nodes.size(); ++id) {
      if (ir_.nodes[id].kind == ir::NodeKind::kKernel) kernel_of_[id] = parts.saved.node_kernels[kernels++];
    }
    for (const saved::Slices& slices : parts.saved.slices) slices_of_[slices.node] = &slices;
    for (std::uint32_t i = 0; i < ir_.bodies.size(); ++i) body_of_[ir_.bodies[i].owner] = i + 1;
    before_.resize(ir_.nodes.size());
    late_.resize(ir_.bodies.size() + 1);
    for (const ir::Edge& edge : ir_.edges) {
      if (edge.from < edge.to) {
        before_[edge.to].push_back(&edge);
      } else {
        late_[ir_.nodes[edge.to].body].push_back(&edge);
      }
    }
  }

  // Bodies come before the graphs that they are inside of.
  absl::StatusOr<Graph> build() {
    bodies_.resize(ir_.bodies.size() + 1);
    auto end = static_cast<std::uint32_t>(ir_.nodes.size());  // of the nodes of a body: they ascend by it
    for (std::size_t body = bodies_.size(); body-- > 0;) {
      CGRT_ASSIGN_OR_RETURN(bodies_[body], Graph::create(context_));
      std::uint32_t first = end;
      while (first > 0 && ir_.nodes[first - 1].body == body) --first;
      for (std::uint32_t id = first; id < end; ++id) {
        const absl::Status status = add(id, bodies_[body]);
        if (!status.ok()) return driver::annotate(status, ir::node_label(ir_, id));
      }
      end = first;
      for (const ir::Edge* const edge : late_[body]) {
        CGRT_ASSIGN_OR_RETURN(const Dependency from, dependency(*edge));
        CGRT_RETURN_IF_ERROR(bodies_[body].add_edge(from, nodes_[edge->to]));
      }
    }
    return std::move(bodies_[0]);
  }

 private:
  absl::StatusOr<Dependency> dependency(const ir::Edge& edge) const {
    const NodeRef from = nodes_[edge.from];
    const bool is_full = edge.type == ir::EdgeType::kFull;
    if (edge.to_port == 0 && edge.from_port == 0 && is_full) return Dependency(from);
    const bool is_of_kernel = ir_.nodes[edge.from].kind == ir::NodeKind::kKernel && edge.to_port == 0;
    if (is_of_kernel && !is_full && edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC) {
      return programmatic(KernelNode(from.get()));
    }
    if (is_of_kernel && is_full && edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) {
      return launched(KernelNode(from.get()));
    }
    return absl::UnimplementedError(absl::StrCat("The edge from ", ir::node_label(ir_, edge.from), " to ",
                                                 ir::node_label(ir_, edge.to), " is ", to_string(edge.type),
                                                 " and has the ports ", edge.from_port, " and ", edge.to_port,
                                                 ", which cannot be replayed."));
  }

  CUdeviceptr address_of(const ir::Pointer& pointer) const {
    const saved::Range& range = parts_.saved.allocations[pointer.allocation];
    return parts_.addresses[range.block] + range.offset + pointer.offset;
  }
  void* pointer_to(const ir::Pointer& pointer) const { return reinterpret_cast<void*>(address_of(pointer)); }

  absl::Status add(std::uint32_t id, Graph& graph) {
    const ir::Node& node = ir_.nodes[id];
    std::vector<Dependency> before;
    for (const ir::Edge* const edge : before_[id]) {
      CGRT_ASSIGN_OR_RETURN(const Dependency from, dependency(*edge));
      before.push_back(from);
    }
    const auto note = [&](const auto& added) -> absl::Status {
      if (!added.ok()) return added.status();
      nodes_[id] = NodeRef(added->get());
      return absl::OkStatus();
    };
    switch (node.kind) {
      case ir::NodeKind::kKernel: return note(add_kernel(id, graph, before));
      case ir::NodeKind::kMemcpy: return note(add_copy(id, graph, before));
      case ir::NodeKind::kMemset: return note(add_fill(id, graph, before));
      case ir::NodeKind::kChildGraph: return note(add_child(id, graph, before));
      case ir::NodeKind::kEmpty:
      case ir::NodeKind::kEventRecord:
      case ir::NodeKind::kMemAlloc:
      case ir::NodeKind::kMemFree: return note(graph.add_empty(before));
      case ir::NodeKind::kBatchMemOp: return note(add_memory_ops(id, graph, before));
      default: return cannot_be_replayed(node);
    }
  }

  static absl::Status cannot_be_replayed(const ir::Node& node) {
    return absl::UnimplementedError(
        absl::StrCat("A node of the kind \"", to_string(node.kind), "\" with these parameters cannot be replayed."));
  }

  absl::StatusOr<KernelNode> add_kernel(std::uint32_t id, Graph& graph, Dependencies before) const {
    const auto& saved = std::get<ir::KernelParams>(ir_.nodes[id].params);
    const KernelRef kernel = parts_.kernels[kernel_of_.at(id)];
    const std::vector<KernelParameter> parameters = parameters_of(kernel);
    CGRT_RETURN_IF_ERROR(check_parameters(ir_.functions[saved.function], parameters));
    std::vector<std::uint8_t> buffer = saved.arguments;
    for (const auto& [at, pointer] : saved.pointers) {
      const CUdeviceptr address = address_of(pointer);
      std::memcpy(buffer.data() + at, &address, sizeof(address));
    }
    std::vector<void*> arguments;
    arguments.reserve(parameters.size());
    for (const KernelParameter& parameter : parameters) arguments.push_back(buffer.data() + parameter.offset);
    const LaunchConfig config{.grid = dim(saved.grid),
                              .block = dim(saved.block),
                              .shared_bytes = saved.shared_bytes,
                              .attributes = attributes_of(saved.attributes)};
    return graph.add_kernel(before, kernel_launch(config, kernel.identity(), arguments.data()));
  }

  // A kernel would read past a buffer that is too short, and from wrong places in one of another layout.
  static absl::Status check_parameters(const ir::Function& saved, const std::vector<KernelParameter>& in_code) {
    const bool is_same = std::equal(
        saved.parameters.begin(), saved.parameters.end(), in_code.begin(), in_code.end(),
        [](const ir::Parameter& a, const KernelParameter& b) { return a.offset == b.offset && a.size == b.bytes; });
    if (is_same) return absl::OkStatus();
    const auto bytes_of = [](const auto& parameters, auto end_of) {
      return parameters.empty() ? std::size_t{0} : end_of(parameters.back());
    };
    const std::size_t here =
        bytes_of(saved.parameters, [](const auto& one) { return std::size_t{one.offset} + one.size; });
    const std::size_t there = bytes_of(in_code, [](const auto& one) { return one.offset + one.bytes; });
    return absl::InvalidArgumentError(absl::StrCat("The graph has ", size_text(saved.parameters.size(), here),
                                                   " for it, and its code takes ", size_text(in_code.size(), there),
                                                   ", or the same elsewhere: the code is of another build."));
  }

  LaunchAttributes attributes_of(const ir::LaunchAttributes& saved) const {
    LaunchAttributes out;
    out.cooperative = saved.cooperative;
    out.cluster = dim(saved.cluster);
    out.preferred_cluster = dim(saved.preferred_cluster);
    out.cluster_scheduling = static_cast<ClusterScheduling>(saved.cluster_scheduling);
    out.priority = saved.priority;
    out.mem_sync_domain = saved.is_remote_domain ? MemSyncDomain::kRemote : MemSyncDomain::kDefault;
    out.shared_carveout_percent = static_cast<int>(saved.shared_carveout_percent);
    if (const ir::AccessPolicyWindow& window = saved.access_policy; window.bytes != 0) {
      out.access_policy = {pointer_to(window.base), window.bytes, window.hit_ratio,
                           static_cast<AccessProperty>(window.hit), static_cast<AccessProperty>(window.miss)};
    }
    return out;
  }

  absl::StatusOr<MemcpyNode> add_copy(std::uint32_t id, Graph& graph, Dependencies before) const {
    const auto* const saved = std::get_if<ir::MemcpyParams>(&ir_.nodes[id].params);
    if (saved == nullptr || !saved->destination.has_value() || !saved->source.has_value()) {
      return absl::UnimplementedError("A copy from or to an array cannot be replayed.");
    }
    CopyParams copy{.destination = pointer_to(*saved->destination),
                    .source = pointer_to(*saved->source),
                    .bytes = saved->width_bytes,
                    .height = saved->height,
                    .depth = saved->depth,
                    .destination_pitch = saved->destination_pitch,
                    .source_pitch = saved->source_pitch};
    if (const auto slices = slices_of_.find(id); slices != slices_of_.end()) {
      copy.destination_rows = slices->second->destination_rows;
      copy.source_rows = slices->second->source_rows;
    }
    return graph.add_copy(before, copy);
  }

  absl::StatusOr<MemsetNode> add_fill(std::uint32_t id, Graph& graph, Dependencies before) const {
    const auto* const saved = std::get_if<ir::MemsetParams>(&ir_.nodes[id].params);
    if (saved == nullptr) return cannot_be_replayed(ir_.nodes[id]);
    return graph.add_fill(before, FillParams{.destination = pointer_to(saved->destination),
                                             .value = saved->value,
                                             .element_bytes = saved->element_bytes,
                                             .count = saved->width,
                                             .height = saved->height,
                                             .pitch = saved->pitch});
  }

  absl::StatusOr<ChildGraphNode> add_child(std::uint32_t id, Graph& graph, Dependencies before) {
    const auto body = body_of_.find(id);
    if (body == body_of_.end()) return absl::UnimplementedError("What is inside of the child graph was not saved.");
    return graph.add_child(before, std::move(bodies_[body->second]));
  }

  absl::StatusOr<BatchMemOpNode> add_memory_ops(std::uint32_t id, Graph& graph, Dependencies before) const {
    const auto* const saved = std::get_if<ir::BatchMemOpParams>(&ir_.nodes[id].params);
    if (saved == nullptr || saved->operations.empty()) return cannot_be_replayed(ir_.nodes[id]);
    std::vector<MemoryOp> ops;
    for (const ir::MemOp& op : saved->operations) {
      ops.push_back({static_cast<MemoryOp::Kind>(op.kind), pointer_to(op.address), op.value, op.bytes});
    }
    return graph.add_memory_ops(before, ops);
  }

  const GraphParts& parts_;
  const ir::GraphIr& ir_;
  ContextRef context_;
  std::vector<NodeRef> nodes_;
  std::vector<Graph> bodies_;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> kernel_of_, body_of_;  // by node
  absl::flat_hash_map<std::uint32_t, const saved::Slices*> slices_of_;
  std::vector<std::vector<const ir::Edge*>> before_;  // by the node that waits
  std::vector<std::vector<const ir::Edge*>> late_;    // by body: from nodes that are made after those that wait
};

}  // namespace

absl::StatusOr<Graph> build_graph(const GraphParts& parts, ContextRef context) {
  return Builder(parts, context).build();
}

}  // namespace cgrt::internal
