#include "cgrt/memory/external_semaphore.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

struct Scene {
  Simulator simulator;
  TestSemaphore made = *TestSemaphore::create(SemaphoreKind::kTimeline);
  ExternalSemaphore semaphore = *made.imported();
  Stream stream = *Stream::create(kDevice);
  SemaphoreValue value{semaphore.get(), 7};
};

TEST_CASE("a semaphore is given up and taken over", "[memory][semaphore]") {
  Simulator simulator;
  ExternalSemaphore semaphore = *TestSemaphore::create(SemaphoreKind::kBinary)->imported();
  const CUexternalSemaphore raw = std::move(semaphore).release();
  CHECK(semaphore.get() == nullptr);
  CHECK(simulator.live_handles_text() == "1 external semaphore");

  ExternalSemaphore::adopt(raw);

  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("the driver owns the file descriptor of a semaphore, unless it refuses it", "[memory][semaphore]") {
  Simulator simulator;
  const TestSemaphore made = *TestSemaphore::create(SemaphoreKind::kTimeline);
  const int taken = *made.descriptor();
  { const ExternalSemaphore semaphore = *ExternalSemaphore::import_fd(kDevice, SemaphoreKind::kTimeline, taken); }
  CHECK_FALSE(is_open(taken));

  const int refused = *made.descriptor();
  driver::Instrument instrument;
  instrument.fail_entry("cuImportExternalSemaphore", CUDA_ERROR_OPERATING_SYSTEM);

  CHECK_THAT(ExternalSemaphore::import_fd(kDevice, SemaphoreKind::kTimeline, refused).status(),
             StatusIs(absl::StatusCode::kInternal,
                      absl::StrCat("Importing a timeline semaphore from file descriptor ", refused,
                                   ", which stays the caller's. It must be one of that kind, exported as opaque by the "
                                   "same GPU: cuImportExternalSemaphore returned 304")));
  CHECK(is_open(refused));
  close(refused);
}

TEST_CASE("what is no file descriptor of a semaphore is not imported", "[memory][semaphore]") {
  Simulator simulator;
  CHECK_THAT(ExternalSemaphore::import_fd(kDevice, SemaphoreKind::kBinary, -1).status(),
             StatusIs(absl::StatusCode::kInvalidArgument,
                      "-1 is no file descriptor. Export one from the API that made the semaphore, as with "
                      "vkGetSemaphoreFdKHR."));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK_THAT(ExternalSemaphore::import_fd(kDevice, SemaphoreKind::kBinary, null).status(),
             StatusIs(absl::StatusCode::kInternal, absl::StrCat("Importing a binary semaphore from file descriptor ",
                                                                null, ", which stays the caller's.")));
  CHECK(is_open(null));
  close(null);
}

TEST_CASE("signals of no semaphore and of empty ones are refused, in every target", "[memory][semaphore]") {
  Scene scene;
  Graph graph = *Graph::create(kDevice);
  const ExternalSemaphore empty;
  const SemaphoreValue values[] = {scene.value, {nullptr, 1}};
  Cursor cursor = graph.cursor();
  driver::Instrument instrument;

  for (const LaunchTarget target : {LaunchTarget(scene.stream), LaunchTarget(cursor)}) {
    CHECK_THAT(signal_semaphores(target, {}),
               StatusIs(absl::StatusCode::kInvalidArgument, "There is no semaphore to signal or to wait for."));
    CHECK_THAT(wait_semaphores(target, {}), StatusIs(absl::StatusCode::kInvalidArgument, "There is no semaphore"));
    CHECK_THAT(wait_semaphore(target, empty),
               StatusIs(absl::StatusCode::kFailedPrecondition, "This ExternalSemaphore is empty"));
    CHECK_THAT(signal_semaphores(target, values),
               StatusIs(absl::StatusCode::kFailedPrecondition,
                        "Semaphore 1 of 2, counted from 0: This ExternalSemaphore is empty"));
  }
  const Stream none;
  CHECK_THAT(wait_semaphore(none, scene.semaphore), StatusIs(absl::StatusCode::kFailedPrecondition, "Stream"));
  CHECK(instrument.total() == 0);
}

TEST_CASE("a refusal of the driver's says how many semaphores there were", "[memory][semaphore]") {
  Scene scene;
  Graph graph = *Graph::create(kDevice);
  driver::Instrument instrument;
  for (const char* entry : {"cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync", "cuGraphAddNode"}) {
    instrument.fail_entry(entry, CUDA_ERROR_NOT_SUPPORTED);
  }
  const char* const signal = "Signal of 1 external semaphore, the first with the value 7: cu";
  const char* const wait = "Wait for 1 external semaphore, the first with the value 7: cu";

  Cursor cursor = graph.cursor();
  for (const LaunchTarget target : {LaunchTarget(scene.stream), LaunchTarget(cursor)}) {
    CHECK_THAT(signal_semaphore(target, scene.semaphore, 7), StatusIs(absl::StatusCode::kUnimplemented, signal));
    CHECK_THAT(wait_semaphore(target, scene.semaphore, 7), StatusIs(absl::StatusCode::kUnimplemented, wait));
  }
}

TEST_CASE("a node of an executable keeps the number of its semaphores", "[exec][semaphore]") {
  Scene scene;
  Graph graph = *Graph::create(kDevice);
  const SemaphoreSignalNode node = *graph.add_semaphore_signal({}, {&scene.value, 1});
  GraphExec exec = *instantiate(graph);
  const SemaphoreValue two[] = {scene.value, scene.value};

  CHECK_THAT(exec.set_params(node, two), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  "Signal of 2 external semaphores, the first with the value "
                                                  "7: cuGraphExecNodeSetParams returned 1"));
  CHECK_THAT(exec.set_params(node, {}), StatusIs(absl::StatusCode::kInvalidArgument, "There is no semaphore"));
  CHECK_THAT(graph.set_params(node, {}), StatusIs(absl::StatusCode::kInvalidArgument, "There is no semaphore"));
  CHECK_THAT(GraphExec().set_params(node, two), StatusIs(absl::StatusCode::kFailedPrecondition, "GraphExec"));
  CHECK_THAT(Graph().set_params(node, two), StatusIs(absl::StatusCode::kFailedPrecondition, "Graph"));
  CHECK_THAT(Graph().add_semaphore_signal({}, two).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "Graph"));
}

