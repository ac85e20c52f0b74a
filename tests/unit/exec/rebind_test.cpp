// Rebindable executables where several streams, captures and devices meet; what each operation asks the driver.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

struct RebindTest {
  static constexpr int kKernels = 100;

  absl::Status step(LaunchTarget target, float factor) const {
    for (int i = 0; i < kKernels; ++i) {
      CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + i + 1, x, factor, 1));
    }
    return absl::OkStatus();
  }
  Graph make_graph(float factor) const {
    Graph made = *Graph::create(device);
    Cursor cursor = made.cursor();
    REQUIRE_OK(step(cursor, factor));
    return made;
  }
  void rebind(float factor) {
    REQUIRE_OK(exec.rebind([&](LaunchTarget target) { return step(target, factor); }));
  }
  // Hangs while the executable's lock is held.
  bool can_ask_executable() { return exec.find_buffer(nullptr, 0).ok(); }
  float run(StreamRef s) {
    REQUIRE_OK(exec.launch(s));
    REQUIRE_OK(s.synchronize());
    return x[kKernels];
  }

  RebindTest() {
    x[0] = 1.0f;
    exec = *instantiate_rebindable(graph);
  }
  ~RebindTest() {
    for (const Stream* stream : {&a, &b}) CHECK_OK(stream->ref().synchronize());
  }

  DeviceRef device{0};
  Simulator simulator{{.device_count = 2}};
  Stream a = *Stream::create(device), b = *Stream::create(device);
  PinnedBuffer buffer = *PinnedBuffer::create(device, 4 * (kKernels + 1));
  float* x = buffer.as<float>();
  Graph graph = make_graph(2.0f);
  GraphExec exec;
};

TEST_CASE_METHOD(RebindTest, "a rebound executable asks the driver little", "[exec][rebind]") {
  CHECK(run(a.ref()) == 2.0f);
  driver::Instrument instrument;
  rebind(3.0f);
  instrument.reset_counts();
  rebind(4.0f);
  CHECK(instrument.total() == 0);

  rebind(3.0f);
  CHECK(run(a.ref()) == 3.0f);
  instrument.reset_counts();
  rebind(4.0f);
  REQUIRE_OK(exec.launch(a.ref()));
  CHECK(instrument.count("cuGraphExecKernelNodeSetParams") == 1);
  CHECK(instrument.count("cuGraphLaunch") == 1);
  CHECK(instrument.count("cuEventRecord") == 1);
  CHECK(instrument.total() <= 4);  // one more: the thread's context

  instrument.reset_counts();
  REQUIRE_OK(exec.launch(a.ref()));  // nothing has changed: the patch kernel is disabled
  CHECK(instrument.count("cuGraphNodeSetEnabled") == 1);
  CHECK(instrument.count("cuGraphLaunch") == 1);
  CHECK(instrument.total() == 2);
  instrument.reset_counts();
  REQUIRE_OK(exec.launch(a.ref()));
  CHECK(instrument.total() == 1);
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[kKernels] == 4.0f);
}

TEST_CASE_METHOD(RebindTest, "a launch into a capture is refused and takes no patch with it", "[exec][rebind]") {
  CHECK(run(a.ref()) == 2.0f);
  rebind(3.0f);

  const absl::StatusOr<Graph> captured = capture(b.ref(), [&](StreamRef s) { return exec.launch(s); });

  CHECK_FALSE(captured.ok());
  CHECK(run(a.ref()) == 3.0f);
}

TEST_CASE_METHOD(RebindTest, "launches in several streams have their own values, one after the other",
                 "[exec][rebind]") {
  simulator.hold(a.ref().get());
  REQUIRE_OK(exec.launch(a.ref()));
  rebind(3.0f);
  REQUIRE_OK(exec.launch(b.ref()));
  REQUIRE_OK(copy(b, x, x + kKernels, sizeof(float)));
  rebind(5.0f);
  for (int i = 0; i < 10; ++i) CHECK(*b.ref().completion() == Completion::kPending);
  simulator.release(a.ref().get());
  REQUIRE_OK(b.ref().synchronize());
  CHECK(x[0] == 3.0f);

  CHECK(run(a.ref()) == 15.0f);
}

