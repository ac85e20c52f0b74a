// How a RebindState gets to know the nodes of its graph.
#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/rebind_state.h"
#include "cgrt/exec/variants.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/launch/function_name.h"

namespace cgrt::internal {
namespace {

using driver::NodeWord;

constexpr std::uint16_t kWordBytes = 8;

// Whether a call of a target makes such nodes, beside kernels.
bool is_made_by_calls(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return true;
    default: return false;
  }
}

absl::Status set_updatable(CUgraphNode node, CUgraphDeviceNode* device_node) {
  CUlaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  const absl::Status status = driver::to_status(
      driver::api().GraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
      "cuGraphKernelNodeSetAttribute");
  if (!status.ok()) return driver::annotate(status, absl::StrCat("Making ", describe_node(node), " device-updatable"));
  *device_node = value.deviceUpdatableKernelNode.devNode;
  return absl::OkStatus();
}

// The patch kernels of executables before, of the graph or of graphs that were moved into it.
void add_earlier_patches(const GraphState& graph, std::vector<CUgraphNode>& nodes) {
  nodes.insert(nodes.end(), graph.patch_nodes.begin(), graph.patch_nodes.end());
  for (const GraphState::Child& child : graph.children) add_earlier_patches(*child.state, nodes);
}

absl::Status check_context(std::uint32_t id, CUgraphNode node, CUcontext context, CUcontext graph) {
  if (context == graph) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(context).device());
  CGRT_ASSIGN_OR_RETURN(const DeviceRef ours, ContextRef(graph).device());
  if (device.ordinal() == ours.ordinal()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("Node ", id, " (", describe_node(node), ") runs on device ",
                                                    device.ordinal(), ", the graph on device ", ours.ordinal(),
                                                    ": a rebindable executable runs on one."));
}

}  // namespace

absl::StatusOr<RebindState> RebindState::read_nodes(GraphState& graph) {
  static std::atomic<std::uint64_t> last_id{0};
  RebindState state;
  state.id_ = ++last_id;
  state.context_ = graph.context;
  state.has_alternatives_ = graph.has_alternatives;
  CGRT_RETURN_IF_ERROR(graph.knowledge.complete(graph.handle));
  add_earlier_patches(graph, state.earlier_patches_);
  CGRT_RETURN_IF_ERROR(state.add_nodes(graph.handle, graph));
  CGRT_RETURN_IF_ERROR(state.add_bodies(graph));
  CGRT_ASSIGN_OR_RETURN(const NodeTable table, node_table(graph));
  for (const NodeAttributes& one : table.attributes) {
    const auto found = state.positions_.find(one.node);
    if (found != state.positions_.end()) state.nodes_[found->second].attributes = one.attributes;
  }
  for (CUgraphNode node : graph.left_out_at_first) {
    const Node* const known = state.find(node);
    if (known != nullptr) state.change_enabled(*known, false, state.at_first_);
  }
  return state;
}

absl::StatusOr<RebindState> RebindState::create(GraphState& graph) {
  CGRT_ASSIGN_OR_RETURN(RebindState state, read_nodes(graph));
  CGRT_RETURN_IF_ERROR(state.choose_set_by_host(graph.handle));
  CGRT_RETURN_IF_ERROR(state.make_updatable());  // after all that can refuse the graph: there is no way back
  CGRT_RETURN_IF_ERROR(state.patches_.add_to(graph, state.places_));
  return state;
}

absl::StatusOr<RebindState> RebindState::create_of_variants(GraphState& graph, InstantiateFlags flags) {
  CGRT_ASSIGN_OR_RETURN(RebindState state, read_nodes(graph));
  CGRT_ASSIGN_OR_RETURN(state.variants_, Variants::create(graph, flags));
  return state;
}

absl::Status RebindState::add_nodes(CUgraph graph, const GraphState& root) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (std::find(earlier_patches_.begin(), earlier_patches_.end(), node) != earlier_patches_.end()) continue;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
      CGRT_RETURN_IF_ERROR(add_nodes(inside, root));
    } else if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_RETURN_IF_ERROR(add_kernel(node, root));
    } else if (is_made_by_calls(type)) {
      CGRT_RETURN_IF_ERROR(add_other(node, type));
    }
  }
  return absl::OkStatus();
}

absl::Status RebindState::add_bodies(const GraphState& graph) {
  for (const GraphState::ConditionalNode& node : graph.conditionals) {
    for (const std::shared_ptr<GraphState>& body : node.bodies) {
      RebindState inside;
      inside.context_ = context_;
      CGRT_RETURN_IF_ERROR(inside.add_nodes(body->handle, *body));
      bodies_.push_back(std::move(inside));
      CGRT_RETURN_IF_ERROR(add_bodies(*body));
    }
  }
  for (const GraphState::Child& child : graph.children) CGRT_RETURN_IF_ERROR(add_bodies(*child.state));
  return absl::OkStatus();
}

absl::StatusOr<const RebindState::Function*> RebindState::function_of(CUfunction handle) {
  const auto found = functions_.find(handle);
  if (found != functions_.end()) return &found->second;
  const char* symbol = nullptr;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetName(&symbol, handle), "cuFuncGetName"));
  Function function{function_name(symbol), {}};
  const driver::KernelIdentity* const kernel = driver::kernel_of(handle);
  CGRT_ASSIGN_OR_RETURN(const std::vector<ir::Parameter> parameters, parameters_of(handle));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_pointer = kernel != nullptr && kernel->parameter_is_pointer != nullptr &&
                            i < kernel->parameter_count && kernel->parameter_is_pointer[i];
    function.parameters.push_back(
        {static_cast<std::uint16_t>(parameters[i].offset), static_cast<std::uint16_t>(parameters[i].size), is_pointer});
  }
  return &functions_.emplace(handle, std::move(function)).first->second;
}

