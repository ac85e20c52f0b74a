// Batch memory operations: values in memory that work waits for and writes, in every target.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

struct Words {
  static absl::StatusOr<Words> create(World& world) {
    Words words;
    CGRT_ASSIGN_OR_RETURN(words.stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(words.side, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(words.buffer, PinnedBuffer::create(world.device(), 64));
    for (int i = 0; i < 8; ++i) words.buffer.as<volatile std::uint64_t>()[i] = 0;
    return words;
  }
  std::uint32_t* small(int i) const { return buffer.as<std::uint32_t>() + i; }
  std::uint64_t* large(int i) const { return buffer.as<std::uint64_t>() + i; }
  Stream stream, side;
  PinnedBuffer buffer;
};

BEHAVIOUR("batch memory operations: a stream waits for a word that another stream, a graph or the host writes") {
  CGRT_ASSIGN_OR_RETURN(const Words words, Words::create(world));
  const auto wait = [&](std::uint32_t value) -> absl::Status {
    CGRT_RETURN_IF_ERROR(wait_value(words.stream, words.small(0), value));
    return write_value(words.stream, words.large(1), std::uint64_t{value} << 40);
  };
  const auto note = [&](const char* name) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(const bool is_complete, words.stream.ref().is_complete());
    notes.line(absl::StrCat(name, ": ", is_complete ? "done" : "pending"));
    return absl::OkStatus();
  };
  CGRT_RETURN_IF_ERROR(wait(1));
  CGRT_RETURN_IF_ERROR(note("before another stream writes"));
  CGRT_RETURN_IF_ERROR(write_value(words.side, words.small(0), 1u));
  CGRT_RETURN_IF_ERROR(words.stream.ref().synchronize());
  notes.line(absl::StrCat("another stream: ", *words.large(1) >> 40));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(write_value(graph.cursor(), words.small(0), 2u));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(wait(2));
  CGRT_RETURN_IF_ERROR(note("before a graph writes"));
  CGRT_RETURN_IF_ERROR(exec.launch(words.side));
  CGRT_RETURN_IF_ERROR(words.stream.ref().synchronize());
  notes.line(absl::StrCat("a graph: ", *words.large(1) >> 40));
  CGRT_RETURN_IF_ERROR(wait(3));
  CGRT_RETURN_IF_ERROR(note("before the host writes"));
  *static_cast<volatile std::uint32_t*>(words.small(0)) = 3;
  CGRT_RETURN_IF_ERROR(words.stream.ref().synchronize());
  notes.line(absl::StrCat("the host: ", *words.large(1) >> 40));
  return absl::OkStatus();
}

BEHAVIOUR("batch memory operations: several are one node, captured and built, and are set in both") {
  CGRT_ASSIGN_OR_RETURN(const Words words, Words::create(world));
  const MemoryOp ops[] = {wait_op(words.small(0), 5u, WaitCondition::kEqual), write_op(words.small(1), 6u),
                          wait_op(words.small(1), 2u, WaitCondition::kAnd), write_op(words.large(2), std::uint64_t{7})};
  CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(words.stream, [&](StreamRef s) { return memory_ops(s, ops); }));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const BatchMemOpNode node, graph.add_memory_ops({}, ops));
  CGRT_RETURN_IF_ERROR(notes.graph("built", graph));
  const auto run = [&](const char* name, GraphExec& exec) -> absl::Status {
    *words.small(0) = *words.small(1) = 0;
    *words.large(2) = 0;
    CGRT_RETURN_IF_ERROR(exec.launch(words.side));
    CGRT_ASSIGN_OR_RETURN(const bool is_early, words.side.ref().is_complete());
    CGRT_RETURN_IF_ERROR(write_value(words.stream, words.small(0), 5u));
    CGRT_RETURN_IF_ERROR(words.side.ref().synchronize());
    notes.line(
        absl::StrCat(name, ": ", is_early ? "did not wait" : "waited", ", ", *words.small(1), " ", *words.large(2)));
    return absl::OkStatus();
  };
  CGRT_ASSIGN_OR_RETURN(GraphExec captured_exec, instantiate(captured));
  CGRT_RETURN_IF_ERROR(run("captured", captured_exec));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run("built", exec));
  MemoryOp others[] = {ops[0], ops[1], ops[2], write_op(words.large(2), std::uint64_t{70})};
  notes.status("set in the executable", exec.set_params(node, others));
  CGRT_RETURN_IF_ERROR(run("set in the executable", exec));
  others[1].value = 10;
  notes.status("set in the definition", graph.set_params(node, others));
  CGRT_ASSIGN_OR_RETURN(GraphExec fresh, instantiate(graph));
  CGRT_RETURN_IF_ERROR(run("set in the definition", fresh));
  notes.status("update by it", exec.update(graph));
  CGRT_RETURN_IF_ERROR(run("update by it", exec));
  notes.status("fewer", exec.set_params(node, {others, 2}));
  CGRT_ASSIGN_OR_RETURN(const BatchMemOpNode found, find_node<BatchMemOpNode>(captured, {}));
  notes.status("found in the captured graph", captured_exec.set_params(found, others));
  return run("found in the captured graph", captured_exec);
}