TEST_CASE_METHOD(RebindTest, "a graph has its patch kernel once, in front of all nodes, and keeps it",
                 "[exec][rebind]") {
  const auto nodes = [&] { return *list_nodes(graph); };
  REQUIRE(nodes().size() == kKernels + 1);
  exec = GraphExec();
  float* const alone = x + kKernels - 1;
  REQUIRE_OK(graph.add_kernel({}, {.grid = 1, .block = 64}, scale_kernel(), alone, x, 7.0f, 1));

  exec = *instantiate_rebindable(graph);

  CHECK(nodes().size() == kKernels + 2);
  std::vector<bool> waits(nodes().size());
  const std::vector<EdgeInfo> edges = *list_edges(graph);
  for (const EdgeInfo& edge : edges) waits[edge.to] = true;
  CHECK(std::count(waits.begin(), waits.end(), false) == 1);
  CHECK(run(a.ref()) == 2.0f);
}

TEST_CASE_METHOD(RebindTest, "a graph that was rebindable is rebound inside of another one, too", "[exec][rebind]") {
  exec = GraphExec();
  Graph outer = *Graph::create(device);
  REQUIRE_OK(outer.add_child({}, std::move(graph)));
  exec = *instantiate_rebindable(outer);
  CHECK(run(a.ref()) == 2.0f);

  rebind(3.0f);

  CHECK(run(b.ref()) == 3.0f);
}

TEST_CASE_METHOD(RebindTest, "an executable that is given away patches no more", "[exec][rebind]") {
  rebind(3.0f);
  CHECK(run(a.ref()) == 3.0f);
  rebind(4.0f);

  const CUgraphExec ours = std::move(exec).release();

  collect_released();  // what patches read
  REQUIRE(driver::api().GraphLaunch(ours, a.ref().get()) == CUDA_SUCCESS);
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[kKernels] == 3.0f);
  CHECK(driver::api().GraphExecDestroy(ours) == CUDA_SUCCESS);
}

TEST_CASE_METHOD(RebindTest, "what a failed launch should have brought comes with the next", "[exec][rebind]") {
  CHECK(run(a.ref()) == 2.0f);
  rebind(3.0f);
  driver::Instrument instrument;
  instrument.fail_entry("cuGraphLaunch", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_FALSE(exec.launch(b.ref()).ok());
  instrument.fail_entry("cuGraphLaunch", CUDA_SUCCESS);

  SECTION("as it was") { CHECK(run(a.ref()) == 3.0f); }
  SECTION("with what was changed since") {
    REQUIRE_OK(exec.rebind([&](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 8.0f, 1));
      for (int i = 1; i < kKernels; ++i) {
        CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + i + 1, x, 3.0f, 1));
      }
      return absl::OkStatus();
    }));
    CHECK(run(a.ref()) == 3.0f);
    CHECK(x[1] == 8.0f);
  }
  SECTION("where a patch could not be set") {
    instrument.fail_entry("cuGraphExecKernelNodeSetParams", CUDA_ERROR_OUT_OF_MEMORY);
    rebind(4.0f);
    CHECK_FALSE(exec.launch(b.ref()).ok());
    instrument.fail_entry("cuGraphExecKernelNodeSetParams", CUDA_SUCCESS);
    CHECK(run(b.ref()) == 4.0f);
  }
}

TEST_CASE_METHOD(RebindTest, "what was rebound stays pending when a launch is captured, which is refused",
                 "[exec][rebind]") {
  CHECK(run(a.ref()) == 2.0f);
  rebind(5.0f);

  const absl::Status refused = capture(a, [&](StreamRef s) { return exec.launch(s); }).status();

  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(run(a.ref()) == 5.0f);
}

TEST_CASE_METHOD(RebindTest, "a refused rebind counts its calls and names its nodes", "[exec][rebind]") {
  const Event empty;
  MemoryOp op{MemoryOp::Kind::kWrite, x, 1};
  const auto after_one_call = [&](auto second) {
    return exec.rebind([&](LaunchTarget target) -> absl::Status {
      CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1));
      return second(target);
    });
  };

  const auto refused = [&](absl::StatusCode code) { return StatusIs(code, "Call 2 of the rebound step"); };
  CHECK_THAT(after_one_call([&](LaunchTarget target) { return record_event(target, empty); }),
             refused(absl::StatusCode::kFailedPrecondition));
  CHECK_THAT(after_one_call([&](LaunchTarget target) { return wait_event(target, empty); }),
             refused(absl::StatusCode::kFailedPrecondition));
  CHECK_THAT(after_one_call([&](LaunchTarget target) {
               return memory_ops(target, {&op, 1});
             }),
             refused(absl::StatusCode::kFailedPrecondition));
  CHECK_THAT(after_one_call([](LaunchTarget target) {
               return target.sink()->add_captured([](CUstream) { return absl::AbortedError("mine"); }, {});
             }),
             refused(absl::StatusCode::kAborted));
  CHECK_THAT(after_one_call([](LaunchTarget) { return absl::OkStatus(); }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "the first without a call is node 1 (kernel"));
}

