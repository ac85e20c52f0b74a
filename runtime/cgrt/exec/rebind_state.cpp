#include "cgrt/exec/rebind_state.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/optimization.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/graph/snapshot.h"
#include "cgrt/launch/function_name.h"
#include "cgrt/launch/launch.h"
#include "cgrt/memory/copy.h"

namespace cgrt::internal {
namespace {

using driver::NodeWord;

constexpr std::uint16_t kWordBytes = 8;

std::uint64_t load_word(const void* argument, std::uint16_t within, std::uint8_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, static_cast<const unsigned char*>(argument) + within, bytes);
  return value;
}

// By their bytes: both were zero before they were filled.
bool are_equal(const CUgraphNodeParams& a, const CUgraphNodeParams& b) {
  const auto bytes = [](const CUgraphNodeParams& params) {
    return std::string_view(reinterpret_cast<const char*>(&params), sizeof(params));
  };
  return bytes(a) == bytes(b);
}

// Whether a launch could have that grid, as far as it can be told without asking the driver.
bool is_grid_valid(const Dim3& grid, const Dim3& cluster) {
  return grid.count() != 0 && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535 && grid.x % cluster.x == 0 &&
         grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

// Whether a call of a target makes such nodes, beside kernels.
bool is_made_by_calls(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return true;
    default: return false;
  }
}

absl::Status cannot_change(const std::string& kernel, const std::string& what, const std::string& was,
                           const std::string& wanted) {
  return absl::FailedPreconditionError(
      absl::StrCat("Kernel \"", kernel, "\": its node has ", what, " ", was, ", and this launch wants ", wanted,
                   ". On the device only arguments, grids and whether a node runs can change: build another executable "
                   "for this one."));
}

// Handles of streams are used again, and CU_STREAM_PER_THREAD is another stream in each thread; this is not.
absl::StatusOr<std::uint64_t> id_of(StreamRef stream) {
  unsigned long long id = 0;
  CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().StreamGetId(stream.get(), &id), "cuStreamGetId"));
  return id;
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

}  // namespace

absl::StatusOr<RebindState> RebindState::create(GraphState& graph) {
  RebindState state;
  state.context_ = graph.context;
  CGRT_RETURN_IF_ERROR(graph.knowledge.complete(graph.handle));
  CGRT_RETURN_IF_ERROR(state.add_nodes(graph.handle, graph));
  CGRT_ASSIGN_OR_RETURN(const NodeTable table, node_table(graph));
  for (const NodeAttributes& one : table.attributes) {
    const auto found = state.positions_.find(one.node);
    if (found != state.positions_.end()) state.nodes_[found->second].attributes = one.attributes;
  }
  CGRT_ASSIGN_OR_RETURN(state.launched_, Event::create(graph.context));
  return state;
}

absl::StatusOr<std::shared_ptr<DeviceBuffer>> RebindState::allocate_places() {
  if (places_.empty()) return nullptr;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer places, DeviceBuffer::create(context_, places_.size() * sizeof(NodeWord)));
  places_on_device_ = places.data();
  return std::make_shared<DeviceBuffer>(std::move(places));
}

absl::Status RebindState::add_nodes(CUgraph graph, const GraphState& root) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
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

absl::StatusOr<const std::vector<RebindState::Parameter>*> RebindState::parameters_of(CUfunction function) {
  const auto found = parameters_.find(function);
  if (found != parameters_.end()) return &found->second;
  std::vector<Parameter> parameters;
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = driver::api().FuncGetParamInfo(function, i, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // past the last: there is no call that counts them
    CGRT_RETURN_IF_ERROR(driver::to_status(result, "cuFuncGetParamInfo"));
    parameters.push_back({static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(size)});
  }
  return &parameters_.emplace(function, std::move(parameters)).first->second;
}