BEHAVIOUR("batch memory operations: every condition, of both sizes") {
  CGRT_ASSIGN_OR_RETURN(const Words words, Words::create(world));
  struct Case {
    const char* name;
    WaitCondition condition;
    std::uint32_t value, first, then;  // what is there at first does not meet it
  };
  const Case cases[] = {{">=", WaitCondition::kGreaterOrEqual, 10, 9, 11},
                        {">=, cyclic", WaitCondition::kGreaterOrEqual, 5, 0x80000010u, 0xFFFFFFFFu},
                        {"==", WaitCondition::kEqual, 10, 11, 10},
                        {"&", WaitCondition::kAnd, 6, 9, 2},
                        {"nor", WaitCondition::kNor, 0x7FFFFFFFu, 0x80000000u, 0}};
  for (const Case& one : cases) {
    for (const bool is_large : {false, true}) {
      if (is_large && one.value >= 5 && one.first > 0xFFFF) continue;  // of 32 bits
      std::uint64_t* const word = words.large(4);
      *word = one.first;
      CGRT_RETURN_IF_ERROR(is_large ? wait_value(words.stream, word, std::uint64_t{one.value}, one.condition)
                                    : wait_value(words.stream, words.small(8), one.value, one.condition));
      CGRT_ASSIGN_OR_RETURN(const bool is_early, words.stream.ref().is_complete());
      *static_cast<volatile std::uint64_t*>(word) = one.then == 0xFFFFFFFFu ? 5 : one.then;
      CGRT_RETURN_IF_ERROR(words.stream.ref().synchronize());
      notes.line(
          absl::StrCat(one.name, is_large ? ", 8 bytes: " : ", 4 bytes: ", is_early ? "did not wait" : "waited"));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("batch memory operations: what cannot be is refused") {
  CGRT_ASSIGN_OR_RETURN(const Words words, Words::create(world));
  const auto refused = [&](const char* name, const absl::Status& status, const char* part) {
    notes.status(name, status);
    EXPECT(absl::StrContains(status.message(), part));
  };
  std::uint32_t* const null = nullptr;
  auto* const askew = reinterpret_cast<std::uint64_t*>(words.small(1));
  refused("none", memory_ops(words.stream, {}), "no memory operation");
  refused("at null", write_value(words.stream, null, 1u), "not null");
  refused("8 bytes at a multiple of 4", write_value(words.stream, askew, std::uint64_t{1}), "multiple of the size");
  std::uint32_t local = 0;
  refused("memory of the host that is not pinned", write_value(words.stream, &local, 1u), "1 memory operation");
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  refused("the same, built", write_value(graph.cursor(), &local, 1u), "nor pinned memory");
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional branch, graph.add_if({}, handle));
  refused("in a conditional body", write_value(branch.bodies[0].cursor(), words.small(0), 1u),
          "cannot hold a node of the kind \"batch mem op\"");
  return absl::OkStatus();
}

BEHAVIOUR("batch memory operations: they follow in a rebound step, and their addresses a buffer") {
  for (const char* how : {"built", "captured"}) {
    CGRT_ASSIGN_OR_RETURN(const Words words, Words::create(world));
    CGRT_ASSIGN_OR_RETURN(const Words others, Words::create(world));
    const auto step = [&](LaunchTarget target, int at, std::uint32_t value) -> absl::Status {
      CGRT_RETURN_IF_ERROR(write_value(target, words.small(at), value));
      const MemoryOp both[] = {wait_op(words.small(at), value), write_op(words.large(3), std::uint64_t{value} << 33)};
      return memory_ops(target, both);
    };
    const auto run = [&](GraphExec& exec, const char* name) -> absl::Status {
      CGRT_RETURN_IF_ERROR(exec.launch(words.stream));
      CGRT_RETURN_IF_ERROR(words.stream.ref().synchronize());
      notes.line(absl::StrCat(how, ", ", name, ": ", *words.small(0), ", ", *words.small(1), ", ", *words.large(3),
                              "; ", *others.small(1), ", ", *others.large(3)));
      return absl::OkStatus();
    };
    const auto first = [&](LaunchTarget target) { return step(target, 0, 4); };
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    if (how == std::string("built")) {
      Cursor cursor = graph.cursor();
      CGRT_RETURN_IF_ERROR(first(cursor));
    } else {
      CGRT_ASSIGN_OR_RETURN(graph, capture(words.stream, first));
    }
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
    CGRT_RETURN_IF_ERROR(run(exec, "as made"));
    CGRT_ASSIGN_OR_RETURN(const Binding as_made, exec.prepare(first));
    notes.status("another word and value", exec.rebind([&](LaunchTarget target) { return step(target, 1, 5); }));
    CGRT_RETURN_IF_ERROR(run(exec, "rebound"));
    const absl::Status fewer = exec.rebind([&](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(write_value(target, words.small(0), 6u));
      return write_value(target, words.large(3), std::uint64_t{6});
    });
    notes.status("fewer", fewer);
    EXPECT(absl::StrContains(fewer.message(), "has 2 memory operations, and this is a batch of 1"));
    CGRT_RETURN_IF_ERROR(run(exec, "after a refusal"));
    CGRT_ASSIGN_OR_RETURN(const std::vector<BufferUse> uses, exec.find_buffer(words.buffer.data(), 64));
    for (const BufferUse& use : uses) notes.line(absl::StrCat(use.text, ", offset ", use.offset));
    notes.status("to another buffer", exec.rebind_buffer(words.buffer.data(), 64, others.buffer.data()).status());
    CGRT_RETURN_IF_ERROR(run(exec, "in another buffer"));
    notes.status("as prepared", exec.rebind(as_made));
    CGRT_RETURN_IF_ERROR(run(exec, "as prepared"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
