#include "cgrt/exec/address_guard.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/counted.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/graph/addresses.h"
#include "cgrt/graph/node_params.h"
#include "cgrt/graph/walk.h"
#include "cgrt/launch/function_name.h"

namespace cgrt::internal {
namespace {

absl::StatusOr<std::uint64_t> buffer_id_of(CUdeviceptr address) {
  std::uint64_t id = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* values[] = {&id};
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().PointerGetAttributes(1, asked, values, address), "cuPointerGetAttributes"));
  return id;
}

absl::StatusOr<CUfunction> function_of(const CUDA_KERNEL_NODE_PARAMS_v3& params) {
  if (params.func != nullptr) return params.func;
  CUfunction function = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().KernelGetFunction(&function, params.kern), "cuKernelGetFunction"));
  return function;
}

}  // namespace

// Finds the addresses in parameters, at one moment.
class AddressGuard::Resolver {
 public:
  explicit Resolver(const std::vector<OwnMemory>& own) {
    for (const OwnMemory& memory : own) addresses_.graph_memory(memory.start, memory.bytes, -1);
  }

  absl::StatusOr<std::vector<Address>> addresses_of(const CUgraphNodeParams& params) {
    std::vector<Address> found;
    absl::Status status;
    if (params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      status = add_arguments(params.kernel, found);
    } else {
      visit_operands(params, [&](const auto& address, std::uint32_t operand) {
        status.Update(add_word(operand, to_number(address), found));
      });
    }
    CGRT_RETURN_IF_ERROR(status);
    return found;
  }

  absl::Status add_word(std::uint32_t number, CUdeviceptr value, std::vector<Address>& to) {
    CGRT_ASSIGN_OR_RETURN(const std::optional<ir::Pointer> pointer, addresses_.find(value));
    return pointer.has_value() ? add(number, *pointer, to) : absl::OkStatus();
  }

 private:
  absl::Status add(std::uint32_t number, const ir::Pointer& pointer, std::vector<Address>& to) {
    const AllocationId& id = addresses_.ids()[pointer.allocation];
    if (id.buffer_id == 0) return absl::OkStatus();  // the graph's own memory
    const CUdeviceptr address = id.start + pointer.offset;
    CGRT_ASSIGN_OR_RETURN(const std::uint64_t buffer_id, buffer_id_of(address));  // a range may have several
    to.push_back({number, address, buffer_id, allocations_[pointer.allocation]});
    return absl::OkStatus();
  }

  absl::Status add_arguments(const CUDA_KERNEL_NODE_PARAMS_v3& params, std::vector<Address>& to) {
    CGRT_ASSIGN_OR_RETURN(const CUfunction function, function_of(params));
    auto known = parameters_.find(function);
    if (known == parameters_.end()) {
      CGRT_ASSIGN_OR_RETURN(std::vector<ir::Parameter> parameters, parameters_of(function));
      known = parameters_.emplace(function, std::move(parameters)).first;
    }
    const std::vector<ir::Parameter>& parameters = known->second;
    ir::KernelParams kernel;
    if (!parameters.empty()) kernel.arguments.resize(parameters.back().offset + parameters.back().size);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      kernel.pointers.clear();
      const void* const value = argument_of(params.kernelParams, params.extra, i, parameters[i].offset);
      CGRT_RETURN_IF_ERROR(addresses_.add_argument(value, parameters[i], kernel));
      for (const ir::InnerPointer& inner : kernel.pointers) {
        CGRT_RETURN_IF_ERROR(add(static_cast<std::uint32_t>(i), inner.pointer, to));
      }
    }
    return absl::OkStatus();
  }

  std::vector<ir::Allocation> allocations_;
  Addresses addresses_{allocations_};
  absl::flat_hash_map<CUfunction, std::vector<ir::Parameter>> parameters_;
};

absl::StatusOr<AddressGuard> AddressGuard::create(const GraphState& graph) {
  return read(graph.handle, &graph, graph.context, {});
}