absl::Status RebindState::add_kernel(CUgraphNode handle, const GraphState& graph) {
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphKernelNodeGetParams(handle, &params), "cuGraphKernelNodeGetParams"));
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  Node node{.handle = handle, .type = CU_GRAPH_NODE_TYPE_KERNEL};
  if (params.ctx != graph.context) {
    CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(params.ctx).device());
    CGRT_ASSIGN_OR_RETURN(const DeviceRef ours, ContextRef(graph.context).device());
    if (device.ordinal() != ours.ordinal()) {
      return absl::FailedPreconditionError(absl::StrCat("Node ", id, " (", describe_node(handle), ") runs on device ",
                                                        device.ordinal(), ", the graph on device ", ours.ordinal(),
                                                        ": a rebindable executable runs on one."));
    }
  }
  CGRT_ASSIGN_OR_RETURN(const std::vector<Parameter>* parameters, parameters_of(params.func));
  node.function = params.func;
  node.block = Dim3(params.blockDimX, params.blockDimY, params.blockDimZ);
  node.shared_bytes = params.sharedMemBytes;
  node.first_word = static_cast<std::uint32_t>(words_.size());
  const std::uint64_t grid = driver::grid_value(params.gridDimX, params.gridDimY, params.gridDimZ);
  words_.push_back({.value = grid});
  places_.push_back({nullptr, 0, 0, NodeWord::Kind::kGrid});
  words_.push_back({.value = 1});
  places_.push_back({nullptr, 0, 0, NodeWord::Kind::kEnabled});
  for (std::size_t i = 0; i < parameters->size(); ++i) {
    const auto& [offset, bytes] = (*parameters)[i];
    const void* const value = argument_of(params, i, offset);
    if (value == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("Node ", id, " (", describe_node(handle), "): the driver does not tell its arguments."));
    }
    for (std::uint16_t within = 0; within < bytes; within = static_cast<std::uint16_t>(within + kWordBytes)) {
      const auto size = static_cast<std::uint8_t>(std::min<int>(kWordBytes, bytes - within));
      words_.push_back({.value = load_word(value, within, size),
                        .argument = static_cast<std::uint16_t>(i),
                        .within = within,
                        .bytes = size});
      places_.push_back({nullptr, static_cast<std::uint16_t>(offset + within), size, NodeWord::Kind::kArgument});
    }
  }
  CUgraphDeviceNode device_node = nullptr;  // not before: what the driver handed out may be gone then
  CGRT_RETURN_IF_ERROR(set_updatable(handle, &device_node));
  for (std::size_t i = node.first_word; i < places_.size(); ++i) places_[i].node = device_node;
  node.word_count = static_cast<std::uint32_t>(words_.size()) - node.first_word;
  positions_.emplace(handle, id);
  nodes_.push_back(node);
  return absl::OkStatus();
}

absl::StatusOr<CUgraphNodeParams> RebindState::params_of(CUgraphNode node, CUgraphNodeType type) const {
  CUgraphNodeParams params{};
  params.type = type;
  const driver::Api& api = driver::api();
  switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      params.memcpy.copyCtx = context_;
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphMemcpyNodeGetParams(node, &params.memcpy.copyParams),
                                             "cuGraphMemcpyNodeGetParams"));
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphMemsetNodeGetParams(node, &fill), "cuGraphMemsetNodeGetParams"));
      params.memset.dst = fill.dst;
      params.memset.pitch = fill.pitch;
      params.memset.value = fill.value;
      params.memset.elementSize = fill.elementSize;
      params.memset.width = fill.width;
      params.memset.height = fill.height;
      params.memset.ctx = context_;
      break;
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS host{};
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphHostNodeGetParams(node, &host), "cuGraphHostNodeGetParams"));
      params.host.fn = host.fn;
      params.host.userData = host.userData;
      break;
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphEventRecordNodeGetEvent(node, &params.eventRecord.event),
                                             "cuGraphEventRecordNodeGetEvent"));
      break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      CGRT_RETURN_IF_ERROR(driver::to_status(api.GraphEventWaitNodeGetEvent(node, &params.eventWait.event),
                                             "cuGraphEventWaitNodeGetEvent"));
      break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphMemAllocNodeGetParams(node, &alloc), "cuGraphMemAllocNodeGetParams"));
      params.alloc.bytesize = alloc.bytesize;
      params.alloc.dptr = alloc.dptr;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      CGRT_RETURN_IF_ERROR(
          driver::to_status(api.GraphMemFreeNodeGetParams(node, &params.free.dptr), "cuGraphMemFreeNodeGetParams"));
      break;
    default: break;
  }
  return params;
}