TEST_CASE_METHOD(RebindTest, "a rebind that fails asks nothing about the graph, which another thread may change",
                 "[exec][rebind]") {
  const DeviceBuffer y = *DeviceBuffer::create(device, 4);
  Graph copies = *Graph::create(device);
  REQUIRE_OK(copies.add_copy({}, x + 1, x, 4));
  GraphExec copying = *instantiate_rebindable(copies);
  driver::Instrument instrument;

  CHECK_THAT(exec.rebind([](LaunchTarget) { return absl::OkStatus(); }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "node 0 (kernel \"cgrt::testing::scale\")"));
  CHECK_THAT(exec.rebind([&](LaunchTarget target) { return fill32(target, x, 0, 1); }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "The node is kernel \"cgrt::testing::scale\""));
  CHECK_THAT(exec.rebind([&](LaunchTarget target) {
    return launch(target, {.grid = 1, .block = 64}, shift_kernel(), x + 1, x, 2.0f, 1);
  }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "The node is kernel \"cgrt::testing::scale\""));
  CHECK_THAT(copying.rebind([&](LaunchTarget target) { return copy(target, x + 1, y.data(), 4); }),
             StatusIs(absl::StatusCode::kInvalidArgument, "Node 0 (memcpy)"));
  CHECK(instrument.count("cuGraphNodeGetType") == 0);
  CHECK(instrument.count("cuGraphKernelNodeGetParams") == 0);
}

TEST_CASE_METHOD(RebindTest, "calls of libraries that are others in every step are not kept without end",
                 "[exec][rebind]") {
  Graph one_node = *Graph::create(device);
  REQUIRE_OK(one_node.add_kernel({}, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1));
  GraphExec changed = *instantiate_rebindable(one_node);
  int runs = 0;
  const auto rebind_with = [&](std::uint64_t key) {
    return changed.rebind([&](LaunchTarget target) {
      const auto call = [&](CUstream s) {
        ++runs;
        return launch(s, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1);
      };
      return target.sink()->add_captured(call, {&key, 1});
    });
  };

  for (std::uint64_t key = 0; key < 300; ++key) REQUIRE_OK(rebind_with(key));
  CHECK(runs == 300);
  REQUIRE_OK(rebind_with(299));
  CHECK(runs == 300);
  REQUIRE_OK(rebind_with(0));
  CHECK(runs == 301);
}

TEST_CASE_METHOD(RebindTest, "what a captured call has its graph keep is kept by an executable that takes it over",
                 "[exec][rebind]") {
  const std::uint64_t key = 1;
  const bool has_key = GENERATE(false, true), is_of_library = GENERATE(false, true);
  std::shared_ptr<int> resource = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = resource;
  const auto call = [&](CUstream s) -> absl::Status {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph captured = nullptr;
    driver::api().StreamGetCaptureInfo(s, &status, nullptr, &captured, nullptr, nullptr, nullptr);
    if (resource != nullptr && is_of_library) {
      CUuserObject object = nullptr;
      const auto release = [](void* kept) { delete static_cast<std::shared_ptr<int>*>(kept); };
      driver::api().UserObjectCreate(&object, new std::shared_ptr<int>(resource), release, 1,
                                     CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
      driver::api().GraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    } else if (resource != nullptr) {
      CGRT_RETURN_IF_ERROR(internal::keep_in_graph(captured, resource));
    }
    return launch(s, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 3.0f, 1);
  };
  const auto step_with = [&](LaunchTarget target) {
    return target.sink()->add_captured(call, has_key ? CallKey(&key, 1) : CallKey());
  };
  const auto is_kept = [&] {
    collect_released();
    return !watched.expired();
  };
  Graph one_node = *Graph::create(device);
  REQUIRE_OK(one_node.add_kernel({}, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1));
  GraphExec changed = *instantiate_rebindable(one_node);

  REQUIRE_OK(changed.rebind(step_with));
  resource.reset();
  CHECK(is_kept());

  simulator.hold(a.ref().get());
  REQUIRE_OK(changed.launch(a.ref()));
  const auto plain = [&](LaunchTarget target) {
    return launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 5.0f, 1);
  };
  REQUIRE_OK(changed.rebind(plain));
  CHECK(is_kept());

  simulator.release(a.ref().get());
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[1] == 3.0f);
  REQUIRE_OK(changed.rebind(plain));
  CHECK(is_kept() == has_key);  // by the call, which need not be captured again
  changed = GraphExec();
  CHECK_FALSE(is_kept());
}