absl::Status RebindState::add_kernel(CUgraphNode handle, const GraphState& graph) {
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphKernelNodeGetParams(handle, &params), "cuGraphKernelNodeGetParams"));
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  CGRT_RETURN_IF_ERROR(check_context(id, handle, params.ctx, graph.context));
  CGRT_ASSIGN_OR_RETURN(const Function* function, function_of(params.func));
  Node node{.handle = handle, .type = CU_GRAPH_NODE_TYPE_KERNEL};
  node.function = params.func;
  node.context = params.ctx;
  node.block = Dim3(params.blockDimX, params.blockDimY, params.blockDimZ);
  node.shared_bytes = params.sharedMemBytes;
  node.first_word = static_cast<std::uint32_t>(words_.size());
  const auto add_word = [&](const Word& word, std::uint64_t value, NodeWord place) {
    words_.push_back(word);
    values_.push_back(value);
    places_.push_back(place);
  };
  add_word({}, driver::grid_value(params.gridDimX, params.gridDimY, params.gridDimZ),
           {nullptr, 0, 0, NodeWord::Kind::kGrid});
  add_word({}, 1, {nullptr, 0, 0, NodeWord::Kind::kEnabled});
  for (std::size_t i = 0; i < function->parameters.size(); ++i) {
    const Parameter& parameter = function->parameters[i];
    const void* const value = argument_of(params.kernelParams, params.extra, i, parameter.offset);
    if (value == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("Node ", id, " (", describe_node(handle), "): the driver does not tell its arguments."));
    }
    std::uint8_t bytes = 0;
    for (std::uint16_t within = 0; within < parameter.bytes; within = static_cast<std::uint16_t>(within + bytes)) {
      const int in_word = kWordBytes - (parameter.offset + within) % kWordBytes;  // as snapshot() looks for addresses
      bytes = static_cast<std::uint8_t>(std::min<int>(in_word, parameter.bytes - within));
      add_word({static_cast<std::uint16_t>(i), within, bytes}, load_word(value, within, bytes),
               {nullptr, static_cast<std::uint16_t>(parameter.offset + within), bytes, NodeWord::Kind::kArgument});
    }
  }
  node.word_count = static_cast<std::uint32_t>(words_.size()) - node.first_word;
  positions_.emplace(handle, id);
  nodes_.push_back(node);
  return absl::OkStatus();
}

// Inside child graphs, where the host cannot set them, all kernels are changed on the device.
absl::Status RebindState::choose_set_by_host(CUgraph graph) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> outermost, nodes_of(graph));
  for (CUgraphNode handle : outermost) {
    const Node* const node = find(handle);
    if (node == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL || !is_changed_by_host(node->attributes)) continue;
    set_by_host_.push_back(id_of(*node));
    for (std::uint32_t i = 0; i < node->word_count; ++i) words_[node->first_word + i].is_set_by_host = true;
  }
  std::sort(set_by_host_.begin(), set_by_host_.end());
  return absl::OkStatus();
}

absl::Status RebindState::make_updatable() {
  for (const Node& node : nodes_) {
    if (node.type != CU_GRAPH_NODE_TYPE_KERNEL || words_[node.first_word].is_set_by_host) continue;
    CUgraphDeviceNode device_node = nullptr;
    CGRT_RETURN_IF_ERROR(set_updatable(node.handle, &device_node));
    for (std::uint32_t i = 0; i < node.word_count; ++i) places_[node.first_word + i].node = device_node;
  }
  return absl::OkStatus();
}

absl::Status RebindState::add_other(CUgraphNode handle, CUgraphNodeType type) {
  CUgraphNodeParams params{};
  CGRT_RETURN_IF_ERROR(read_params(handle, type, context_, params));
  positions_.emplace(handle, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back({.handle = handle, .type = type, .params = static_cast<std::uint32_t>(params_.size())});
  if (has_alternatives_) {
    CGRT_ASSIGN_OR_RETURN(nodes_.back().places, places_of(params));
  }
  params_.push_back(own(params));
  enabled_.push_back(true);
  return absl::OkStatus();
}

namespace {

absl::Status check_edges(CUgraph graph, bool is_outermost, AskedAttributes& asked) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  CGRT_ASSIGN_OR_RETURN(const Edges edges, edges_of(nodes));
  for (std::size_t i = 0; i < edges.from.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (edge_kind(edges.data[i]) == EdgeKind::kFull) continue;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(edges.to[i], &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CGRT_ASSIGN_OR_RETURN(const LaunchAttributes from, attributes_of(edges.from[i], asked));
    CGRT_ASSIGN_OR_RETURN(const LaunchAttributes to, attributes_of(edges.to[i], asked));
    if (is_outermost && (is_changed_by_host(from) || is_changed_by_host(to))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("The edge from ", describe_node(edges.from[i]), " to ", describe_node(edges.to[i]),
                     " is programmatic, which CUDA does not allow between two device-updatable nodes: build the graph "
                     "without programmatic(), or call remove_programmatic_edges(graph) first."));
  }
  return absl::OkStatus();
}

absl::Status check_edges_inside(CUgraph graph, bool is_outermost, AskedAttributes& asked) {
  CGRT_RETURN_IF_ERROR(check_edges(graph, is_outermost, asked));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
    CGRT_RETURN_IF_ERROR(check_edges_inside(inside, false, asked));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_rebindable(const GraphState& graph) {
  AskedAttributes asked;
  return check_edges_inside(graph.handle, true, asked);
}

}  // namespace cgrt::internal