absl::Status RebindState::add_other(CUgraphNode handle, CUgraphNodeType type) {
  CGRT_ASSIGN_OR_RETURN(const CUgraphNodeParams params, params_of(handle, type));
  positions_.emplace(handle, static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back({.handle = handle, .type = type, .params = static_cast<std::uint32_t>(params_.size())});
  params_.push_back(params);
  return absl::OkStatus();
}

const RebindState::Node* RebindState::find(CUgraphNode handle) const {
  const auto found = positions_.find(handle);
  return found != positions_.end() ? &nodes_[found->second] : nullptr;
}

template <class Name, class Argument>
absl::Status RebindState::change_words(const Node& kernel, const KernelShape& wanted, Name name, Argument argument,
                                       Change& change) const {
  if (ABSL_PREDICT_FALSE(wanted.function != kernel.function)) {
    return absl::FailedPreconditionError(
        absl::StrCat("The node is ", describe_node(kernel.handle), ", and this launch is of kernel \"", name(), "\"."));
  }
  if (ABSL_PREDICT_FALSE(wanted.block != kernel.block)) {
    return cannot_change(name(), "block", to_text(kernel.block), to_text(wanted.block));
  }
  if (ABSL_PREDICT_FALSE(wanted.shared_bytes != kernel.shared_bytes)) {
    return cannot_change(name(), "dynamic shared memory of", absl::StrCat(kernel.shared_bytes, " bytes"),
                         absl::StrCat(wanted.shared_bytes, " bytes"));
  }
  if (ABSL_PREDICT_FALSE(wanted.attributes != nullptr || !kernel.attributes.is_default())) {
    const LaunchAttributes attributes = wanted.attributes != nullptr ? *wanted.attributes : LaunchAttributes{};
    if (!are_interchangeable(kernel.attributes, attributes)) {
      return attributes_differ(name(), kernel.attributes, attributes);
    }
  }
  const Dim3& grid = wanted.grid;
  const std::uint64_t value = driver::grid_value(grid.x, grid.y, grid.z);
  const bool is_wide = ((grid.y | grid.z) >> 16) != 0;  // more than `value` has room for
  if (is_wide || value != words_[kernel.first_word + kGridWord].value) {
    if (ABSL_PREDICT_FALSE(!is_grid_valid(grid, kernel.attributes.cluster))) {
      return driver::make_status(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernelEx", "would return");
    }
    if (ABSL_PREDICT_FALSE(kernel.attributes.cooperative)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "Kernel \"", name(), "\": its node is cooperative, and this launch wants another grid, ", to_text(grid),
          ". The device would not check that there is room for all of its blocks at once: "
          "build another executable for it."));
    }
    change.words.emplace_back(kernel.first_word + kGridWord, value);
  }
  for (std::uint32_t i = kArgumentWords; i < kernel.word_count; ++i) {
    const Word& word = words_[kernel.first_word + i];
    const std::uint64_t now = load_word(argument(kernel.first_word + i), word.within, word.bytes);
    if (now != word.value) change.words.emplace_back(kernel.first_word + i, now);
  }
  return absl::OkStatus();
}

absl::Status RebindState::change_kernel(const Node& kernel, const KernelLaunch& launch, Change& change) const {
  const driver::ResolvedFunction* function = nullptr;
  const CUresult result = driver::resolve_function(*launch.kernel, context_, &function);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch, context_);
  }
  LaunchAttributes normal;
  const bool is_plain = launch.attributes == nullptr && function->cluster == Dim3();
  if (!is_plain) {
    normal = normal_form(launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{}, function->cluster);
  }
  const absl::Status status = change_words(
      kernel, {function->function, launch.grid, launch.block, launch.shared_bytes, is_plain ? nullptr : &normal},
      [&] { return launch.kernel->name; },
      [&](std::uint32_t word) -> const void* { return launch.arguments[words_[word].argument]; }, change);
  if (ABSL_PREDICT_TRUE(status.ok())) return status;
  return driver::cuda_result(status).has_value() ? explain_launch(status, launch, context_) : status;
}

absl::Status RebindState::change_as(const Node& node, CUgraphNode captured, CompiledClusters& clusters,
                                    Change& change) const {
  if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) {
    CGRT_ASSIGN_OR_RETURN(const CUgraphNodeParams params, params_of(captured, node.type));
    change_params(node, params, change);
    return absl::OkStatus();
  }
  CUDA_KERNEL_NODE_PARAMS params{};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().GraphKernelNodeGetParams(captured, &params), "cuGraphKernelNodeGetParams"));
  CGRT_ASSIGN_OR_RETURN(const LaunchAttributes attributes, attributes_of(captured, clusters));
  const auto& parameters = parameters_.find(node.function)->second;
  return change_words(
      node,
      {params.func, Dim3(params.gridDimX, params.gridDimY, params.gridDimZ),
       Dim3(params.blockDimX, params.blockDimY, params.blockDimZ), params.sharedMemBytes,
       attributes.is_default() ? nullptr : &attributes},
      [&] {
        const char* symbol = nullptr;
        const bool is_known = driver::api().FuncGetName(&symbol, params.func) == CUDA_SUCCESS;
        return is_known ? function_name(symbol) : "?";
      },
      [&](std::uint32_t word) {
        const std::uint16_t argument = words_[word].argument;
        return argument_of(params, argument, parameters[argument].offset);
      },
      change);
}

