#include "cgrt/graph/snapshot.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/addresses.h"
#include "cgrt/graph/graph_state.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/graph/walk.h"
#include "cgrt/ir/function_table.h"
#include "cgrt/launch/function_name.h"

namespace cgrt {
namespace {

using ir::GraphIr;

ir::Dim3 dim(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

struct FunctionInfo {
  std::uint32_t id = 0;  // in GraphIr::functions
  std::int32_t device = -1;
};

class Reader {
 public:
  explicit Reader(GraphIr& out) : out_(out), addresses_(out.allocations), functions_(out.functions) {}

  absl::StatusOr<ir::Node> read(CUgraphNode handle, CUgraphNodeType type) {
    ir::Node node;
    node.kind = static_cast<ir::NodeKind>(type);
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: CGRT_RETURN_IF_ERROR(read_kernel(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_MEMCPY: CGRT_RETURN_IF_ERROR(read_memcpy(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_MEMSET: CGRT_RETURN_IF_ERROR(read_memset(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT: CGRT_RETURN_IF_ERROR(read_event(handle, type, node)); break;
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: CGRT_RETURN_IF_ERROR(read_alloc(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_MEM_FREE: CGRT_RETURN_IF_ERROR(read_free(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: CGRT_RETURN_IF_ERROR(read_signal(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: CGRT_RETURN_IF_ERROR(read_wait(handle, node)); break;
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: CGRT_RETURN_IF_ERROR(read_memory_ops(handle, node)); break;
      default: break;
    }
    return node;
  }

  // Those of a graph, before its nodes are read.
  void add_handles(const std::vector<internal::GraphState::ConditionalHandle>& handles) {
    for (const auto& [handle, at_launch] : handles) at_launch_.emplace(handle, at_launch);
  }

  ir::ConditionalParams read_conditional(const internal::GraphState::ConditionalNode& node) {
    return {.kind = static_cast<ir::ConditionalKind>(node.type),
            .handle = handle_number(node.handle),
            .at_launch = at_launch_[node.handle]};
  }
  ir::ConditionalParams read_conditional(const NodeNote::Conditional& note) {
    return {.kind = note.kind, .handle = handle_number(note.handle), .at_launch = note.at_launch};
  }

  const std::vector<AllocationId>& ids() const { return addresses_.ids(); }

 private:
  std::uint32_t handle_number(CUgraphConditionalHandle handle) {
    return handles_.try_emplace(handle, static_cast<std::uint32_t>(handles_.size())).first->second;
  }

  absl::StatusOr<FunctionInfo> function(const CUDA_KERNEL_NODE_PARAMS& params) {
    const void* const key = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
    const auto found = known_functions_.find(key);
    if (found != known_functions_.end()) return found->second;
    CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(params.ctx));
    CUfunction handle = params.func;
    if (handle == nullptr) {
      CGRT_RETURN_IF_ERROR(
          driver::to_status(driver::api().KernelGetFunction(&handle, params.kern), "cuKernelGetFunction"));
    }
    const char* symbol = nullptr;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().FuncGetName(&symbol, handle), "cuFuncGetName"));
    ir::Function described{.name = internal::function_name(symbol)};
    CGRT_ASSIGN_OR_RETURN(described.parameters, internal::parameters_of(handle));
    CUdevice device = -1;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxGetDevice(&device), "cuCtxGetDevice"));
    return known_functions_.emplace(key, FunctionInfo{functions_.add(described), device}).first->second;
  }

  absl::Status read_kernel(CUgraphNode handle, ir::Node& node) {
    CUDA_KERNEL_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphKernelNodeGetParams(handle, &params), "cuGraphKernelNodeGetParams"));
    CGRT_ASSIGN_OR_RETURN(const FunctionInfo info, function(params));
    node.device = info.device;
    auto& kernel = node.params.emplace<ir::KernelParams>();
    kernel.function = info.id;
    kernel.grid = dim(params.gridDimX, params.gridDimY, params.gridDimZ);
    kernel.block = dim(params.blockDimX, params.blockDimY, params.blockDimZ);
    kernel.shared_bytes = params.sharedMemBytes;
    const std::vector<ir::Parameter>& parameters = out_.functions[info.id].parameters;
    if (!parameters.empty()) kernel.arguments.resize(parameters.back().offset + parameters.back().size);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const void* value = internal::argument_of(params.kernelParams, params.extra, i, parameters[i].offset);
      CGRT_RETURN_IF_ERROR(addresses_.add_argument(value, parameters[i], kernel));
    }
    CGRT_ASSIGN_OR_RETURN(const LaunchAttributes attributes, internal::attributes_of(handle, asked_));
    if (!attributes.is_default()) {
      CGRT_ASSIGN_OR_RETURN(kernel.attributes, read_attributes(attributes));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ir::LaunchAttributes> read_attributes(const LaunchAttributes& attributes) {
    ir::LaunchAttributes out;
    out.cooperative = attributes.cooperative;
    out.cluster = dim(attributes.cluster.x, attributes.cluster.y, attributes.cluster.z);
    const Dim3& preferred = attributes.preferred_cluster;
    out.preferred_cluster = dim(preferred.x, preferred.y, preferred.z);
    out.cluster_scheduling = static_cast<ir::ClusterScheduling>(attributes.cluster_scheduling);
    out.priority = attributes.priority;
    out.is_remote_domain = attributes.mem_sync_domain == MemSyncDomain::kRemote;
    out.shared_carveout_percent = static_cast<std::uint32_t>(attributes.shared_carveout_percent);
    if (const AccessPolicyWindow& window = attributes.access_policy; window.bytes != 0) {
      CGRT_ASSIGN_OR_RETURN(out.access_policy.base, addresses_.operand(reinterpret_cast<CUdeviceptr>(window.base)));
      out.access_policy.bytes = window.bytes;
      out.access_policy.hit_ratio = std::isfinite(window.hit_ratio) ? window.hit_ratio : 0;  // a file holds no others
      out.access_policy.hit = static_cast<ir::AccessProperty>(window.hit);
      out.access_policy.miss = static_cast<ir::AccessProperty>(window.miss);
    }
    return out;
  }

  absl::Status read_event(CUgraphNode handle, CUgraphNodeType type, ir::Node& node) {
    CUevent event = nullptr;
    const driver::Api& api = driver::api();
    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphEventRecordNodeGetEvent(handle, &event), "cuGraphEventRecordNodeGetEvent"));
    } else {
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphEventWaitNodeGetEvent(handle, &event), "cuGraphEventWaitNodeGetEvent"));
    }
    const auto number = static_cast<std::uint32_t>(events_.size());
    node.params = ir::EventParams{events_.try_emplace(event, number).first->second};
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<ir::Pointer>> operand(CUmemorytype type, CUdeviceptr device, const void* host,
                                                     std::size_t offset) {
    switch (type) {
      case CU_MEMORYTYPE_ARRAY: return std::optional<ir::Pointer>();
      case CU_MEMORYTYPE_HOST: device = reinterpret_cast<CUdeviceptr>(host); break;
      default: break;
    }
    CGRT_ASSIGN_OR_RETURN(ir::Pointer pointer, addresses_.operand(device + offset));
    return std::optional<ir::Pointer>(pointer);
  }

  absl::Status read_memcpy(CUgraphNode handle, ir::Node& node) {
    CUDA_MEMCPY3D params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphMemcpyNodeGetParams(handle, &params), "cuGraphMemcpyNodeGetParams"));
    ir::MemcpyParams memcpy;
    const auto offset_of = [](std::size_t x, std::size_t y, std::size_t z, std::size_t pitch, std::size_t height) {
      return x + (z * height + y) * pitch;
    };
    CGRT_ASSIGN_OR_RETURN(memcpy.destination, operand(params.dstMemoryType, params.dstDevice, params.dstHost,
                                                      offset_of(params.dstXInBytes, params.dstY, params.dstZ,
                                                                params.dstPitch, params.dstHeight)));
    CGRT_ASSIGN_OR_RETURN(memcpy.source, operand(params.srcMemoryType, params.srcDevice, params.srcHost,
                                                 offset_of(params.srcXInBytes, params.srcY, params.srcZ,
                                                           params.srcPitch, params.srcHeight)));
    memcpy.width_bytes = params.WidthInBytes;
    memcpy.height = params.Height;
    memcpy.depth = params.Depth;
    const bool one_row = params.Height <= 1 && params.Depth <= 1;
    memcpy.destination_pitch = one_row ? 0 : params.dstPitch;
    memcpy.source_pitch = one_row ? 0 : params.srcPitch;
    node.params = memcpy;
    return absl::OkStatus();
  }

  absl::Status read_memset(CUgraphNode handle, ir::Node& node) {
    CUDA_MEMSET_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphMemsetNodeGetParams(handle, &params), "cuGraphMemsetNodeGetParams"));
    ir::MemsetParams memset;
    CGRT_ASSIGN_OR_RETURN(memset.destination, addresses_.operand(params.dst));
    memset.value = params.value;
    memset.element_bytes = params.elementSize;
    memset.width = params.width;
    memset.height = params.height;
    memset.pitch = params.height <= 1 ? 0 : params.pitch;
    node.params = memset;
    return absl::OkStatus();
  }

