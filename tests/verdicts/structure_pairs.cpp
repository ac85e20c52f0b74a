// Events, host functions, operations on memory, conditional nodes, memory of graphs, topology and order.
#include "verdicts/pairs.h"

namespace cgrt::testing {
namespace {

using ir::Rung;
using ir::Update;

absl::StatusOr<KernelNode> add_scale(const World& w, Graph& graph, Dependencies before, int to, float factor) {
  return graph.add_kernel(before, kConfig, scale_kernel(), w.x(to), w.x(0), factor, kCount);
}
absl::StatusOr<MemsetNode> add_fill(const World& w, Graph& graph, Dependencies before, int at, std::uint32_t value) {
  return graph.add_fill(before, {w.x(at), value, 4, kCount});
}

struct Adder {
  std::vector<Pair>& pairs;
  void operator()(const char* name, Build a, Build b, Rung rung, Update update, Traits traits = {}) const {
    pairs.push_back({name, std::move(a), std::move(b), nullptr, rung, update, traits});
  }
};

void add_host(void* data) { static_cast<float*>(data)[0] = 1; }
void add_host_again(void* data) { static_cast<float*>(data)[0] = 2; }

void add_events_and_operations(const Adder& add) {
  const auto records = [](bool is_other) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const EventRecordNode node, graph.add_event_record({}, w.first.ref()));
      return graph.add_event_record(after(node), is_other ? w.second.ref() : w.first.ref()).status();
    };
  };
  add("another event recorded", records(false), records(true), Rung::kSetParams, Update::kTaken);
  const auto waits = [](bool is_other) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const EventWaitNode node, graph.add_event_wait({}, w.recorded.ref()));
      return graph.add_event_wait(after(node), is_other ? w.second.ref() : w.recorded.ref()).status();
    };
  };
  add("another event waited for", waits(false), waits(true), Rung::kSetParams, Update::kTaken);
  const auto calls = [](CUhostFn function) {
    return [=](const World& w, Graph& graph) { return graph.add_host({}, function, w.h(3)).status(); };
  };
  add("another host function, which a file does not show", calls(add_host), calls(add_host_again), Rung::kNone,
      Update::kTaken, {.is_moved = true});

  const auto does = [](auto make) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      const std::vector<MemoryOp> ops = make(w);
      return graph.add_memory_ops({}, ops).status();
    };
  };
  const auto writes = [&](std::uint32_t value, int at = 0) {
    return does([=](const World& w) { return std::vector{write_op(w.word(at), value)}; });
  };
  const auto waits_for = [&](std::uint32_t value, WaitCondition condition) {
    return does([=](const World& w) { return std::vector{wait_op(w.word(0), value, condition)}; });
  };
  constexpr const char* kAnyOperation = "compares the number of operations only";
  add("another value written", writes(5), writes(6), Rung::kSetParams, Update::kTaken);
  add("a value written elsewhere", writes(5), writes(5, 1), Rung::kSetParams, Update::kTaken);
  add("another condition waited for", waits_for(0, WaitCondition::kEqual), waits_for(4, WaitCondition::kNor),
      Rung::kSetParams, Update::kTaken);
  add("a write in the place of a wait", waits_for(0, WaitCondition::kEqual), writes(5), Rung::kInstantiate,
      Update::kRefused, {.lenient = kAnyOperation});
  add("a longer word written", writes(5), does([](const World& w) {
        return std::vector{write_op(reinterpret_cast<std::uint64_t*>(w.word(0)), std::uint64_t{5})};
      }),
      Rung::kInstantiate, Update::kRefused, {.lenient = kAnyOperation});
  add("one value more written", writes(5), does([](const World& w) {
        return std::vector{write_op(w.word(0), 5u), write_op(w.word(1), 6u)};
      }),
      Rung::kInstantiate, Update::kRefused);
}

// One conditional node whose bodies scale, each into a place of its own.
enum class Kind { kIf, kIfElse, kWhile, kSwitch };
Build conditional(Kind kind, unsigned at_launch, float factor = 2, unsigned bodies = 2, int kernels = 1) {
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, graph.add_conditional_handle(at_launch));
    absl::StatusOr<Conditional> node = kind == Kind::kIf       ? graph.add_if({}, handle)
                                       : kind == Kind::kIfElse ? graph.add_if_else({}, handle)
                                       : kind == Kind::kWhile  ? graph.add_while({}, handle)
                                                               : graph.add_switch({}, handle, bodies);
    CGRT_RETURN_IF_ERROR(node.status());
    for (std::size_t i = 0; i < node->bodies.size(); ++i) {
      Cursor cursor = node->bodies[i].cursor();
      for (int k = 0; k < kernels; ++k) {
        CGRT_RETURN_IF_ERROR(
            launch(cursor, kConfig, scale_kernel(), w.x(static_cast<int>(i) + 1), w.x(0), factor, kCount));
      }
    }
    return absl::OkStatus();
  };
}