TEST_CASE_METHOD(RebindTest, "what a step handed over may use the executable when it goes", "[exec][rebind]") {
  int gone = 0;
  const auto step_that_keeps = [&](LaunchTarget target) -> absl::Status {
    const auto destroyed = [&](int*) { gone += can_ask_executable() ? 1 : 0; };
    CGRT_RETURN_IF_ERROR(target.sink()->keep(std::shared_ptr<int>(nullptr, destroyed)));
    return step(target, 3.0f);
  };
  REQUIRE_OK(exec.rebind(step_that_keeps));
  CHECK(run(a.ref()) == 3.0f);
  rebind(4.0f);
  CHECK(gone == 0);  // it is used by a launch, of which nobody has asked yet whether it has ended
  CHECK(run(a.ref()) == 4.0f);

  rebind(5.0f);
  CHECK(gone == 1);

  CHECK_FALSE(exec.rebind([&](LaunchTarget target) -> absl::Status {
                    CGRT_RETURN_IF_ERROR(step_that_keeps(target));
                    return absl::CancelledError("the step fails behind its calls");
                  })
                  .ok());
  CHECK(gone == 2);
  const absl::StatusOr<Binding> none = exec.prepare([&](LaunchTarget target) -> absl::Status {
    CGRT_RETURN_IF_ERROR(step_that_keeps(target));
    return absl::CancelledError("as above");
  });
  CHECK_FALSE(none.ok());
  CHECK(gone == 3);

  CHECK_FALSE(exec.rebind([&](LaunchTarget target) {
                    CHECK_FALSE(fill32(target, x, 0, 1).ok());  // it has no such node
                    return step_that_keeps(target);
                  })
                  .ok());
  CHECK(gone == 4);

  {
    const absl::StatusOr<Binding> binding = exec.prepare(step_that_keeps);
    REQUIRE_OK(binding);
    REQUIRE_OK(exec.rebind(*binding));
  }
  CHECK(run(a.ref()) == 3.0f);
  rebind(4.0f);
  CHECK(run(a.ref()) == 4.0f);
  CHECK(gone == 4);
  REQUIRE_OK(exec.rebind(*exec.prepare([&](LaunchTarget target) { return step(target, 5.0f); })));
  CHECK(gone == 5);

  const auto captured = [&](LaunchTarget target) {
    return target.sink()->add_captured([&](CUstream s) { return step(s, 6.0f); }, {});
  };
  {
    Graph other = make_graph(1.0f);
    const auto destroyed = [&](int*) { gone += can_ask_executable() ? 1 : 0; };
    REQUIRE_OK(other.keep(std::shared_ptr<int>(nullptr, destroyed)));
  }
  CHECK(gone == 5);
  REQUIRE_OK(exec.rebind(captured));
  CHECK(gone == 6);
}

TEST_CASE_METHOD(RebindTest, "what a graph takes in by a captured call is kept with it", "[graph][exec]") {
  std::shared_ptr<int> resource = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = resource;
  Graph taking = *Graph::create(device);
  Cursor cursor = taking.cursor();
  REQUIRE_OK(cursor.add_captured(
      [&](CUstream s) -> absl::Status {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUgraph captured = nullptr;
        driver::api().StreamGetCaptureInfo(s, &status, nullptr, &captured, nullptr, nullptr, nullptr);
        return internal::keep_in_graph(captured, std::move(resource));
      },
      {}));
  std::optional<GraphExec> made = *instantiate(taking);

  taking = Graph();
  collect_released();
  CHECK_FALSE(watched.expired());
  made.reset();
  collect_released();
  CHECK(watched.expired());
}