  absl::Status read_alloc(CUgraphNode handle, ir::Node& node) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphMemAllocNodeGetParams(handle, &params), "cuGraphMemAllocNodeGetParams"));
    node.device = params.poolProps.location.id;
    node.params =
        ir::MemAllocParams{addresses_.graph_memory(params.dptr, params.bytesize, node.device), params.bytesize};
    return absl::OkStatus();
  }

  absl::Status read_free(CUgraphNode handle, ir::Node& node) {
    CUdeviceptr address = 0;
    CGRT_RETURN_IF_ERROR(
        driver::to_status(driver::api().GraphMemFreeNodeGetParams(handle, &address), "cuGraphMemFreeNodeGetParams"));
    CGRT_ASSIGN_OR_RETURN(const ir::Pointer pointer, addresses_.device_operand(address));
    node.params = ir::MemFreeParams{pointer};
    return absl::OkStatus();
  }

  absl::Status read_memory_ops(CUgraphNode handle, ir::Node& node) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphBatchMemOpNodeGetParams(handle, &params),
                                           "cuGraphBatchMemOpNodeGetParams"));
    ir::BatchMemOpParams out;
    for (unsigned i = 0; i < params.count; ++i) {
      const CUstreamBatchMemOpParams& op = params.paramArray[i];
      const CUstreamBatchMemOpType type = op.operation;
      const bool is_wait = type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
      const bool is_write = type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
      if (!is_wait && !is_write) return absl::OkStatus();  // barriers and flushes: not decoded
      const bool is_long = type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
      ir::MemOp decoded;
      CGRT_ASSIGN_OR_RETURN(decoded.address, addresses_.device_operand(op.waitValue.address));
      decoded.bytes = is_long ? 8 : 4;
      decoded.value = is_long ? op.waitValue.value64 : op.waitValue.value;
      // The flags count from 0 in the order of the conditions; a flush of remote writes is a bit above them.
      if (is_wait) decoded.kind = static_cast<ir::MemOpKind>((op.waitValue.flags & 3) + 1);
      out.operations.push_back(decoded);
    }
    node.params = std::move(out);
    return absl::OkStatus();
  }

  absl::Status read_signal(CUgraphNode handle, ir::Node& node) {
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphExternalSemaphoresSignalNodeGetParams(handle, &params),
                                           "cuGraphExternalSemaphoresSignalNodeGetParams"));
    node.params = semaphores(params);
    return absl::OkStatus();
  }

  absl::Status read_wait(CUgraphNode handle, ir::Node& node) {
    CUDA_EXT_SEM_WAIT_NODE_PARAMS params{};
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphExternalSemaphoresWaitNodeGetParams(handle, &params),
                                           "cuGraphExternalSemaphoresWaitNodeGetParams"));
    node.params = semaphores(params);
    return absl::OkStatus();
  }

  template <class Params>
  ir::SemaphoreParams semaphores(const Params& params) {
    ir::SemaphoreParams out;
    for (unsigned i = 0; i < params.numExtSems; ++i) {
      const auto number = static_cast<std::uint32_t>(semaphores_.size());
      out.semaphores.push_back({semaphores_.try_emplace(params.extSemArray[i], number).first->second,
                                params.paramsArray[i].params.fence.value});
    }
    return out;
  }

  GraphIr& out_;
  internal::Addresses addresses_;
  ir::FunctionTable functions_;
  absl::flat_hash_map<const void*, FunctionInfo> known_functions_;  // by function, or by kernel
  absl::flat_hash_map<CUevent, std::uint32_t> events_;
  absl::flat_hash_map<CUexternalSemaphore, std::uint32_t> semaphores_;
  absl::flat_hash_map<CUgraphConditionalHandle, std::uint32_t> handles_;
  absl::flat_hash_map<CUgraphConditionalHandle, std::optional<std::uint32_t>> at_launch_;
  internal::AskedAttributes asked_;
};

}  // namespace

