// Where a RebindState's nodes have addresses of a buffer, and how these change.
#include <algorithm>
#include <type_traits>

#include "cgrt/exec/explain_update.h"
#include "cgrt/exec/rebind_state.h"

namespace cgrt::internal {
namespace {

template <class Address>
void set_number(Address& address, std::uintptr_t value) {
  if constexpr (std::is_pointer_v<Address>) {
    address = reinterpret_cast<Address>(value);
  } else {
    address = value;
  }
}

}  // namespace

std::vector<RebindState::Address> RebindState::addresses_in(std::uintptr_t begin, std::size_t bytes) const {
  const auto is_inside = [&](std::uint64_t address) { return address >= begin && address - begin < bytes; };
  std::vector<Address> found;
  for (const Node& node : nodes_) {
    if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) {
      visit_operands(current_params(node), [&](const auto& address, std::uint32_t operand) {
        if (is_inside(to_number(address))) found.push_back({id_of(node), operand, true, to_number(address)});
      });
      continue;
    }
    const std::vector<Parameter>& parameters = function_of(node).parameters;
    for (std::uint32_t i = node.first_word + kArgumentWords; i < node.first_word + node.word_count; ++i) {
      if (words_[i].bytes != sizeof(std::uintptr_t) || !is_inside(values_[i])) continue;
      found.push_back({id_of(node), i, parameters[words_[i].argument].is_pointer, values_[i]});
    }
  }
  return found;
}

std::string RebindState::user_in_bodies(std::uintptr_t begin, std::size_t bytes) const {
  for (const RebindState& body : bodies_) {
    const std::vector<Address> found = body.addresses_in(begin, bytes);
    if (!found.empty()) return body.describe(body.nodes_[found.front().node]);
  }
  return "";
}

void RebindState::change_address(const Address& address, std::uintptr_t value, Change& change) const {
  const Node& node = nodes_[address.node];
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    change.words.emplace_back(address.word_or_operand, value);
    return;
  }
  auto changed = std::find_if(change.params.begin(), change.params.end(),
                              [&](const auto& one) { return one.first == address.node; });
  if (changed == change.params.end()) {
    changed = change.params.emplace(changed, address.node, own(current_params(node)));
  }
  visit_operands(changed->second.params, [&](auto& operand_address, std::uint32_t operand) {
    if (operand == address.word_or_operand) set_number(operand_address, value);
  });
}

absl::StatusOr<RebindState::Address> RebindState::address_of(CUgraphNode handle, std::optional<std::size_t> argument,
                                                             std::size_t at) const {
  const Node* const node = find(handle);
  if (node == nullptr) return not_of_this_executable("use of a buffer");
  const bool is_kernel = node->type == CU_GRAPH_NODE_TYPE_KERNEL;
  if (is_kernel != argument.has_value()) return not_of_this_executable("use of a buffer");
  if (!is_kernel) {
    std::optional<Address> operand;
    visit_operands(current_params(*node), [&](const auto&, std::uint32_t number) {
      if (number == at) operand = Address{id_of(*node), number, true, 0};
    });
    return operand.has_value() ? absl::StatusOr<Address>(*operand) : not_of_this_executable("use of a buffer");
  }
  for (std::uint32_t i = node->first_word + kArgumentWords; i < node->first_word + node->word_count; ++i) {
    if (words_[i].argument != *argument || words_[i].within != at) continue;
    if (words_[i].bytes == sizeof(std::uintptr_t)) return Address{id_of(*node), i, true, 0};
  }
  return not_of_this_executable("use of a buffer");
}

}  // namespace cgrt::internal