TEST_CASE("semaphores of an executable that is rebindable are set one by one and by steps", "[exec][semaphore]") {
  Scene scene;
  Graph graph = *Graph::create(kDevice);
  const SemaphoreSignalNode node = *graph.add_semaphore_signal({}, {&scene.value, 1});
  GraphExec exec = *instantiate_rebindable(graph);
  const auto value_after_launch = [&] {
    CHECK_OK(exec.launch(scene.stream));
    CHECK_OK(scene.stream.ref().synchronize());
    return *scene.made.value();
  };

  scene.value.value = 8;
  CHECK_OK(exec.set_params(node, {&scene.value, 1}));
  CHECK(value_after_launch() == 8);
  CHECK_OK(exec.rebind([&](LaunchTarget target) { return signal_semaphore(target, scene.semaphore, 9); }));
  CHECK(value_after_launch() == 9);
  CHECK_THAT(exec.rebind([&](LaunchTarget target) { return wait_semaphore(target, scene.semaphore, 9); }),
             StatusIs(absl::StatusCode::kFailedPrecondition, "and this is a wait for 1 semaphore"));
  CHECK_THAT(exec.rebind([&](LaunchTarget target) { return signal_semaphores(target, {}); }),
             StatusIs(absl::StatusCode::kInvalidArgument, "There is no semaphore"));
}

TEST_CASE("a graph with semaphores that others made is read and listed", "[graph][semaphore]") {
  Scene scene;
  CUgraph raw = nullptr;
  CHECK(driver::api().GraphCreate(&raw, 0) == CUDA_SUCCESS);
  CUexternalSemaphore handle = scene.semaphore.get();
  CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
  wait.params.fence.value = 7;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
  params.extSemWait = {&handle, &wait, 1};
  CUgraphNode node = nullptr;
  CHECK(driver::api().GraphAddNode(&node, raw, nullptr, nullptr, 0, &params) == CUDA_SUCCESS);

  CHECK(inspect::to_text(*snapshot(GraphRef(raw))) ==
        R"(graph: 1 node, 0 edges, depth 1, width 1, 1 root, 1 leaf

0  semaphore wait  1 semaphore  (semaphore#0: 7)
)");
  const std::vector<NodeInfo> nodes = *list_nodes(GraphRef(raw));
  CHECK(nodes.size() == 1);
  CHECK(nodes[0].kind == ir::NodeKind::kSemaphoreWait);
  CHECK(driver::api().GraphDestroy(raw) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace cgrt::testing