TEST_CASE_METHOD(RebindTest, "a copy whose memory is of another kind says what a copy keeps", "[exec][rebind]") {
  const DeviceBuffer y = *DeviceBuffer::create(device, 4);
  Graph copies = *Graph::create(device);
  const MemcpyNode node = *copies.add_copy({}, x + 1, x, 4);
  GraphExec changed = *instantiate_rebindable(copies);

  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, "of the device or the host as before");
  CHECK_THAT(changed.rebind([&](LaunchTarget target) { return copy(target, x + 1, y.data(), 4); }), refused);
  CHECK_THAT(changed.set_params(node, CopyParams{x + 1, y.data(), 4}), refused);
  CHECK_THAT(changed.rebind_buffer(x, 4, y.data()).status(), refused);
}

TEST_CASE_METHOD(RebindTest, "a copy is bound to other memory after its own was freed", "[exec][rebind]") {
  DeviceBuffer old = *DeviceBuffer::create(device, 4);
  const DeviceBuffer y = *DeviceBuffer::create(device, 4);
  const auto step = [&](LaunchTarget target, const DeviceBuffer& to, const float* from) -> absl::Status {
    CGRT_RETURN_IF_ERROR(copy(target, to.data(), from, 4));
    return copy(target, x + 1, to.data(), 4);
  };
  Graph copies = *Graph::create(device);
  Cursor cursor = copies.cursor();
  REQUIRE_OK(step(cursor, old, x));
  GraphExec rebound = *instantiate_rebindable(copies);
  GraphExec updated = *instantiate(*capture(a, [&](StreamRef s) { return step(s, old, x); }));

  old = DeviceBuffer();
  for (GraphExec* changed : {&rebound, &updated}) {
    const Graph next = *capture(a, [&](StreamRef s) { return step(s, y, x + 2); });
    REQUIRE_OK(changed == &rebound ? changed->rebind([&](LaunchTarget target) { return step(target, y, x + 2); })
                                   : changed->update(next));
    x[1] = 0.0f;
    x[2] = 7.0f;
    REQUIRE_OK(changed->launch(a.ref()));
    REQUIRE_OK(a.ref().synchronize());
    CHECK(x[1] == 7.0f);
  }
}

TEST_CASE_METHOD(RebindTest, "what a failed rebind could not take back is sent again", "[exec][rebind]") {
  const auto calls = [&](LaunchTarget target, int from) -> absl::Status {
    CGRT_RETURN_IF_ERROR(copy(target, x + 10, x + from, 4));
    return copy(target, x + 11, x + from, 4);
  };
  Graph copies = *Graph::create(device);
  Cursor cursor = copies.cursor();
  REQUIRE_OK(calls(cursor, 0));
  GraphExec changed = *instantiate_rebindable(copies);
  {
    driver::Instrument instrument;
    instrument.fail_from(1, CUDA_ERROR_OUT_OF_MEMORY);  // the second copy, and the first one's way back
    CHECK_FALSE(changed.rebind([&](LaunchTarget target) { return calls(target, 1); }).ok());
  }

  REQUIRE_OK(changed.rebind([&](LaunchTarget target) { return calls(target, 0); }));

  x[1] = 7.0f;
  REQUIRE_OK(changed.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[10] == 1.0f);
  CHECK(x[11] == 1.0f);
}

TEST_CASE_METHOD(RebindTest, "a cooperative kernel keeps its grid, and a cluster divides it", "[exec][rebind]") {
  const auto with = [&](LaunchAttributes attributes) {
    Graph made = *Graph::create(device);
    Cursor cursor = made.cursor();
    const auto call = [this, attributes](LaunchTarget target, std::uint32_t grid, float factor) {
      return launch(target, {.grid = grid, .block = 64, .attributes = attributes}, scale_kernel(), x + 1, x, factor, 1);
    };
    REQUIRE_OK(call(cursor, 4, 2.0f));
    GraphExec changed = *instantiate_rebindable(made);
    const absl::Status grid = changed.rebind([&](LaunchTarget target) { return call(target, 6, 2.0f); });
    CHECK_OK(changed.rebind([&](LaunchTarget target) { return call(target, 4, 5.0f); }));
    CHECK_OK(changed.launch(a.ref()));
    CHECK_OK(a.ref().synchronize());
    CHECK(x[1] == 5.0f);
    return grid;
  };
  CHECK_OK(with({}));
  CHECK_OK(with({.cluster = {2}}));
  CHECK_THAT(with({.cluster = {4}}), StatusIs(absl::StatusCode::kInvalidArgument));
  const absl::Status cooperative = with({.cooperative = true});
  CHECK_THAT(cooperative, StatusIs(absl::StatusCode::kFailedPrecondition));
  CHECK(absl::StrContains(cooperative.message(), "cooperative"));
}