absl::StatusOr<AddressGuard> AddressGuard::read(CUgraph graph, const GraphState* state, CUcontext context,
                                                std::vector<OwnMemory> own) {
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(const Walk walked, walk(graph, state));
  AddressGuard guard;
  guard.context_ = context;
  guard.own_memory_ = std::move(own);
  std::vector<CUgraphNodeParams> params(walked.nodes.size());
  for (std::size_t i = 0; i < walked.nodes.size(); ++i) {
    const WalkedNode& node = walked.nodes[i];
    const std::uint32_t owner = node.graph == 0 ? kNoNode : walked.graphs[node.graph].owner;
    guard.nodes_.push_back({node.handle, node.type, owner, nullptr, {}});
    guard.ids_.emplace(node.handle, static_cast<std::uint32_t>(i));
    params[i].type = node.type;
    if (node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;  // the driver does not tell (CUDA 13.0)
    CGRT_RETURN_IF_ERROR(read_params(node.handle, node.type, context, params[i]));
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(guard.nodes_.back().function, function_of(params[i].kernel));
    }
    if (node.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) continue;
    guard.own_memory_.push_back({params[i].alloc.dptr, params[i].alloc.bytesize});
  }
  Resolver resolver(guard.own_memory_);
  for (std::size_t i = 0; i < params.size(); ++i) {
    CGRT_ASSIGN_OR_RETURN(guard.nodes_[i].addresses, resolver.addresses_of(params[i]));
  }
  return guard;
}

bool AddressGuard::is_inside(std::uint32_t node, std::uint32_t owner) const {
  do {
    node = nodes_[node].owner;
  } while (node != kNoNode && node != owner);
  return node == owner;
}

absl::Status AddressGuard::set(CUgraphNode handle, const CUgraphNodeParams& params) {
  const auto found = ids_.find(handle);
  if (found == ids_.end()) return absl::OkStatus();
  is_distinct_known_ = false;
  const std::uint32_t id = found->second;
  nodes_[id].addresses.clear();
  CGRT_ASSIGN_OR_RETURN(const ScopedContext current, ScopedContext::enter(context_));
  if (params.type != CU_GRAPH_NODE_TYPE_GRAPH) {
    if (params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(nodes_[id].function, function_of(params.kernel));
    }
    CGRT_ASSIGN_OR_RETURN(nodes_[id].addresses, Resolver(own_memory_).addresses_of(params));
    return absl::OkStatus();
  }
  std::vector<std::uint32_t> inside;  // in the order in which the child has them
  for (std::uint32_t i = id + 1; i < nodes_.size(); ++i) {
    if (!is_inside(i, id)) continue;
    inside.push_back(i);
    nodes_[i].addresses.clear();
  }
  CGRT_ASSIGN_OR_RETURN(AddressGuard child, read(params.graph.graph, nullptr, context_, own_memory_));
  for (std::size_t i = 0; i < std::min(inside.size(), child.nodes_.size()); ++i) {
    nodes_[inside[i]].addresses = std::move(child.nodes_[i].addresses);
    nodes_[inside[i]].function = child.nodes_[i].function;
  }
  return absl::OkStatus();
}

void AddressGuard::set_enabled(CUgraphNode node, bool is_enabled) {
  const auto found = ids_.find(node);
  if (found == ids_.end()) return;
  nodes_[found->second].is_enabled = is_enabled;
  is_distinct_known_ = false;
}

