#include "cgrt/exec/rebind_state.h"

#include <algorithm>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/ir/graph_ir.h"
#include "cgrt/launch/function_name.h"
#include "cgrt/launch/launch.h"
#include "cgrt/stream/capture_mode.h"

namespace cgrt::internal {
namespace {

// Whether a launch could have that grid, as far as it can be told without asking the driver.
bool is_grid_valid(const Dim3& grid, const Dim3& cluster) {
  return grid.count() != 0 && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535 && grid.x % cluster.x == 0 &&
         grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

absl::Status cannot_change(const std::string& kernel, const std::string& what, const std::string& was,
                           const std::string& wanted) {
  return absl::FailedPreconditionError(
      absl::StrCat("Kernel \"", kernel, "\": its node has ", what, " ", was, ", and this launch wants ", wanted,
                   ". Only arguments, grids and whether a node runs can change: build another executable "
                   "for this one."));
}

std::string name_of(CUfunction function) {
  const char* symbol = nullptr;
  const bool is_known = driver::api().FuncGetName(&symbol, function) == CUDA_SUCCESS;
  return is_known ? function_name(symbol) : "?";
}

}  // namespace

const RebindState::Node* RebindState::find(CUgraphNode handle) const {
  const auto found = positions_.find(handle);
  return found != positions_.end() ? &nodes_[found->second] : nullptr;
}

bool RebindState::is_enabled(const Node& node) const {
  return node.type == CU_GRAPH_NODE_TYPE_KERNEL ? values_[node.first_word + kEnabledWord] != 0 : enabled_[node.params];
}

std::string RebindState::describe(const Node& node) const {
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) return absl::StrCat("kernel \"", function_of(node).name, "\"");
  return to_string(static_cast<ir::NodeKind>(node.type));
}

absl::StatusOr<RebindState::KernelShape> RebindState::shape_of(const KernelLaunch& launch,
                                                               LaunchAttributes& storage) const {
  const driver::ResolvedFunction* function = nullptr;
  const CUresult result = driver::resolve_function(*launch.kernel, context_, &function);
  if (ABSL_PREDICT_FALSE(result != CUDA_SUCCESS)) {
    return explain_launch(driver::to_status(result, "cuKernelGetFunction"), launch, context_);
  }
  const bool is_plain = launch.attributes == nullptr && function->cluster == Dim3();
  if (!is_plain) {
    storage = normal_form(launch.attributes != nullptr ? *launch.attributes : LaunchAttributes{}, function->cluster);
  }
  return KernelShape{function->function, launch.grid, launch.block, launch.shared_bytes, is_plain ? nullptr : &storage};
}

absl::Status RebindState::read_captured(CUgraph captured, std::vector<CapturedNode>& nodes) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<CUgraphNode> handles, nodes_of(captured));
  for (CUgraphNode handle : handles) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().GraphNodeGetType(handle, &type), "cuGraphNodeGetType"));
    if (type == CU_GRAPH_NODE_TYPE_EMPTY) continue;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CGRT_ASSIGN_OR_RETURN(const CUgraph inside, graph_inside(handle));
      CGRT_RETURN_IF_ERROR(read_captured(inside, nodes));
      continue;
    }
    CapturedNode node{.handle = handle};
    CGRT_RETURN_IF_ERROR(read_params(handle, type, context_, node.params));
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CGRT_ASSIGN_OR_RETURN(node.attributes, attributes_of(handle, asked_));
    }
    nodes.push_back(node);
  }
  return absl::OkStatus();
}

std::shared_ptr<const RebindState::CapturedCall> RebindState::captured_call(CallKey key) const {
  if (key.empty()) return nullptr;
  const auto found = captured_calls_.find(std::vector<std::uint64_t>(key.begin(), key.end()));
  return found != captured_calls_.end() ? found->second : nullptr;
}

