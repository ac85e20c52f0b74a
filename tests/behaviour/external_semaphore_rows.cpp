// External semaphores: made by Vulkan on a device, a word in a file on the simulator; in every target.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {
namespace {

// A timeline that two streams and the host use.
struct Timeline {
  static absl::StatusOr<Timeline> create(World& world) {
    CGRT_ASSIGN_OR_RETURN(TestSemaphore made, TestSemaphore::create(SemaphoreKind::kTimeline));
    CGRT_ASSIGN_OR_RETURN(ExternalSemaphore semaphore, made.imported());
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
    CGRT_ASSIGN_OR_RETURN(Stream side, Stream::create(world.device()));
    return Timeline{std::move(made), std::move(semaphore), std::move(stream), std::move(side)};
  }
  absl::Status note(const std::string& name, Notes& notes) const {
    CGRT_ASSIGN_OR_RETURN(const bool is_complete, stream.ref().is_complete());
    CGRT_ASSIGN_OR_RETURN(const std::uint64_t value, made.value());
    notes.line(absl::StrCat(name, ": ", is_complete ? "done" : "pending", ", value ", value));
    return absl::OkStatus();
  }
  absl::Status note_end(const std::string& name, Notes& notes) const {
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(side.ref().synchronize());
    return note(name, notes);
  }

  TestSemaphore made;
  ExternalSemaphore semaphore;
  Stream stream, side;
};

BEHAVIOUR("external semaphores: a stream waits for a value that the host, another stream or a graph signals") {
  CGRT_ASSIGN_OR_RETURN(const Timeline t, Timeline::create(world));
  const auto wait = [&](std::uint64_t value) -> absl::Status {
    CGRT_RETURN_IF_ERROR(wait_semaphore(t.stream, t.semaphore, value));
    return signal_semaphore(t.stream, t.semaphore, value + 1);
  };
  CGRT_RETURN_IF_ERROR(wait(1));
  CGRT_RETURN_IF_ERROR(t.note("before the host signals", notes));
  CGRT_RETURN_IF_ERROR(t.made.signal(1));
  CGRT_RETURN_IF_ERROR(t.note_end("the host", notes));
  CGRT_RETURN_IF_ERROR(wait(3));
  CGRT_RETURN_IF_ERROR(t.note("before another stream signals", notes));
  CGRT_RETURN_IF_ERROR(signal_semaphore(t.side, t.semaphore, 5));  // more than is waited for
  CGRT_RETURN_IF_ERROR(t.side.ref().synchronize());
  CGRT_RETURN_IF_ERROR(t.stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(wait(7));
  CGRT_RETURN_IF_ERROR(t.note("before a graph signals", notes));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(signal_semaphore(graph.cursor(), t.semaphore, 7));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(t.side));
  return t.note_end("a graph", notes);
}

BEHAVIOUR("external semaphores: a binary one is waited for once for each signal") {
  CGRT_ASSIGN_OR_RETURN(const TestSemaphore made, TestSemaphore::create(SemaphoreKind::kBinary));
  CGRT_ASSIGN_OR_RETURN(const ExternalSemaphore semaphore, made.imported());
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const Stream side, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_RETURN_IF_ERROR(wait_semaphore(graph.cursor(), semaphore));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  for (const bool is_graph : {false, true, false}) {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, side));
    CGRT_RETURN_IF_ERROR(signal_semaphore(side, semaphore));
    CGRT_RETURN_IF_ERROR(is_graph ? exec.launch(stream) : wait_semaphore(stream, semaphore));
    CGRT_ASSIGN_OR_RETURN(const bool is_early, stream.ref().is_complete());
    gate.open();
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_RETURN_IF_ERROR(side.ref().synchronize());
    notes.line(absl::StrCat(is_graph ? "graph: " : "stream: ", is_early ? "did not wait" : "waited"));
  }
  return absl::OkStatus();
}