TEST_CASE_METHOD(RebindTest, "a graph with a kernel on a second device is refused and stays as it was",
                 "[exec][rebind]") {
  const Stream other = *Stream::create(DeviceRef(1));
  const Event forked = *Event::create(device), joined = *Event::create(DeviceRef(1));
  Graph both = *capture(a, [&](StreamRef s) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(s, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, 2.0f, 1));
    CGRT_RETURN_IF_ERROR(s.record(forked));
    CGRT_RETURN_IF_ERROR(other.ref().wait(forked));
    CGRT_RETURN_IF_ERROR(launch(other, {.grid = 1, .block = 64}, scale_kernel(), x + 2, x + 1, 2.0f, 1));
    CGRT_RETURN_IF_ERROR(other.ref().record(joined));
    return s.wait(joined);
  });

  CHECK_THAT(instantiate_rebindable(both).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "on device 1"));

  CHECK_OK(both.clone());
  GraphExec plain = *instantiate(both);
  CHECK_OK(plain.update(both));
}

TEST_CASE_METHOD(RebindTest, "an executable is launched into a stream of another device, rebound or not",
                 "[exec][rebind]") {
  const Stream other = *Stream::create(DeviceRef(1));

  CHECK(run(other.ref()) == 2.0f);

  rebind(3.0f);
  CHECK(run(other.ref()) == 3.0f);
  CHECK(run(a.ref()) == 3.0f);
}

TEST_CASE_METHOD(RebindTest, "a prepared binding is taken over without running calls", "[exec][rebind]") {
  int calls = 0;
  const auto prepare = [&](float factor) {
    return *exec.prepare([&](LaunchTarget target) {
      ++calls;
      return step(target, factor);
    });
  };
  const Binding three = prepare(3.0f), four = prepare(4.0f);
  CHECK(run(a.ref()) == 2.0f);
  driver::Instrument instrument;
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(exec.rebind(three));
    CHECK(instrument.total() == 0);
    CHECK(run(a.ref()) == 3.0f);
    rebind(5.0f);
    REQUIRE_OK(exec.rebind(four));
    CHECK(run(b.ref()) == 4.0f);
    instrument.reset_counts();
  }
  CHECK(calls == 2);

  CHECK_THAT(exec.rebind(Binding()), StatusIs(absl::StatusCode::kInvalidArgument));
  Graph other_graph = make_graph(1.0f);
  GraphExec other = *instantiate_rebindable(other_graph);
  CHECK_THAT(other.rebind(three), StatusIs(absl::StatusCode::kInvalidArgument));
  GraphExec moved = std::move(exec);
  CHECK_OK(moved.rebind(three));
  exec = std::move(moved);
  CHECK(run(a.ref()) == 3.0f);
  CHECK_FALSE(exec.prepare([](LaunchTarget) { return absl::OkStatus(); }).ok());
}

TEST_CASE_METHOD(RebindTest, "a node that was switched off stays off in every rebind", "[exec][rebind]") {
  Graph both = *Graph::create(device);
  const auto calls = [this](LaunchTarget target, float factor) -> absl::Status {
    CGRT_RETURN_IF_ERROR(launch(target, {.grid = 1, .block = 64}, scale_kernel(), x + 1, x, factor, 1));
    return copy(target, x + 2, x + 1, sizeof(float));
  };
  Cursor cursor = both.cursor();
  REQUIRE_OK(calls(cursor, 2.0f));
  GraphExec changed = *instantiate_rebindable(both);
  const Binding three = *changed.prepare([&](LaunchTarget target) { return calls(target, 3.0f); });
  const KernelNode kernel = *find_node<KernelNode>(both, {});
  const MemcpyNode copied = *find_node<MemcpyNode>(both, {});
  REQUIRE_OK(changed.set_enabled(kernel, NodeState::kDisabled));
  REQUIRE_OK(changed.set_enabled(copied, NodeState::kDisabled));

  SECTION("by calls") {
    REQUIRE_OK(changed.rebind([&](LaunchTarget target) { return calls(target, 3.0f); }));
  }
  SECTION("by a binding that was prepared before") { REQUIRE_OK(changed.rebind(three)); }

  CHECK(*changed.enabled(kernel) == NodeState::kDisabled);
  CHECK(*changed.enabled(copied) == NodeState::kDisabled);
  REQUIRE_OK(changed.set_enabled(kernel, NodeState::kEnabled));
  REQUIRE_OK(changed.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[1] == 3.0f);
}