void RebindState::keep_captured(CallKey key, const std::shared_ptr<const CapturedCall>& call) {
  constexpr std::size_t kMost = 256;  // addresses that are others in every step would fill the memory
  if (captured_calls_.size() == kMost) captured_calls_.clear();
  captured_calls_.emplace(std::vector<std::uint64_t>(key.begin(), key.end()), call);
}

RebindState::KernelShape RebindState::shape_of(const CapturedNode& captured) {
  const auto& kernel = captured.params.kernel;
  return {kernel.func, Dim3(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ),
          Dim3(kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ), kernel.sharedMemBytes,
          captured.attributes.is_default() ? nullptr : &captured.attributes};
}

bool RebindState::is_same_kernel(const Node& kernel, const KernelShape& wanted) {
  if (kernel.type != CU_GRAPH_NODE_TYPE_KERNEL || wanted.function != kernel.function || wanted.block != kernel.block ||
      wanted.shared_bytes != kernel.shared_bytes) {
    return false;
  }
  if (ABSL_PREDICT_TRUE(wanted.attributes == nullptr && kernel.attributes.is_default())) return true;
  return are_interchangeable(kernel.attributes, wanted.attributes != nullptr ? *wanted.attributes : LaunchAttributes{});
}

const RebindState::Node* RebindState::find_kernel(std::size_t from, const KernelShape& wanted) const {
  const auto found = std::find_if(nodes_.begin() + static_cast<std::ptrdiff_t>(from), nodes_.end(),
                                  [&](const Node& node) { return is_same_kernel(node, wanted); });
  return found != nodes_.end() ? &*found : nullptr;
}

absl::StatusOr<const RebindState::Node*> RebindState::find_alternative(std::size_t from,
                                                                       const KernelLaunch& launch) const {
  LaunchAttributes storage;
  CGRT_ASSIGN_OR_RETURN(const KernelShape wanted, shape_of(launch, storage));
  return find_kernel(from, wanted);
}

absl::StatusOr<const RebindState::Node*> RebindState::find_alternative(std::size_t from,
                                                                       const CUgraphNodeParams& params) const {
  CGRT_ASSIGN_OR_RETURN(const OperandPlaces places, places_of(params));
  const auto found =
      std::find_if(nodes_.begin() + static_cast<std::ptrdiff_t>(from), nodes_.end(), [&](const Node& node) {
        return node.type == params.type && node.places == places && is_same_shape(current_params(node), params);
      });
  return found != nodes_.end() ? &*found : nullptr;
}

absl::StatusOr<const RebindState::Node*> RebindState::find_alternative(std::size_t from,
                                                                       const CapturedNode& captured) const {
  if (captured.params.type == CU_GRAPH_NODE_TYPE_KERNEL) return find_kernel(from, shape_of(captured));
  return find_alternative(from, captured.params);
}

namespace {

// Why a kernel that is not the node's cannot take its place.
[[gnu::cold]] absl::Status other_kernel(const RebindState::Node& kernel, const std::string& text, CUfunction function,
                                        const Dim3& block, std::uint32_t shared_bytes,
                                        const LaunchAttributes& attributes, const std::string& name) {
  if (function != kernel.function) {
    return absl::FailedPreconditionError(
        absl::StrCat("The node is ", text, ", and this launch is of kernel \"", name, "\"."));
  }
  if (block != kernel.block) return cannot_change(name, "block", to_text(kernel.block), to_text(block));
  if (shared_bytes != kernel.shared_bytes) {
    return cannot_change(name, "dynamic shared memory of", absl::StrCat(kernel.shared_bytes, " bytes"),
                         absl::StrCat(shared_bytes, " bytes"));
  }
  return attributes_differ(name, kernel.attributes, attributes);
}

}  // namespace