absl::Status AddressGuard::follow(const RebindState& state) {
  is_distinct_known_ = false;
  Resolver resolver(own_memory_);
  std::vector<std::vector<Address>> before(state.nodes().size());
  const auto id_of = [&](std::uint32_t node) {
    const auto found = ids_.find(state.nodes()[node].handle);
    return found != ids_.end() ? found->second : kNoNode;
  };
  for (std::uint32_t i = 0; i < before.size(); ++i) {
    const std::uint32_t id = id_of(i);
    if (id == kNoNode) continue;
    before[i] = std::exchange(nodes_[id].addresses, {});
    nodes_[id].is_enabled = state.is_enabled(state.nodes()[i]);
  }
  for (const RebindState::Address& now : state.addresses_in(0, std::numeric_limits<std::size_t>::max())) {
    const std::uint32_t id = id_of(now.node);
    if (id == kNoNode) continue;
    const bool is_kernel = state.nodes()[now.node].type == CU_GRAPH_NODE_TYPE_KERNEL;
    const std::uint32_t number = is_kernel ? state.word(now.word_or_operand).argument : now.word_or_operand;
    const std::vector<Address>& old = before[now.node];
    const auto same = std::find_if(old.begin(), old.end(), [&](const Address& address) {
      return address.number == number && address.value == now.value;
    });
    if (same != old.end()) {
      nodes_[id].addresses.push_back(*same);
    } else {
      CGRT_RETURN_IF_ERROR(resolver.add_word(number, now.value, nodes_[id].addresses));
    }
  }
  return absl::OkStatus();
}

void AddressGuard::take(AddressGuard&& other) {
  is_distinct_known_ = false;
  own_memory_ = std::move(other.own_memory_);
  for (std::size_t i = 0; i < std::min(nodes_.size(), other.nodes_.size()); ++i) {
    nodes_[i].addresses = std::move(other.nodes_[i].addresses);
    nodes_[i].function = other.nodes_[i].function;
  }
}

void AddressGuard::find_distinct() {
  distinct_.clear();
  for (const Node& node : nodes_) {
    if (!node.is_enabled) continue;
    for (const Address& address : node.addresses) distinct_.emplace_back(address.buffer_id, address.value);
  }
  std::sort(distinct_.begin(), distinct_.end());
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end(), is_same), distinct_.end());
  is_distinct_known_ = true;
}

absl::Status AddressGuard::check() {
  if (!is_distinct_known_) find_distinct();
  for (const auto& [was, address] : distinct_) {
    CGRT_ASSIGN_OR_RETURN(const std::uint64_t is, buffer_id_of(address));
    if (is != was) return explain(was, is);
  }
  return absl::OkStatus();
}

// Asks nothing about the node itself, whose graph may be another thread's, or without it by now.
std::string AddressGuard::describe(const Node& node) {
  const char* symbol = nullptr;
  if (node.function != nullptr && driver::api().FuncGetName(&symbol, node.function) == CUDA_SUCCESS) {
    return absl::StrCat("kernel \"", function_name(symbol), "\"");
  }
  return to_string(static_cast<ir::NodeKind>(node.type));
}

absl::Status AddressGuard::explain(std::uint64_t was, std::uint64_t is) const {
  std::string first;
  std::size_t others = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const auto found = std::find_if(node.addresses.begin(), node.addresses.end(),
                                    [&](const Address& address) { return address.buffer_id == was; });
    if (found == node.addresses.end() || !node.is_enabled) continue;
    if (!first.empty()) {
      ++others;
      continue;
    }
    std::string what = found->number == 0 ? "the destination" : "the source";
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) what = absl::StrCat("argument ", found->number);
    if (node.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) what = absl::StrCat("operation ", found->number);
    first = absl::StrCat(what, " of ", describe(node), " (node ", i, ") is 0x", absl::Hex(found->value), ", in ",
                         found->memory.bytes, " bytes of ", to_string(found->memory.kind), " memory");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "Nothing was launched: ", first, " that were freed after the node got it",
      is != 0 ? ", and other memory is there now" : "", ". ",
      others != 0 ? absl::StrCat(counted(others, "other node"), " of this executable ", others == 1 ? "has" : "have",
                                 " addresses in it. ")
                  : "",
      "Keep memory while executables have its address (Graph::keep), or set these nodes before the launch."));
}

}  // namespace cgrt::internal
