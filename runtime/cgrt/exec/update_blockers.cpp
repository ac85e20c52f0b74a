#include "cgrt/exec/update_blockers.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/graph/align.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/ir/graph_ir.h"

namespace cgrt::internal {
namespace {

using Path = std::vector<std::size_t>;

// One side: a graph, or one inside of it.
struct Side {
  const GraphState* state = nullptr;  // null: not known
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphNodeType> types;
  absl::flat_hash_map<CUgraphNode, std::size_t> positions;
};

absl::StatusOr<Side> read_side(CUgraph graph, const GraphState* state, std::size_t most) {
  Side side;
  side.state = state;
  CGRT_ASSIGN_OR_RETURN(side.nodes, nodes_of(graph));
  side.nodes.resize(std::min(side.nodes.size(), most));
  for (CUgraphNode node : side.nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    side.positions.emplace(node, side.types.size());
    side.types.push_back(type);
  }
  return side;
}

// What a node waits for, as positions in its graph; ascending.
absl::StatusOr<std::vector<std::tuple<std::size_t, EdgeKind>>> edges_before(const Side& side, std::size_t position) {
  Edges edges;
  CGRT_RETURN_IF_ERROR(add_edges_to(side.nodes[position], edges));
  std::vector<std::tuple<std::size_t, EdgeKind>> before;
  for (std::size_t i = 0; i < edges.from.size(); ++i) {
    const auto from = side.positions.find(edges.from[i]);  // one that was added after the executable is not there
    if (from != side.positions.end()) before.emplace_back(from->second, edge_kind(edges.data[i]));
  }
  std::sort(before.begin(), before.end());
  return before;
}

class Finder {
 public:
  Finder(CUcontext ours, const std::vector<NodeAttributes>& our_attributes, InstantiateFlags flags, CUcontext theirs,
         const std::vector<NodeAttributes>& their_attributes)
      : our_context_(ours),
        their_context_(theirs),
        our_attributes_(our_attributes),
        their_attributes_(their_attributes),
        uses_priorities_((static_cast<unsigned>(flags) & static_cast<unsigned>(InstantiateFlags::kUseNodePriority)) !=
                         0) {}

  absl::Status compare(const GraphState& ours, std::size_t most, const GraphState& theirs, const Path& path) {
    CGRT_ASSIGN_OR_RETURN(const Side here, read_side(ours.handle, &ours, most));
    CGRT_ASSIGN_OR_RETURN(const Side there, read_side(theirs.handle, &theirs, SIZE_MAX));
    return compare_sides(here, there, path);
  }

  std::vector<UpdateBlocker> take() && { return std::move(blockers_); }

 private:
  absl::Status compare_sides(const Side& here, const Side& there, const Path& path) {
    if (here.nodes.size() != there.nodes.size()) return add_missing(here, there, path);
    for (std::size_t i = 0; i < here.nodes.size(); ++i) {
      Path at = path;
      at.push_back(i);
      CGRT_RETURN_IF_ERROR(compare_nodes(here, there, i, at));
    }
    return absl::OkStatus();
  }

  void add(std::optional<CUgraphNode> node, UpdateRefusal refusal, std::string text) {
    blockers_.push_back({node.has_value() ? std::optional(NodeRef(*node)) : std::nullopt, refusal, std::move(text)});
  }
  static std::string name(CUgraphNode node, const Path& path) {
    return absl::StrCat(describe_node(node), " (node ", absl::StrJoin(path, "/"), ")");
  }

  // The nodes that one graph has and the other has not, aligned by what they are.
  absl::Status add_missing(const Side& here, const Side& there, const Path& path) {
    std::vector<std::string> names;
    const auto kinds = [&](const Side& side) {
      std::vector<std::size_t> out;
      for (CUgraphNode node : side.nodes) {
        const std::string what = describe_node(node);
        const auto found = std::find(names.begin(), names.end(), what);
        out.push_back(static_cast<std::size_t>(found - names.begin()));
        if (found == names.end()) names.push_back(what);
      }
      return out;
    };
    const std::vector<std::size_t> ours = kinds(here), theirs = kinds(there);
    std::size_t i = 0, j = 0;
    const auto skip = [&](const Side& side, std::size_t& at, std::size_t until, const char* text) {
      for (; at < until; ++at) {
        Path where = path;
        where.push_back(at);
        add(side.nodes[at], UpdateRefusal::kTopologyChanged, absl::StrCat(name(side.nodes[at], where), text));
      }
    };
    for (const auto& [a, b] : align(ours, theirs)) {
      skip(here, i, a, " is in the executable alone");
      skip(there, j, b, " is in the other graph alone");
      ++i, ++j;
    }
    skip(here, i, here.nodes.size(), " is in the executable alone");
    skip(there, j, there.nodes.size(), " is in the other graph alone");
    return absl::OkStatus();
  }

