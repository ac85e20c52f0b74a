// The calls of GraphExec that are for rebindable executables alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/driver/status.h"
#include "cgrt/exec/exec_state.h"
#include "cgrt/exec/explain_update.h"
#include "cgrt/exec/rebinder.h"
#include "cgrt/stream/keep.h"

namespace cgrt {

using internal::RebindState;

struct internal::BoundValues : RebindState::Values {};

namespace {

absl::Status run_calls(RebindState& state, CUcontext context, absl::FunctionRef<absl::Status(LaunchTarget)> step,
                       RebindState::Change& change) {
  internal::Rebinder rebinder(state, context, change);
  CGRT_RETURN_IF_ERROR(step(LaunchTarget::into(rebinder)));
  return rebinder.finish();
}

BufferUse use_of(const RebindState& state, const RebindState::Address& address, std::uintptr_t begin) {
  const RebindState::Node& node = state.nodes()[address.node];
  BufferUse use{.node = NodeRef(node.handle), .offset = address.value - begin, .is_certain = address.is_pointer};
  std::string what;
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    const RebindState::Word& word = state.word(address.word_or_operand);
    use.argument = word.argument;
    use.at = word.within;
    what = absl::StrCat("argument ", word.argument);
    if (word.within != 0) absl::StrAppend(&what, ", byte ", word.within);
  } else {
    use.at = address.word_or_operand;
    what = node.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? absl::StrCat("operation ", use.at)
           : use.at == 0                                ? "destination"
                                                        : "source";
  }
  use.text = absl::StrCat(what, " of ", state.describe(node), " (node ", address.node, ")");
  return use;
}

}  // namespace

absl::Status GraphExec::rebind(absl::FunctionRef<absl::Status(LaunchTarget)> step) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  // Both before the lock: destructors of what graphs and calls kept may come back here.
  collect_released();
  RebindState::Change change;
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  CGRT_RETURN_IF_ERROR(run_calls(*state_->rebind, state_->definition->context, step, change));
  return state_->take(std::move(change));
}

absl::StatusOr<Binding> GraphExec::prepare(absl::FunctionRef<absl::Status(LaunchTarget)> step) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  collect_released();  // before the lock, as above
  RebindState::Change change;
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  CGRT_RETURN_IF_ERROR(run_calls(*state_->rebind, state_->definition->context, step, change));
  return Binding(
      std::make_shared<const internal::BoundValues>(internal::BoundValues{state_->rebind->values_after(change)}));
}

absl::Status GraphExec::rebind(const Binding& binding) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  RebindState::Change change;  // before the lock, as above
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  const internal::BoundValues* const values = binding.values();
  if (values == nullptr || values->owner != state_->rebind->id()) return internal::not_of_this_executable("binding");
  change = state_->rebind->change_to(*values);
  return state_->take(std::move(change));
}

absl::StatusOr<std::pair<std::uint64_t, std::uint32_t>> GraphExec::find_slot(KernelNode node, std::size_t argument,
                                                                             std::size_t bytes) const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* kernel, state_->find_kernel(node));
  CGRT_ASSIGN_OR_RETURN(const std::uint32_t word, state_->rebind->first_word(*kernel, argument, bytes));
  return std::pair(state_->rebind->id(), word);
}

absl::Status GraphExec::set_slot(std::uint64_t executable, std::uint32_t word, const void* value, std::size_t bytes) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  if (executable != state_->rebind->id()) return internal::not_of_this_executable("slot");
  RebindState::Change change;
  state_->rebind->change_argument(word, value, bytes, change);
  return state_->take(std::move(change));
}

absl::Status GraphExec::set_grid(KernelNode node, Dim3 grid) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  CGRT_ASSIGN_OR_RETURN(const RebindState::Node* kernel, state_->find_kernel(node));
  RebindState::Change change;
  CGRT_RETURN_IF_ERROR(state_->rebind->change_grid(*kernel, grid, change));
  return state_->take(std::move(change));
}

absl::StatusOr<std::vector<BufferUse>> GraphExec::find_buffer(const void* buffer, std::size_t bytes) const {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
  std::vector<BufferUse> uses;
  for (const RebindState::Address& address : state_->rebind->addresses_in(begin, bytes)) {
    uses.push_back(use_of(*state_->rebind, address, begin));
  }
  return uses;
}

absl::StatusOr<std::size_t> GraphExec::rebind_buffer(const void* old, std::size_t bytes, void* replacement) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  const auto begin = reinterpret_cast<std::uintptr_t>(old);
  if (const std::string user = state_->rebind->user_in_bodies(begin, bytes); !user.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("The ", user,
                     " in the body of a conditional node has an address of the buffer, and an executable cannot change "
                     "nodes there. Let bodies use buffers that stay, or build the graph anew."));
  }
  const std::vector<RebindState::Address> found = state_->rebind->addresses_in(begin, bytes);
  RebindState::Change change;
  for (const RebindState::Address& address : found) {
    state_->rebind->change_address(address, address.value - begin + reinterpret_cast<std::uintptr_t>(replacement),
                                   change);
  }
  CGRT_RETURN_IF_ERROR(state_->take(std::move(change)));
  return found.size();
}

absl::Status GraphExec::rebind_buffer(absl::Span<const BufferUse> uses, void* replacement) {
  if (ABSL_PREDICT_FALSE(state_ == nullptr)) return driver::empty_object("GraphExec");
  const std::lock_guard lock(state_->mutex);
  if (state_->rebind == nullptr) return internal::not_rebindable();
  RebindState::Change change;
  for (const BufferUse& use : uses) {
    const absl::StatusOr<RebindState::Address> address =
        state_->rebind->address_of(use.node.get(), use.argument, use.at);
    if (!address.ok()) return address.status();
    state_->rebind->change_address(*address, reinterpret_cast<std::uintptr_t>(replacement) + use.offset, change);
  }
  return state_->take(std::move(change));
}

}  // namespace cgrt