namespace {

// `allocation_ids`: null when nobody asks.
absl::StatusOr<GraphIr> read(const internal::Walk& walk, std::vector<AllocationId>* allocation_ids = nullptr) {
  GraphIr out;
  for (std::size_t i = 1; i < walk.graphs.size(); ++i) out.bodies.push_back({walk.graphs[i].owner});
  Reader reader(out);
  for (const internal::WalkedGraph& one : walk.graphs) {
    if (one.state != nullptr) reader.add_handles(one.state->conditional_handles);
  }
  absl::flat_hash_map<CUgraphNode, std::uint32_t> ids;
  std::vector<CUgraphNode> handles;
  for (const internal::WalkedNode& walked : walk.nodes) {
    const auto id = static_cast<std::uint32_t>(out.nodes.size());
    ids.emplace(walked.handle, id);
    handles.push_back(walked.handle);
    absl::StatusOr<ir::Node> node = reader.read(walked.handle, walked.type);
    if (!node.ok()) return driver::annotate(node.status(), absl::StrCat("Reading node ", id));
    node->body = walked.graph;
    node->scope = walk.scope_of(walked);
    if (const auto* conditional = walk.conditional(walked); conditional != nullptr) {
      CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(walk.graphs[walked.graph].state->context).device());
      node->device = device.ordinal();
      node->params = reader.read_conditional(*conditional);
    } else if (walked.noted_conditional() != nullptr) {
      CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(walked.noted_conditional()->context).device());
      node->device = device.ordinal();
      node->params = reader.read_conditional(*walked.noted_conditional());
    }
    out.nodes.push_back(*std::move(node));
  }
  CGRT_ASSIGN_OR_RETURN(const internal::Edges edges, internal::edges_of(handles));
  for (std::size_t i = 0; i < edges.from.size(); ++i) {
    const CUgraphEdgeData& data = edges.data[i];
    out.edges.push_back({ids.at(edges.from[i]), ids.at(edges.to[i]), data.from_port, data.to_port,
                         static_cast<ir::EdgeType>(data.type)});
  }
  std::sort(out.edges.begin(), out.edges.end());
  if (allocation_ids != nullptr) *allocation_ids = reader.ids();
  return out;
}

}  // namespace