void add_conditionals(const Adder& add) {
  add("a scalar in a conditional body", conditional(Kind::kIf, 1), conditional(Kind::kIf, 1, 3), Rung::kSetParams,
      Update::kTaken);
  add("another value at launch", conditional(Kind::kIf, 0), conditional(Kind::kIf, 1), Rung::kWholeUpdate,
      Update::kTaken);
  add("another value at launch, and a scalar", conditional(Kind::kSwitch, 0), conditional(Kind::kSwitch, 1, 3),
      Rung::kWholeUpdate, Update::kTaken);
  add("while in the place of if", conditional(Kind::kIf, 0), conditional(Kind::kWhile, 0), Rung::kInstantiate,
      Update::kRefused);
  add("an else body more", conditional(Kind::kIf, 0), conditional(Kind::kIfElse, 0), Rung::kInstantiate,
      Update::kRefused);
  add(
      "an empty else body more", conditional(Kind::kIf, 1, 2, 1, 1),
      [](const World& w, Graph& graph) -> absl::Status {
        CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, graph.add_conditional_handle(1));
        CGRT_ASSIGN_OR_RETURN(Conditional node, graph.add_if_else({}, handle));
        return launch(node.bodies[0].cursor(), kConfig, scale_kernel(), w.x(1), w.x(0), 2.0f, kCount);
      },
      Rung::kInstantiate, Update::kRefused);
  add("a body more of a switch", conditional(Kind::kSwitch, 1), conditional(Kind::kSwitch, 1, 2, 3), Rung::kInstantiate,
      Update::kRefused);
  add("a kernel more in a conditional body", conditional(Kind::kIf, 1), conditional(Kind::kIf, 1, 2, 2, 2),
      Rung::kInstantiate, Update::kRefused);
}

// Memory of the graph's own: the kernel writes it, a copy brings it to a place that stays.
Build allocating(std::size_t bytes, float factor) {
  return [=](const World& w, Graph& graph) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const GraphAllocation memory, graph.add_alloc({}, bytes));
    auto* const data = static_cast<float*>(memory.address);
    CGRT_ASSIGN_OR_RETURN(const KernelNode scaled,
                          graph.add_kernel(after(memory.node), kConfig, scale_kernel(), data, w.x(0), factor, kCount));
    CGRT_ASSIGN_OR_RETURN(const MemcpyNode copied, graph.add_copy(after(scaled), w.x(2), data, kCount * sizeof(float)));
    return graph.add_free(after(copied), memory.address).status();
  };
}

void add_memory(const Adder& add) {
  add("memory of the graph at another address, which a file does not show", allocating(1024, 2), allocating(1024, 2),
      Rung::kNone, Update::kTaken, {.is_moved = true});
  add("a scalar beside memory of the graph", allocating(1024, 2), allocating(1024, 3), Rung::kRebind, Update::kTaken,
      {.is_moved = true});
  add("more memory of the graph", allocating(1024, 2), allocating(1 << 22, 2), Rung::kInstantiate, Update::kRefused,
      {.documented = "parameters of allocation nodes are not among those that an update may change"});
}

void add_topology(const Adder& add) {
  const auto chain = [](int kernels, bool ends_in_fill = false) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      Cursor cursor = graph.cursor();
      for (int i = 0; i < kernels; ++i) {
        CGRT_RETURN_IF_ERROR(launch(cursor, kConfig, scale_kernel(), w.x(i + 1), w.x(i), 2.0f, kCount));
      }
      return ends_in_fill ? fill32(cursor, w.x(9), 7, kCount) : absl::OkStatus();
    };
  };
  add("a kernel more", chain(2), chain(3), Rung::kInstantiate, Update::kRefused);
  add("a kernel less", chain(3), chain(2), Rung::kInstantiate, Update::kRefused);
  add("a memset in the place of a kernel", chain(3), chain(2, true), Rung::kInstantiate, Update::kRefused);
  const auto pair_of = [](bool has_edge) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const KernelNode first, add_scale(w, graph, {}, 1, 2));
      CGRT_ASSIGN_OR_RETURN(const MemsetNode second, add_fill(w, graph, {}, 2, 7));
      return has_edge ? graph.add_edge(first, second) : absl::OkStatus();
    };
  };
  add("an edge less", pair_of(true), pair_of(false), Rung::kInstantiate, Update::kRefused);
  add("an edge more", pair_of(false), pair_of(true), Rung::kInstantiate, Update::kRefused);
  const auto third_after = [](bool is_first) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const KernelNode first, add_scale(w, graph, {}, 1, 2));
      CGRT_ASSIGN_OR_RETURN(const MemsetNode second, add_fill(w, graph, {}, 2, 7));
      return is_first ? add_scale(w, graph, after(first), 3, 2).status()
                      : add_scale(w, graph, after(second), 3, 2).status();
    };
  };
  add("an edge from elsewhere", third_after(true), third_after(false), Rung::kInstantiate, Update::kRefused);
  add(
      "an empty node more", [](const World& w, Graph& graph) { return add_scale(w, graph, {}, 1, 2).status(); },
      [](const World& w, Graph& graph) -> absl::Status {
        CGRT_ASSIGN_OR_RETURN(const KernelNode first, add_scale(w, graph, {}, 1, 2));
        return graph.add_empty(after(first)).status();
      },
      Rung::kInstantiate, Update::kRefused);
}