constexpr const char* kPackedPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry read_packed(.param .u32 n, .param .align 4 .b8 packed[12], .param .u64 out) { ret; }
)";
struct [[gnu::packed, gnu::aligned(4)]] Packed {
  int tag;
  const float* in;  // 4 bytes into an argument that is 4 bytes into the parameters
};
void read_packed_on_host(HostGrid, int, Packed packed, float* out) { *out = *packed.in; }

TEST_CASE_METHOD(RebindTest, "a buffer is replaced in structs that are aligned to less than an address",
                 "[exec][rebind]") {
  const Library library = *Library::load(device, kPackedPtx);
  const auto read_packed = *library.kernel<read_packed_on_host>("read_packed");
  Graph reading = *Graph::create(device);
  const KernelNode node = *reading.add_kernel({}, {.grid = 1, .block = 1}, read_packed, 1, Packed{7, x}, x + kKernels);
  GraphExec changed = *instantiate_rebindable(reading);
  x[1] = 5.0f;

  CHECK(*changed.rebind_buffer(x, 4, x + 1) == 1);

  REQUIRE_OK(changed.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[kKernels] == 5.0f);
  x[2] = 6.0f;
  REQUIRE_OK(changed.set(*changed.slot<Packed>(node, 1), Packed{7, x + 2}));
  REQUIRE_OK(changed.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[kKernels] == 6.0f);
}