std::size_t RebindState::change_addresses(std::uintptr_t begin, std::size_t bytes, std::uintptr_t replacement,
                                          Change& change) const {
  const auto is_inside = [&](std::uint64_t address) { return address >= begin && address - begin < bytes; };
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < words_.size(); ++i) {
    const bool is_address = places_[i].kind == NodeWord::Kind::kArgument && words_[i].bytes == sizeof(std::uintptr_t);
    if (!is_address || !is_inside(words_[i].value)) continue;
    change.words.emplace_back(i, words_[i].value - begin + replacement);
    ++found;
  }
  const auto move = [&](auto& address) {
    if (!is_inside(reinterpret_cast<std::uintptr_t>(address))) return;
    address = reinterpret_cast<std::remove_reference_t<decltype(address)>>(reinterpret_cast<std::uintptr_t>(address) -
                                                                           begin + replacement);
    ++found;
  };
  const auto move_device = [&](CUdeviceptr& address) {
    if (!is_inside(address)) return;
    address = address - begin + replacement;
    ++found;
  };
  for (const Node& node : nodes_) {
    if (node.type != CU_GRAPH_NODE_TYPE_MEMCPY && node.type != CU_GRAPH_NODE_TYPE_MEMSET) continue;
    CUgraphNodeParams params = params_[node.params];
    if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
      move_device(params.memset.dst);
    } else {
      CUDA_MEMCPY3D& copy = params.memcpy.copyParams;
      move_device(copy.srcDevice);
      move_device(copy.dstDevice);
      move(copy.srcHost);
      move(copy.dstHost);
    }
    change_params(node, params, change);
  }
  return found;
}

void RebindState::change_enabled(const Node& kernel, bool is_enabled, Change& change) const {
  if (this->is_enabled(kernel) != is_enabled) change.words.emplace_back(kernel.first_word + kEnabledWord, is_enabled);
}

void RebindState::change_params(const Node& node, const CUgraphNodeParams& params, Change& change) const {
  const auto id = static_cast<std::uint32_t>(&node - nodes_.data());
  if (!are_equal(params, params_[node.params])) change.nodes.emplace_back(id, params);
}

absl::Status RebindState::take(Change&& change, CUgraphExec exec) {
  const auto set = [&](std::uint32_t id, CUgraphNodeParams& params) {
    return driver::to_status(driver::api().GraphExecNodeSetParams(exec, nodes_[id].handle, &params),
                             "cuGraphExecNodeSetParams");
  };
  std::size_t done = 0;
  absl::Cleanup undo = [&] {
    for (std::size_t i = 0; i < done; ++i)
      set(change.nodes[i].first, params_[nodes_[change.nodes[i].first].params]).IgnoreError();
  };
  for (auto& [id, params] : change.nodes) {
    const absl::Status status = set(id, params);
    if (!status.ok()) {
      return driver::annotate(status, absl::StrCat("Node ", id, " (", describe_node(nodes_[id].handle), ")"));
    }
    ++done;
  }
  std::move(undo).Cancel();
  for (const auto& [id, params] : change.nodes) params_[nodes_[id].params] = params;
  for (const auto& [index, value] : change.words) {
    Word& word = words_[index];
    word.value = value;
    if (word.pending >= pending_count_ || pending(word.pending).word != index) {
      word.pending = static_cast<std::uint32_t>(pending_count_++);
      if (word.pending / kMaxPatches == pending_.size()) pending_.push_back(std::make_unique<PendingList>());
    }
    pending(word.pending) = {index, static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  }
  return absl::OkStatus();
}

namespace {

template <std::size_t kCapacity>
absl::Status launch_patches(StreamRef stream, PatchList<kMaxPatches>& list) {
  void* arguments[] = {&list};
  return launch(stream,
                KernelLaunch{patch_kernel<kCapacity>().identity(), Dim3((list.count + kPatchBlock - 1) / kPatchBlock),
                             Dim3(kPatchBlock), 0, arguments});
}

}  // namespace

absl::Status RebindState::patch(StreamRef stream) {
  for (std::size_t i = 0; i * kMaxPatches < pending_count_; ++i) {
    PendingList& list = *pending_[i];
    list.words = static_cast<const NodeWord*>(places_on_device_);
    list.count = static_cast<std::uint32_t>(std::min(pending_count_ - i * kMaxPatches, kMaxPatches));
    constexpr const auto& kCapacities = kPatchCapacities;
    CGRT_RETURN_IF_ERROR(list.count <= kCapacities[0]   ? launch_patches<kCapacities[0]>(stream, list)
                         : list.count <= kCapacities[1] ? launch_patches<kCapacities[1]>(stream, list)
                         : list.count <= kCapacities[2] ? launch_patches<kCapacities[2]>(stream, list)
                         : list.count <= kCapacities[3] ? launch_patches<kCapacities[3]>(stream, list)
                                                        : launch_patches<kCapacities[4]>(stream, list));
  }
  return absl::OkStatus();
}

// What a patch needs on the device.
absl::Status RebindState::prepare_device(CUgraphExec exec, StreamRef stream) {
  if (!is_uploaded_) {
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphUpload(exec, stream.get()), "cuGraphUpload"));
    is_uploaded_ = true;
  }
  if (are_places_uploaded_) return absl::OkStatus();
  const std::size_t bytes = places_.size() * sizeof(NodeWord);
  CGRT_RETURN_IF_ERROR(copy(stream, places_on_device_, places_.data(), bytes));
  are_places_uploaded_ = true;
  return absl::OkStatus();
}