BEHAVIOUR("external semaphores: several are one node, captured and built, and are set in both") {
  CGRT_ASSIGN_OR_RETURN(const Timeline a, Timeline::create(world));
  CGRT_ASSIGN_OR_RETURN(const Timeline b, Timeline::create(world));
  SemaphoreValue waited[] = {{a.semaphore.get(), 1}, {b.semaphore.get(), 2}};
  SemaphoreValue signaled[] = {{b.semaphore.get(), 3}, {a.semaphore.get(), 4}};
  const auto step = [&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(wait_semaphores(target, waited));
    return signal_semaphores(target, signaled);
  };
  CGRT_ASSIGN_OR_RETURN(const Graph captured, capture(a.stream, step));
  CGRT_RETURN_IF_ERROR(notes.graph("captured", captured));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreWaitNode wait, graph.add_semaphore_wait({}, waited));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreSignalNode signal, graph.add_semaphore_signal(after(wait), signaled));
  CGRT_RETURN_IF_ERROR(notes.graph("built", graph));
  CGRT_ASSIGN_OR_RETURN(Graph clone, graph.clone());
  CGRT_RETURN_IF_ERROR(notes.graph("clone", clone));
  const auto run = [&](const char* name, GraphExec& exec) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(a.stream));
    CGRT_RETURN_IF_ERROR(b.made.signal(waited[1].value));
    CGRT_RETURN_IF_ERROR(a.note(absl::StrCat(name, ", one of two signaled"), notes));
    CGRT_RETURN_IF_ERROR(a.made.signal(waited[0].value));
    CGRT_RETURN_IF_ERROR(a.note_end(name, notes));
    return b.note_end(name, notes);
  };
  const auto later = [&] {
    for (SemaphoreValue* values : {waited, signaled}) {
      values[0].value += 10;
      values[1].value += 10;
    }
  };
  CGRT_ASSIGN_OR_RETURN(GraphExec captured_exec, instantiate(captured));
  CGRT_RETURN_IF_ERROR(run("captured", captured_exec));
  later();
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  notes.status("wait, in the executable", exec.set_params(wait, waited));
  notes.status("signal, in the executable", exec.set_params(signal, signaled));
  CGRT_RETURN_IF_ERROR(run("set in the executable", exec));
  later();
  notes.status("wait, in the definition", graph.set_params(wait, waited));
  notes.status("signal, in the definition", graph.set_params(signal, signaled));
  notes.status("update by it", exec.update(graph));
  CGRT_RETURN_IF_ERROR(run("set in the definition", exec));
  later();
  CGRT_ASSIGN_OR_RETURN(const SemaphoreWaitNode found, find_node<SemaphoreWaitNode>(captured, {}));
  notes.status("wait, found in the captured graph", captured_exec.set_params(found, waited));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreSignalNode other, find_node<SemaphoreSignalNode>(captured, {}));
  notes.status("signal, found in the captured graph", captured_exec.set_params(other, signaled));
  CGRT_RETURN_IF_ERROR(run("found in the captured graph", captured_exec));
  notes.status("fewer in the executable", exec.set_params(wait, {waited, 1}));
  CGRT_ASSIGN_OR_RETURN(Graph fewer, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const SemaphoreWaitNode one, fewer.add_semaphore_wait({}, {waited, 1}));
  CGRT_RETURN_IF_ERROR(fewer.add_semaphore_signal(after(one), signaled).status());
  notes.status("update by fewer", exec.update(fewer));
  CGRT_ASSIGN_OR_RETURN(const std::vector<UpdateBlocker> blockers, exec.find_blockers(fewer));
  for (const UpdateBlocker& blocker : blockers) notes.line(absl::StrCat("blocker: ", blocker.text));
  notes.status("fewer in the definition", graph.set_params(wait, {waited, 1}));
  return absl::OkStatus();
}