template <class Name>
absl::Status RebindState::change_grid(const Node& kernel, const Dim3& grid, Name name, Change& change) const {
  const std::uint64_t value = driver::grid_value(grid.x, grid.y, grid.z);
  const bool is_wide = ((grid.y | grid.z) >> 16) != 0;  // more than `value` has room for
  if (ABSL_PREDICT_TRUE(!is_wide && value == values_[kernel.first_word + kGridWord])) return absl::OkStatus();
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
  return absl::OkStatus();
}

absl::Status RebindState::change_grid(const Node& kernel, const Dim3& grid, Change& change) const {
  const absl::Status status = change_grid(
      kernel, grid, [&] { return function_of(kernel).name; }, change);
  if (!driver::cuda_result(status).has_value()) return status;
  const Dim3& cluster = kernel.attributes.cluster;
  return driver::annotate(
      status,
      absl::StrCat("Kernel \"", function_of(kernel).name, "\": the grid ", to_text(grid),
                   " must be from (1, 1, 1) to (2147483647, 65535, 65535)",
                   cluster == Dim3() ? "" : absl::StrCat(", and a multiple of the cluster ", to_text(cluster))));
}

template <class Name, class Argument>
absl::Status RebindState::change_words(const Node& kernel, const KernelShape& wanted, Name name, Argument argument,
                                       Change& change) const {
  if (ABSL_PREDICT_FALSE(!is_same_kernel(kernel, wanted))) {
    return other_kernel(kernel, describe(kernel), wanted.function, wanted.block, wanted.shared_bytes,
                        wanted.attributes != nullptr ? *wanted.attributes : LaunchAttributes{}, name());
  }
  CGRT_RETURN_IF_ERROR(change_grid(kernel, wanted.grid, name, change));
  for (std::uint32_t i = kernel.first_word + kArgumentWords; i < kernel.first_word + kernel.word_count; ++i) {
    const std::uint64_t now = load_word(argument(i), words_[i].within, words_[i].bytes);
    if (now != values_[i]) change.words.emplace_back(i, now);
  }
  return absl::OkStatus();
}

absl::Status RebindState::change_kernel(const Node& kernel, const KernelLaunch& launch, Change& change) const {
  LaunchAttributes storage;
  CGRT_ASSIGN_OR_RETURN(const KernelShape wanted, shape_of(launch, storage));
  const absl::Status status = change_words(
      kernel, wanted, [&] { return launch.kernel->name; },
      [&](std::uint32_t word) -> const void* { return launch.arguments[words_[word].argument]; }, change);
  if (ABSL_PREDICT_TRUE(status.ok())) return status;
  return driver::cuda_result(status).has_value() ? explain_launch(status, launch, context_) : status;
}

absl::Status RebindState::change_as(const Node& node, const CapturedNode& captured, Change& change) const {
  if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) {
    change_params(node, captured.params, change);
    return absl::OkStatus();
  }
  const auto& kernel = captured.params.kernel;
  const auto& parameters = function_of(node).parameters;
  return change_words(
      node, shape_of(captured), [&] { return name_of(kernel.func); },
      [&](std::uint32_t word) {
        const std::uint16_t argument = words_[word].argument;
        return argument_of(kernel.kernelParams, kernel.extra, argument, parameters[argument].offset);
      },
      change);
}

void RebindState::change_enabled(const Node& node, bool is_enabled, Change& change) const {
  if (this->is_enabled(node) == is_enabled) return;
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    change.words.emplace_back(node.first_word + kEnabledWord, is_enabled);
  } else {
    change.enabled.emplace_back(id_of(node), is_enabled);
  }
}

void RebindState::change_params(const Node& node, const CUgraphNodeParams& params, Change& change) const {
  if (!are_equal(params, current_params(node))) change.params.emplace_back(id_of(node), own(params));
}