  absl::Status compare_nodes(const Side& here, const Side& there, std::size_t i, const Path& path) {
    const CUgraphNode node = there.nodes[i];
    if (here.types[i] != there.types[i]) {
      add(node, UpdateRefusal::kNodeTypeChanged,
          absl::StrCat(name(node, path), " is a ", to_string(static_cast<ir::NodeKind>(here.types[i])),
                       " in the executable"));
      return absl::OkStatus();
    }
    CGRT_ASSIGN_OR_RETURN(const auto ours, edges_before(here, i));
    CGRT_ASSIGN_OR_RETURN(const auto theirs, edges_before(there, i));
    if (ours != theirs) {
      add(node, UpdateRefusal::kTopologyChanged,
          absl::StrCat(name(node, path),
                       " waits for other nodes, or by edges of "
                       "another kind"));
    }
    switch (here.types[i]) {
      case CU_GRAPH_NODE_TYPE_KERNEL: return compare_kernels(here.nodes[i], node, path);
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET: return compare_operands(here.nodes[i], node, here.types[i], path);
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
      case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return compare_counts(here.nodes[i], node, here.types[i], path);
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return compare_sizes(here.nodes[i], node, path);
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        CGRT_ASSIGN_OR_RETURN(const CUgraph inside_ours, graph_inside(here.nodes[i]));
        CGRT_ASSIGN_OR_RETURN(const CUgraph inside_theirs, graph_inside(node));
        CGRT_ASSIGN_OR_RETURN(const Side inside_here, read_side(inside_ours, nullptr, SIZE_MAX));
        CGRT_ASSIGN_OR_RETURN(const Side inside_there, read_side(inside_theirs, nullptr, SIZE_MAX));
        return compare_sides(inside_here, inside_there, path);
      }
      case CU_GRAPH_NODE_TYPE_CONDITIONAL: return compare_conditionals(here, there, i, path);
      default: return absl::OkStatus();
    }
  }