BEHAVIOUR("external semaphores: a graph keeps them until its last launch has ended") {
  CGRT_ASSIGN_OR_RETURN(Timeline t, Timeline::create(world));
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> kept = token;
  {
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    Cursor cursor = graph.cursor();
    CGRT_RETURN_IF_ERROR(wait_semaphore(cursor, t.semaphore, 1));
    CGRT_RETURN_IF_ERROR(signal_semaphore(cursor, t.semaphore, 2));
    CGRT_RETURN_IF_ERROR(graph.keep(std::pair(std::move(t.semaphore), std::exchange(token, nullptr))));
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
    CGRT_RETURN_IF_ERROR(exec.launch(t.stream));
  }
  collect_released();
  EXPECT(!kept.expired());
  CGRT_RETURN_IF_ERROR(t.note("the graph is gone", notes));
  CGRT_RETURN_IF_ERROR(t.made.signal(1));
  CGRT_RETURN_IF_ERROR(t.note_end("signaled", notes));
  EXPECT(collect_until([&] { return kept.expired(); }));
  return absl::OkStatus();
}

BEHAVIOUR("external semaphores: what cannot be is refused") {
  CGRT_ASSIGN_OR_RETURN(Timeline t, Timeline::create(world));
  const auto refused = [&](const char* name, const absl::Status& status, const char* part) {
    notes.status(name, status);
    EXPECT(absl::StrContains(status.message(), part));
  };
  refused("none", signal_semaphores(t.stream, {}), "no semaphore");
  refused("an empty one", wait_semaphore(t.stream, ExternalSemaphore().ref(), 1), "ExternalSemaphore is empty");
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  refused("a descriptor of something else",
          ExternalSemaphore::import_fd(world.device(), SemaphoreKind::kTimeline, null).status(),
          "which stays the caller's");
  close(null);
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(const CUgraphConditionalHandle handle, graph.add_conditional_handle(1));
  CGRT_ASSIGN_OR_RETURN(Conditional branch, graph.add_if({}, handle));
  refused("in a conditional body", signal_semaphore(branch.bodies[0].cursor(), t.semaphore, 1),
          "cannot hold a node of the kind \"semaphore signal\"");
  return absl::OkStatus();
}

BEHAVIOUR("external semaphores: they follow in a rebound step") {
  CGRT_ASSIGN_OR_RETURN(const Timeline a, Timeline::create(world));
  CGRT_ASSIGN_OR_RETURN(const Timeline b, Timeline::create(world));
  const auto step = [](LaunchTarget target, const Timeline& waited, const Timeline& signaled, std::uint64_t value) {
    const absl::Status status = wait_semaphore(target, waited.semaphore, value);
    return status.ok() ? signal_semaphore(target, signaled.semaphore, value + 1) : status;
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(a.stream, [&](LaunchTarget target) { return step(target, a, a, 1); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  const auto run = [&](const char* name, const Timeline& waited, std::uint64_t value) -> absl::Status {
    CGRT_RETURN_IF_ERROR(exec.launch(a.stream));
    CGRT_RETURN_IF_ERROR(a.note(absl::StrCat(name, ", launched, a"), notes));
    CGRT_RETURN_IF_ERROR(waited.made.signal(value));
    CGRT_RETURN_IF_ERROR(a.note_end(absl::StrCat(name, ", a"), notes));
    return b.note_end("  b", notes);
  };
  CGRT_RETURN_IF_ERROR(run("as made", a, 1));
  notes.status("rebound", exec.rebind([&](LaunchTarget target) { return step(target, b, a, 10); }));
  CGRT_RETURN_IF_ERROR(run("rebound", b, 10));
  CGRT_ASSIGN_OR_RETURN(const Binding binding,
                        exec.prepare([&](LaunchTarget target) { return step(target, a, b, 20); }));
  notes.status("prepared", exec.rebind(binding));
  CGRT_RETURN_IF_ERROR(run("prepared", a, 20));
  const absl::Status more = exec.rebind([&](LaunchTarget target) {
    const SemaphoreValue both[] = {{a.semaphore.get(), 30}, {b.semaphore.get(), 30}};
    return wait_semaphores(target, both);
  });
  notes.status("more", more);
  EXPECT(absl::StrContains(more.message(), "has 1 semaphore, and this is a wait for 2"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