absl::StatusOr<std::uint32_t> RebindState::first_word(const Node& kernel, std::size_t argument,
                                                      std::size_t bytes) const {
  const std::vector<Parameter>& parameters = function_of(kernel).parameters;
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("Kernel \"", function_of(kernel).name, "\" has ", what, "."));
  };
  if (argument >= parameters.size()) {
    return refuse(absl::StrCat(parameters.size(), " arguments, and none of number ", argument, ", counted from 0"));
  }
  if (parameters[argument].bytes != bytes) {
    return refuse(absl::StrCat(parameters[argument].bytes, " bytes in argument ", argument,
                               ", counted from 0, and the slot's type has ", bytes));
  }
  std::uint32_t word = kernel.first_word + kArgumentWords;
  while (words_[word].argument != argument) ++word;
  return word;
}

void RebindState::change_argument(std::uint32_t first_word, const void* value, std::size_t bytes,
                                  Change& change) const {
  std::uint32_t word = first_word;
  for (std::size_t done = 0; done < bytes; done += words_[word++].bytes) {
    const std::uint64_t now = load_word(value, words_[word].within, words_[word].bytes);
    if (now != values_[word]) change.words.emplace_back(word, now);
  }
}

RebindState::Values RebindState::values_after(const Change& change) const {
  Values values{id_, values_, params_, enabled_, change.used.value_or(Resources())};
  for (const auto& [node, params] : change.params) values.params[nodes_[node].params] = params;
  for (const auto& [node, is_enabled] : change.enabled) values.enabled[nodes_[node].params] = is_enabled;
  for (const auto& [word, value] : change.words) values.words[word] = value;
  return values;
}

template <class WantedOf>
RebindState::Change RebindState::change_to_wanted(WantedOf wanted_of) const {
  Change change;
  change.words.reserve(32);  // few differ, most often
  for (const Node& node : nodes_) {
    const Wanted wanted = wanted_of(node);
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      // Without alternatives no call says what runs: set_enabled does.
      if (has_alternatives_) change_enabled(node, wanted.words[kEnabledWord] != 0, change);
      if (has_alternatives_ && wanted.words[kEnabledWord] == 0) continue;
      const std::uint64_t* const now = &values_[node.first_word];
      // Kernels of libraries have a hundred words, which seldom change.
      if (std::memcmp(wanted.words, now, node.word_count * sizeof(*now)) == 0) continue;
      for (std::uint32_t i = 0; i < node.word_count; ++i) {
        if (wanted.words[i] == now[i] || i == kEnabledWord) continue;
        change.words.emplace_back(node.first_word + i, wanted.words[i]);
      }
      continue;
    }
    if (has_alternatives_) change_enabled(node, wanted.is_enabled, change);
    // What no call met has operands of another step, whose memory may be gone.
    if (has_alternatives_ && !wanted.is_enabled) continue;
    change_params(node, wanted.params->params, change);
  }
  return change;
}

RebindState::Change RebindState::change_to(const Values& values) const {
  Change change = change_to_wanted([&](const Node& node) {
    return node.type == CU_GRAPH_NODE_TYPE_KERNEL
               ? Wanted{&values.words[node.first_word], nullptr, true}
               : Wanted{nullptr, &values.params[node.params], values.enabled[node.params]};
  });
  change.used = values.used;
  return change;
}

RebindState::Change RebindState::change_to(const RebindState& whole, const std::vector<std::uint32_t>& nodes) const {
  return change_to_wanted([&](const Node& node) {
    const Node& of_whole = whole.nodes_[nodes[id_of(node)]];
    return node.type == CU_GRAPH_NODE_TYPE_KERNEL
               ? Wanted{&whole.values_[of_whole.first_word], nullptr, true}
               : Wanted{nullptr, &whole.params_[of_whole.params], whole.enabled_[of_whole.params]};
  });
}

absl::StatusOr<StreamRef> RebindState::capture_stream() {
  if (capture_stream_.ref().get() == nullptr) {
    CGRT_ASSIGN_OR_RETURN(capture_stream_, Stream::create(context_));
  }
  return capture_stream_.ref();
}

}  // namespace cgrt::internal