absl::StatusOr<GraphIr> snapshot(GraphRef graph) {
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.get(), nullptr));
  return read(walk);
}

absl::StatusOr<GraphIr> snapshot(GraphRef graph, absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of) {
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.get(), note_of));
  return read(walk);
}

absl::StatusOr<GraphIr> snapshot(GraphRef graph, absl::FunctionRef<const NodeNote*(CUgraphNode)> note_of,
                                 std::vector<AllocationId>& ids) {
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.get(), note_of));
  return read(walk, &ids);
}

absl::StatusOr<GraphIr> snapshot(const Graph& graph) {
  if (graph.state() == nullptr) return driver::empty_object("Graph");
  CGRT_ASSIGN_OR_RETURN(const internal::Walk walk, internal::walk(graph.ref().get(), graph.state().get()));
  return read(walk);
}

std::string describe_node(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (driver::api().GraphNodeGetType(node, &type) != CUDA_SUCCESS) return "a node";
  CUDA_KERNEL_NODE_PARAMS params{};
  const char* symbol = nullptr;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL && driver::api().GraphKernelNodeGetParams(node, &params) == CUDA_SUCCESS &&
      driver::api().FuncGetName(&symbol, params.func) == CUDA_SUCCESS) {
    return absl::StrCat("kernel \"", internal::function_name(symbol), "\"");
  }
  return to_string(static_cast<ir::NodeKind>(type));
}

}  // namespace cgrt