TEST_CASE_METHOD(RebindTest, "one argument of one node is set through its slot", "[exec][rebind]") {
  const KernelNode last = *find_node<KernelNode>(graph, {.name = "scale", .nth = kKernels - 1});
  const Slot<float> factor = *exec.slot<float>(last, 2);

  REQUIRE_OK(exec.set(factor, 7.0f));
  CHECK(run(a.ref()) == 7.0f);
  CHECK(x[1] == 2.0f);
  REQUIRE_OK(exec.set(*exec.slot<int>(last, 3), 0));
  REQUIRE_OK(exec.set(factor, 9.0f));
  CHECK(run(a.ref()) == 7.0f);

  const absl::Status size = exec.slot<double>(last, 2).status();
  CHECK_THAT(size, StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK(absl::StrContains(size.message(), "4 bytes in argument 2"));
  CHECK_THAT(exec.slot<int>(last, 4).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(exec.set(Slot<float>(), 1.0f), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(exec.slot<float>(KernelNode(nullptr), 2).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(exec.set_grid(last, Dim3(0)), StatusIs(absl::StatusCode::kInvalidArgument));
  Graph plain = make_graph(1.0f);
  GraphExec other = *instantiate(plain);
  CHECK_THAT(other.set(factor, 1.0f), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_CASE_METHOD(RebindTest, "a graph is made rebindable again and again and keeps no more for it", "[exec][rebind]") {
  exec = GraphExec();
  collect_released();
  const std::size_t before = simulator.live_handles();
  for (int i = 0; i < 3; ++i) {
    exec = *instantiate_rebindable(graph);
    rebind(5.0f + static_cast<float>(i));
    CHECK(run(a.ref()) == 5.0f + static_cast<float>(i));
    exec = GraphExec();
    collect_released();
    CHECK(simulator.live_handles() == before);
  }
}

TEST_CASE_METHOD(RebindTest, "an executable is rebound after its graph is gone, and without kernels",
                 "[exec][rebind]") {
  graph = Graph();
  rebind(6.0f);
  CHECK(run(a.ref()) == 6.0f);

  Graph empty = *Graph::create(device);
  GraphExec nothing = *instantiate_rebindable(empty);
  REQUIRE_OK(nothing.rebind([](LaunchTarget) { return absl::OkStatus(); }));
  REQUIRE_OK(nothing.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());
}

// The words that a patch reads stay until it is over, and no longer; nobody waits for it.
TEST_CASE_METHOD(RebindTest, "an executable that dies while a launch is in flight waits for nothing",
                 "[exec][rebind]") {
  collect_released();
  rebind(3.0f);
  CHECK(run(a.ref()) == 3.0f);
  simulator.hold(a.ref().get());
  rebind(4.0f);
  REQUIRE_OK(exec.launch(a.ref()));

  exec = GraphExec();
  CHECK(collect_released() == 0);

  simulator.release(a.ref().get());
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[kKernels] == 4.0f);
  CHECK(collect_released() == 1);
}

// CUDA allows one end of a programmatic edge to be device-updatable, and kernels with clusters are not.
TEST_CASE_METHOD(RebindTest, "a programmatic edge of a kernel with clusters can stay", "[graph][exec][rebind]") {
  const auto step = [&](LaunchTarget target, float factor) -> absl::Status {
    CGRT_RETURN_IF_ERROR(
        launch(target, {.grid = 2, .block = 64, .attributes = {.cluster = {2}}}, scale_kernel(), x + 1, x, factor, 1));
    return launch(target, {.grid = 1, .block = 64}, waiting_kernel(), x + 2, x + 1, factor, 1);
  };
  Graph pair = *Graph::create(device);
  Cursor cursor = pair.cursor();
  REQUIRE_OK(step(cursor.programmatic(), 2.0f));
  CHECK(list_edges(pair)->front().kind == EdgeKind::kProgrammatic);

  GraphExec two = *instantiate_rebindable(pair);
  REQUIRE_OK(two.rebind([&](LaunchTarget target) { return step(target, 3.0f); }));
  REQUIRE_OK(two.launch(a.ref()));
  REQUIRE_OK(a.ref().synchronize());

  CHECK(x[2] == 9.0f);
}

// A graph captured from a library may have edges of the library's own, inside and outside of children.
TEST_CASE_METHOD(RebindTest, "a graph without its programmatic edges is made rebindable", "[graph][exec][rebind]") {
  const auto kernel = [&](LaunchTarget target, float factor) {
    return launch(target, {.grid = 1, .block = 64}, waiting_kernel(), x + 1, x, factor, 1);
  };
  Graph inner = *Graph::create(device);
  Cursor inside = inner.cursor();
  for (int i = 0; i < 3; ++i) REQUIRE_OK(kernel(inside.programmatic(), 2.0f));
  Graph outer = *Graph::create(device);
  Cursor cursor = outer.cursor();
  for (int i = 0; i < 3; ++i) REQUIRE_OK(kernel(cursor.programmatic(), 3.0f));
  REQUIRE_OK(kernel(cursor, 4.0f));  // a full edge stays what it is
  REQUIRE_OK(outer.add_child({}, std::move(inner)));

  const absl::Status refused = instantiate_rebindable(outer).status();
  CHECK(absl::StrContains(refused.message(), "remove_programmatic_edges"));
  CHECK(*remove_programmatic_edges(outer) == 4);
  CHECK(*remove_programmatic_edges(outer) == 0);
  const std::vector<EdgeInfo> edges = *list_edges(outer);
  CHECK(edges.size() == 5);
  for (const EdgeInfo& edge : edges) CHECK(edge.kind == EdgeKind::kFull);
  CHECK_OK(instantiate_rebindable(outer).status());
}

TEST_CASE_METHOD(RebindTest, "a buffer that a body of a conditional node uses is not replaced elsewhere alone",
                 "[exec][rebind]") {
  Graph outer = *Graph::create(device);
  Cursor cursor = outer.cursor();
  const auto scale = [&](LaunchTarget target, float* out) {
    return launch(target, {.grid = 1, .block = 64}, scale_kernel(), out, x, 2.0f, 1);
  };
  REQUIRE_OK(scale(cursor, x + 1));
  const CUgraphConditionalHandle handle = *outer.add_conditional_handle(1);
  Conditional branch = *cursor.add_if(handle);
  const CUgraphConditionalHandle inner_handle = *outer.add_conditional_handle(1);
  Cursor body = branch.bodies[0].cursor();
  Conditional inner = *body.add_if(inner_handle);
  REQUIRE_OK(scale(inner.bodies[0].cursor(), x + 50));
  GraphExec made = *instantiate_rebindable(outer);

  const absl::StatusOr<std::size_t> refused = made.rebind_buffer(x + 50, 4, x + 60);
  CHECK_THAT(refused.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        "in the body of a conditional node has an address of the buffer"));
  CHECK(*made.rebind_buffer(x + 1, 4, x + 2) == 1);
  x[1] = 0.0f;
  REQUIRE_OK(made.launch(a));
  REQUIRE_OK(a.ref().synchronize());
  CHECK(x[1] == 0.0f);
  CHECK(x[2] == 2.0f);
  CHECK(x[50] == 2.0f);
}

}  // namespace
}  // namespace cgrt::testing