// The same nodes and edges, made in another order.
void add_order(const Adder& add) {
  const auto two_kernels = [](bool is_swapped) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      for (const bool second : {is_swapped, !is_swapped}) {
        CGRT_RETURN_IF_ERROR(add_scale(w, graph, {}, second ? 2 : 1, second ? 5.0f : 3.0f).status());
      }
      return absl::OkStatus();
    };
  };
  add("two kernels that do not wait, made the other way round", two_kernels(false), two_kernels(true), Rung::kNone,
      Update::kTaken);
  const auto kernel_and_fill = [](bool is_swapped, float factor) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      if (is_swapped) CGRT_RETURN_IF_ERROR(add_fill(w, graph, {}, 2, 7).status());
      CGRT_RETURN_IF_ERROR(add_scale(w, graph, {}, 1, factor).status());
      return is_swapped ? absl::OkStatus() : add_fill(w, graph, {}, 2, 7).status();
    };
  };
  add("a kernel and a memset that do not wait, made the other way round", kernel_and_fill(false, 2),
      kernel_and_fill(true, 2), Rung::kNone, Update::kRefused);
  constexpr const char* kOrder = "nodes are paired by the order in which they and their edges were made";
  add("the same, and another scalar", kernel_and_fill(false, 2), kernel_and_fill(true, 3), Rung::kRebind,
      Update::kRefused);
  // A kernel, a memset, a kernel.
  const auto chain = [](bool is_backward) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      const auto scale = [&](int to) { return add_scale(w, graph, {}, to, 2); };
      CGRT_ASSIGN_OR_RETURN(const KernelNode one, scale(is_backward ? 4 : 1));
      CGRT_ASSIGN_OR_RETURN(const MemsetNode fill, add_fill(w, graph, {}, 2, 7));
      CGRT_ASSIGN_OR_RETURN(const KernelNode other, scale(is_backward ? 1 : 4));
      const KernelNode first = is_backward ? other : one, last = is_backward ? one : other;
      CGRT_RETURN_IF_ERROR(graph.add_edge(first, fill));
      return graph.add_edge(fill, last);
    };
  };
  add("a chain made from its end", chain(false), chain(true), Rung::kNone, Update::kRefused, {.documented = kOrder});
  const auto diamond = [](bool are_made_swapped, bool are_joined_swapped) {
    return [=](const World& w, Graph& graph) -> absl::Status {
      CGRT_ASSIGN_OR_RETURN(const EmptyNode fork, graph.add_empty({}));
      std::optional<KernelNode> scaled;
      if (!are_made_swapped) {
        CGRT_ASSIGN_OR_RETURN(scaled, add_scale(w, graph, after(fork), 1, 2));
      }
      CGRT_ASSIGN_OR_RETURN(const MemsetNode filled, add_fill(w, graph, after(fork), 2, 7));
      if (are_made_swapped) {
        CGRT_ASSIGN_OR_RETURN(scaled, add_scale(w, graph, after(fork), 1, 2));
      }
      if (are_joined_swapped) return add_scale(w, graph, after(filled, *scaled), 3, 2).status();
      return add_scale(w, graph, after(*scaled, filled), 3, 2).status();
    };
  };
  add("branches made the other way round, joined in the same order", diamond(false, false), diamond(true, false),
      Rung::kNone, Update::kRefused, {.documented = kOrder});
  add("branches joined in another order, which a file does not show", diamond(false, false), diamond(false, true),
      Rung::kNone, Update::kTaken, {.documented = kOrder});
}

}  // namespace

std::vector<Pair> structure_pairs() {
  std::vector<Pair> pairs;
  const Adder add{pairs};
  add_events_and_operations(add);
  add_conditionals(add);
  add_memory(add);
  add_topology(add);
  add_order(add);
  return pairs;
}

}  // namespace cgrt::testing
