#include "cgrt/saved/aligned.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>
#include <variant>

#include "cgrt/ir/in_terms_of.h"
#include "cgrt/ir/named.h"
#include "cgrt/saved/manifest.h"

namespace cgrt::saved {
namespace {

// The parameters of a kernel node in both graphs, if they are those of the same function.
struct KernelPair {
  std::uint32_t node = 0;
  ir::KernelParams *first = nullptr, *second = nullptr;
};

std::vector<KernelPair> kernel_pairs(ir::GraphIr& first, ir::GraphIr& second) {
  std::vector<KernelPair> pairs;
  for (std::uint32_t id = 0; id < std::min(first.nodes.size(), second.nodes.size()); ++id) {
    auto* const a = std::get_if<ir::KernelParams>(&first.nodes[id].params);
    auto* const b = std::get_if<ir::KernelParams>(&second.nodes[id].params);
    const bool is_pair = a != nullptr && b != nullptr && a->arguments.size() == b->arguments.size() &&
                         function_of(first, *a) == function_of(second, *b);
    if (is_pair) pairs.push_back({id, a, b});
  }
  return pairs;
}

const ir::InnerPointer* find(const std::vector<ir::InnerPointer>& pointers, std::uint32_t at) {
  const auto found = std::lower_bound(pointers.begin(), pointers.end(), at,
                                      [](const ir::InnerPointer& one, std::uint32_t value) { return one.at < value; });
  return found != pointers.end() && found->at == at ? &*found : nullptr;
}

// Takes those out that `is_same` does not hold for.
template <class IsSame>
void take_pointers(const KernelPair& pair, std::vector<OtherPointer>& taken, IsSame is_same) {
  std::set<std::uint32_t> places;
  for (const ir::KernelParams* kernel : {pair.first, pair.second}) {
    for (const ir::InnerPointer& one : kernel->pointers) places.insert(one.at);
  }
  for (const std::uint32_t at : places) {
    const ir::InnerPointer *const a = find(pair.first->pointers, at), *const b = find(pair.second->pointers, at);
    if (a != nullptr && b != nullptr && is_same(*a, *b)) continue;
    taken.push_back({pair.node, at, a != nullptr ? std::optional(a->pointer) : std::nullopt, b != nullptr});
    for (ir::KernelParams* kernel : {pair.first, pair.second}) {
      std::erase_if(kernel->pointers, [&](const ir::InnerPointer& one) { return one.at == at; });
      std::fill_n(kernel->arguments.begin() + at, kAddressBytes, std::uint8_t{0});
    }
  }
}

void take_bytes(const ir::GraphIr& graph, const KernelPair& pair, std::vector<OtherBytes>& taken) {
  for (const ir::Parameter& parameter : function_of(graph, *pair.first).parameters) {
    const std::span<std::uint8_t> a = std::span(pair.first->arguments).subspan(parameter.offset, parameter.size);
    const std::span<std::uint8_t> b = std::span(pair.second->arguments).subspan(parameter.offset, parameter.size);
    if (std::equal(a.begin(), a.end(), b.begin())) continue;
    taken.push_back({pair.node, parameter.offset, {a.begin(), a.end()}, {b.begin(), b.end()}});
    std::fill(a.begin(), a.end(), std::uint8_t{0});
    std::fill(b.begin(), b.end(), std::uint8_t{0});
  }
}

// Sets `second` to itself in terms of `first`.
void renumber(const ir::GraphIr& first, ir::GraphIr& second, std::vector<std::optional<std::uint32_t>>& allocations) {
  std::vector<std::uint32_t> same(first.nodes.size());
  std::iota(same.begin(), same.end(), 0u);
  ir::GraphIr now = ir::in_terms_of(first, second, same);
  for (std::size_t id = 0; id < now.nodes.size(); ++id) {
    std::vector<std::uint32_t> before;
    ir::visit_named(second.nodes[id], [&](ir::Named named, std::uint32_t number) {
      if (named == ir::Named::kAllocation) before.push_back(number);
    });
    auto next = before.begin();
    ir::visit_named(now.nodes[id], [&](ir::Named named, std::uint32_t number) {
      if (named != ir::Named::kAllocation) return;
      if (number < allocations.size()) allocations[number] = *next;
      ++next;
    });
    now.nodes[id].body = second.nodes[id].body;
  }
  now.edges = std::move(second.edges);
  now.bodies = std::move(second.bodies);
  second = std::move(now);
}

bool uses_allocations_from(const ir::GraphIr& graph, std::size_t first) {
  bool uses = false;
  for (const ir::Node& node : graph.nodes) {
    ir::visit_named(node, [&](ir::Named named, std::uint32_t number) {
      uses = uses || (named == ir::Named::kAllocation && number >= first);
    });
  }
  return uses;
}

template <class Part>
void add_bytes_moved_by(std::uint64_t distance, std::span<const std::uint8_t> first,
                        std::span<const std::uint8_t> second, std::set<std::uint32_t>& moved) {
  constexpr int kMaxShift = 12;
  for (std::size_t at = 0; at + sizeof(Part) <= first.size(); ++at) {
    Part a = 0, b = 0;
    std::memcpy(&a, first.data() + at, sizeof(Part));
    std::memcpy(&b, second.data() + at, sizeof(Part));
    if (a == b) continue;
    const auto difference = static_cast<Part>(b - a);
    for (int shift = 0; shift <= kMaxShift; ++shift) {
      const auto part = static_cast<Part>(static_cast<std::int64_t>(distance) >> shift);
      if (difference != part && (shift == 0 || difference != static_cast<Part>(part + 1))) continue;
      for (std::size_t i = at; i < at + sizeof(Part); ++i) {
        if (first[i] != second[i]) moved.insert(static_cast<std::uint32_t>(i));
      }
      break;
    }
  }
}

}  // namespace

AlignedGraphs align(const ir::GraphIr& first, const ir::GraphIr& second) {
  AlignedGraphs out{.first = first, .second = second};
  out.allocations.resize(first.allocations.size());
  if (first.nodes.size() != second.nodes.size()) return out;
  for (const KernelPair& pair : kernel_pairs(out.first, out.second)) {
    take_pointers(pair, out.pointers, [](const auto&, const auto&) { return true; });
  }
  renumber(out.first, out.second, out.allocations);
  for (const KernelPair& pair : kernel_pairs(out.first, out.second)) {
    take_pointers(pair, out.pointers, [](const auto& a, const auto& b) { return a.pointer == b.pointer; });
    take_bytes(out.first, pair, out.bytes);
  }
  const std::size_t count = out.first.allocations.size();
  if (!uses_allocations_from(out.second, count)) out.second.allocations.resize(count);
  for (std::size_t i = 0; i < count; ++i) out.second.allocations[i].bytes = out.first.allocations[i].bytes;
  return out;
}

std::set<std::uint32_t> bytes_moved_by(std::uint64_t distance, std::span<const std::uint8_t> first,
                                       std::span<const std::uint8_t> second) {
  std::set<std::uint32_t> moved;
  add_bytes_moved_by<std::uint64_t>(distance, first, second, moved);
  add_bytes_moved_by<std::uint32_t>(distance, first, second, moved);
  return moved;
}

}  // namespace cgrt::saved