  // Null where the graph was adopted: the driver tells nothing of bodies (CUDA 13.0). Child graphs have none.
  static const GraphState::ConditionalNode* conditional_at(const Side& side, std::size_t position) {
    if (side.state == nullptr) return nullptr;
    const auto& all = side.state->conditionals;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.position == position; });
    return found != all.end() ? &*found : nullptr;
  }

  absl::Status compare_conditionals(const Side& here, const Side& there, std::size_t i, const Path& path) {
    const GraphState::ConditionalNode* const ours = conditional_at(here, i);
    const GraphState::ConditionalNode* const theirs = conditional_at(there, i);
    if (ours == nullptr || theirs == nullptr) return absl::OkStatus();
    if (ours->type != theirs->type) {
      add(there.nodes[i], UpdateRefusal::kParametersChanged,
          absl::StrCat(name(there.nodes[i], path), ": its kind is ", to_text(theirs->type), ", in the executable ",
                       to_text(ours->type)));
      return absl::OkStatus();
    }
    if (ours->bodies.size() != theirs->bodies.size()) {
      add(there.nodes[i], UpdateRefusal::kParametersChanged,
          absl::StrCat(name(there.nodes[i], path), ": its number of bodies is ", theirs->bodies.size(),
                       ", in the executable ", ours->bodies.size()));
      return absl::OkStatus();
    }
    for (std::size_t body = 0; body < ours->bodies.size(); ++body) {
      Path at = path;
      at.push_back(body);
      CGRT_RETURN_IF_ERROR(compare(*ours->bodies[body], SIZE_MAX, *theirs->bodies[body], at));
    }
    return absl::OkStatus();
  }

  absl::Status compare_counts(CUgraphNode ours, CUgraphNode theirs, CUgraphNodeType type, const Path& path) {
    CUgraphNodeParams here{}, there{};
    CGRT_RETURN_IF_ERROR(read_params(ours, type, our_context_, here));
    CGRT_RETURN_IF_ERROR(read_params(theirs, type, their_context_, there));
    if (is_same_shape(here, there)) return absl::OkStatus();
    add(theirs, UpdateRefusal::kParametersChanged,
        absl::StrCat(name(theirs, path), " has ",
                     counted(count_of(there), type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? "operation" : "semaphore"),
                     ", in the executable ", count_of(here)));
    return absl::OkStatus();
  }

  absl::Status compare_sizes(CUgraphNode ours, CUgraphNode theirs, const Path& path) {
    CUgraphNodeParams here{}, there{};
    CGRT_RETURN_IF_ERROR(read_params(ours, CU_GRAPH_NODE_TYPE_MEM_ALLOC, our_context_, here));
    CGRT_RETURN_IF_ERROR(read_params(theirs, CU_GRAPH_NODE_TYPE_MEM_ALLOC, their_context_, there));
    if (here.alloc.bytesize == there.alloc.bytesize) return absl::OkStatus();
    add(theirs, UpdateRefusal::kParametersChanged,
        absl::StrCat(name(theirs, path), " has ", counted(there.alloc.bytesize, "byte"), ", in the executable ",
                     here.alloc.bytesize));
    return absl::OkStatus();
  }

  absl::Status compare_kernels(CUgraphNode ours, CUgraphNode theirs, const Path& path) {
    const auto context_of = [](CUgraphNode node) -> absl::StatusOr<CUcontext> {
      CUDA_KERNEL_NODE_PARAMS params{};
      CGRT_RETURN_IF_ERROR(
          driver::to_status(driver::api().GraphKernelNodeGetParams(node, &params), "cuGraphKernelNodeGetParams"));
      return params.ctx;
    };
    CGRT_ASSIGN_OR_RETURN(const CUcontext here, context_of(ours));
    CGRT_ASSIGN_OR_RETURN(const CUcontext there, context_of(theirs));
    if (here != there) {
      add(theirs, UpdateRefusal::kFunctionChanged, absl::StrCat(name(theirs, path), " runs in another context"));
    }
    CGRT_ASSIGN_OR_RETURN(const bool is_updatable, is_device_updatable(theirs));
    if (is_updatable) {
      add(theirs, UpdateRefusal::kNotSupported,
          absl::StrCat(name(theirs, path), " is device-updatable, and CUDA has no whole-graph update with such nodes"));
    }
    const LaunchAttributes was = attributes_at(our_attributes_, path), wanted = attributes_at(their_attributes_, path);
    if (!are_interchangeable(was, wanted) || (uses_priorities_ && was.priority != wanted.priority)) {
      const AttributeDifference differs = first_difference(was, wanted);
      add(theirs, UpdateRefusal::kAttributesChanged,
          absl::StrCat(name(theirs, path), ": its ", differs.name, " is ", differs.wanted, ", in the executable ",
                       differs.was));
    }
    return absl::OkStatus();
  }

  static LaunchAttributes attributes_at(const std::vector<NodeAttributes>& all, const Path& path) {
    const auto found = std::lower_bound(all.begin(), all.end(), path,
                                        [](const NodeAttributes& one, const Path& at) { return one.path < at; });
    return found != all.end() && found->path == path ? found->attributes : LaunchAttributes{};
  }

  absl::Status compare_operands(CUgraphNode ours, CUgraphNode theirs, CUgraphNodeType type, const Path& path) {
    CUgraphNodeParams here{}, there{};
    CGRT_RETURN_IF_ERROR(read_params(ours, type, our_context_, here));
    CGRT_RETURN_IF_ERROR(read_params(theirs, type, their_context_, there));
    if (!is_same_shape(here, there)) {
      add(theirs, UpdateRefusal::kParametersChanged,
          absl::StrCat(name(theirs, path),
                       " has other sizes in two or three dimensions, where CUDA changes addresses "
                       "alone"));
    }
    CGRT_ASSIGN_OR_RETURN(const OperandPlaces was, places_of(here));
    CGRT_ASSIGN_OR_RETURN(const OperandPlaces wanted, places_of(there));
    const auto compare_side = [&](const char* side, int was_in, int wanted_in) {
      if (was_in == wanted_in) return;
      add(theirs, UpdateRefusal::kParametersChanged,
          absl::StrCat(name(theirs, path), ": its ", side, " is ", to_text(wanted_in), ", in the executable ",
                       to_text(was_in)));
    };
    compare_side("destination", was.destination, wanted.destination);
    compare_side("source", was.source, wanted.source);
    return absl::OkStatus();
  }

  static const char* to_text(CUgraphConditionalNodeType type) {
    return to_string(static_cast<ir::ConditionalKind>(type));
  }

  static std::string to_text(int place) {
    if (place == OperandPlaces::kArray) return "an array";
    return place == OperandPlaces::kHost ? "in host memory" : absl::StrCat("in memory of device ", place);
  }

  CUcontext our_context_, their_context_;
  const std::vector<NodeAttributes>& our_attributes_;
  const std::vector<NodeAttributes>& their_attributes_;
  bool uses_priorities_;
  std::vector<UpdateBlocker> blockers_;
};

}  // namespace

absl::StatusOr<std::vector<UpdateBlocker>> find_blockers(const GraphState& ours, std::size_t node_count,
                                                         const std::vector<NodeAttributes>& attributes,
                                                         InstantiateFlags flags, GraphState& theirs) {
  if (has_rebindable(theirs)) {
    return std::vector<UpdateBlocker>{{std::nullopt, UpdateRefusal::kNotSupported,
                                       "the other graph was made rebindable, and CUDA has no whole-graph update with "
                                       "device-updatable nodes"}};
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<NodeAttributes> their_attributes, attributes_in(theirs));
  Finder finder(ours.context, attributes, flags, theirs.context, their_attributes);
  CGRT_RETURN_IF_ERROR(finder.compare(ours, node_count, theirs, {}));
  return std::move(finder).take();
}

}  // namespace cgrt::internal