// Patches must come from the device of the nodes.
absl::Status RebindState::check_device(StreamRef stream) const {
  CGRT_ASSIGN_OR_RETURN(const CUcontext context, stream.context());
  if (context == context_) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const DeviceRef device, ContextRef(context).device());
  CGRT_ASSIGN_OR_RETURN(const DeviceRef ours, ContextRef(context_).device());
  if (device == ours) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "The stream is one of device ", device.ordinal(), ", and the executable that was rebound runs on device ",
      ours.ordinal(), ", from where its nodes must be changed. Launch it into a stream of that device."));
}

absl::Status RebindState::before_launch(CUgraphExec exec, StreamRef stream) {
  if (pending_count_ == 0) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const bool is_capturing, stream.is_capturing());
  if (is_capturing) return absl::OkStatus();  // which takes no executables; patches would become nodes of it
  CGRT_RETURN_IF_ERROR(check_device(stream));
  // CUDA orders the launches of an executable, but not a patch behind the launch or upload before.
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t id, id_of(stream));
  if (last_stream_.has_value() && *last_stream_ != id) CGRT_RETURN_IF_ERROR(stream.wait(launched_.ref()));
  CGRT_RETURN_IF_ERROR(prepare_device(exec, stream));
  const absl::Status patched = patch(stream);
  has_patched_ = true;
  if (!patched.ok()) {  // the first of several may be under way
    after_launch(stream).IgnoreError();
    return patched;
  }
  pending_count_ = 0;
  return absl::OkStatus();
}

absl::Status RebindState::after_launch(StreamRef stream) {
  is_uploaded_ = true;
  has_patched_ = false;
  CGRT_RETURN_IF_ERROR(stream.record(launched_.ref()));
  CGRT_ASSIGN_OR_RETURN(last_stream_, id_of(stream));
  return absl::OkStatus();
}

namespace {

absl::Status check_edges(CUgraph graph) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  CGRT_ASSIGN_OR_RETURN(const Edges edges, edges_of(nodes));
  for (std::size_t i = 0; i < edges.from.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (edges.data[i].from_port == 0 && edges.data[i].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) continue;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(edges.to[i], &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("The edge from ", describe_node(edges.from[i]), " to ", describe_node(edges.to[i]),
                     " is programmatic, which CUDA does not allow between two device-updatable nodes: build the graph "
                     "without programmatic()."));
  }
  return absl::OkStatus();
}

absl::Status check_edges_inside(CUgraph graph) {
  CGRT_RETURN_IF_ERROR(check_edges(graph));
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> nodes, nodes_of(graph));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(node, &type), "cuGraphNodeGetType"));
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(node));
    CGRT_RETURN_IF_ERROR(check_edges_inside(inside));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_rebindable(const GraphState& graph) { return check_edges_inside(graph.handle); }

}  // namespace cgrt::internal
