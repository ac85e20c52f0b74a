// GraphPool: blocks inside and outside of captures, shared by graphs, and how long they live.
#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "behaviour/behaviour.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

// y = factor * x + 1, with a block of the pool in between.
absl::Status through_block(LaunchTarget target, GraphPool& pool, const DeviceBuffer& y, const DeviceBuffer& x,
                           float factor, void** block) {
  CGRT_ASSIGN_OR_RETURN(*block, pool.allocate(target, kBytes));
  auto* const values = static_cast<float*>(*block);
  CGRT_RETURN_IF_ERROR(launch(target, kConfig, scale_kernel(), values, x.as<const float>(), factor, int{kCount}));
  CGRT_RETURN_IF_ERROR(launch(target, kConfig, shift_kernel(), y.as<float>(), values, 1.0f, int{kCount}));
  return pool.free(*block);
}

BEHAVIOUR("graphs that share a pool have the same block, one after the other") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 3.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 0.0f));
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 4096));
  void *first = nullptr, *second = nullptr, *third = nullptr, *eager = nullptr;

  CGRT_ASSIGN_OR_RETURN(Graph captured,
                        capture(stream, [&](StreamRef s) { return through_block(s, pool, y, x, 2.0f, &first); }));
  CGRT_ASSIGN_OR_RETURN(Graph again,
                        capture(stream, [&](StreamRef s) { return through_block(s, pool, y, x, 4.0f, &second); }));
  CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
  Cursor cursor = built.cursor();
  CGRT_RETURN_IF_ERROR(through_block(cursor, pool, y, x, 6.0f, &third));
  CGRT_RETURN_IF_ERROR(through_block(stream, pool, y, x, 8.0f, &eager));

  EXPECT(first != nullptr && first == second && first == third && first == eager);
  notes.line(absl::StrCat("used ", pool.used_bytes(), ", reserved ", pool.reserved_bytes()));
  pool = GraphPool();  // the graphs keep what they use
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  for (Graph* graph : {&captured, &again, &built}) {
    CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
    *graph = Graph();
    CGRT_RETURN_IF_ERROR(exec.launch(stream));
    exec = GraphExec();
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, y));
    notes.line(absl::StrCat("y = ", values[0], ", ", values[kCount - 1]));
  }
  return absl::OkStatus();
}

BEHAVIOUR("a pool grows, gives and takes inside captures of every mode, and ends none") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 3.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 0.0f));
  for (const CaptureMode mode : {CaptureMode::kThreadLocal, CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    for (const bool is_other_thread : {false, true}) {
      CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 1024));
      absl::Status others;
      const absl::StatusOr<Graph> graph = capture(
          stream,
          [&](StreamRef s) -> absl::Status {
            void* block = nullptr;
            const auto work = [&] { others = through_block(s, pool, y, x, 2.0f, &block); };
            if (is_other_thread) {
              std::thread(work).join();
            } else {
              work();
            }
            CGRT_RETURN_IF_ERROR(others);
            CGRT_ASSIGN_OR_RETURN(void* const large, pool.allocate(s, 100000));  // a chunk of its own
            return pool.free(large);
          },
          mode);
      notes.status("capture", graph.status());
      notes.line(absl::StrCat("used ", pool.used_bytes(), ", reserved ", pool.reserved_bytes()));
      if (!graph.ok()) continue;
      pool = GraphPool();
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(*graph));
      CGRT_RETURN_IF_ERROR(exec.launch(stream));
      CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
      CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, y));
      notes.line(absl::StrCat("y = ", values[0]));
    }
  }
  return absl::OkStatus();
}

BEHAVIOUR("a graph into which is captured keeps the pool as well") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 3.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 0.0f));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
  Cursor place = graph.cursor();
  {
    CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 4096));
    void* block = nullptr;
    const absl::Status captured =
        capture_into(place, stream, [&](StreamRef s) { return through_block(s, pool, y, x, 2.0f, &block); });
    CGRT_RETURN_IF_ERROR(captured);
  }
  collect_released();
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, y));
  notes.line(absl::StrCat("y = ", values[0]));
  return absl::OkStatus();
}

BEHAVIOUR("a chunk goes back to the device after the last launch that uses it") {
  do {  // what rows before have let go of: the driver calls back when it likes
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (collect_released() != 0);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 3.0f));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer y, device_floats(world, kCount, 0.0f));
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 4096));
  void* block = nullptr;
  CGRT_ASSIGN_OR_RETURN(Graph graph,
                        capture(stream, [&](StreamRef s) { return through_block(s, pool, y, x, 2.0f, &block); }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  pool = GraphPool();
  graph = Graph();
  exec = GraphExec();
  notes.line(absl::StrCat("let go while the launch is in flight: ", collect_released()));
  gate.open();
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  std::size_t released = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);  // the driver calls back when it likes
  while (released == 0 && std::chrono::steady_clock::now() < end) released += collect_released();
  EXPECT(released == 1);
  CGRT_ASSIGN_OR_RETURN(const std::vector<float> values, read_floats(world, y));
  notes.line(absl::StrCat("y = ", values[0]));
  return absl::OkStatus();
}

BEHAVIOUR("a pool that cannot grow says so with its sizes, and ends no capture") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(GraphPool pool, GraphPool::create(world.device(), 4096));
  absl::Status refused;
  const absl::Status captured = capture(stream, [&](StreamRef s) -> absl::Status {
                                  CGRT_RETURN_IF_ERROR(pool.allocate(s, 1000).status());
                                  refused = pool.allocate(s, std::size_t{1} << 50).status();
                                  return pool.allocate(s, 1000).status();
                                }).status();
  notes.status("allocate", refused);
  notes.status("capture", captured);
  EXPECT(
      absl::StrContains(refused.message(),
                        "Growing a GraphPool of 4096 bytes in 1 chunk, 1024 of them in use, by 1125899906842624 bytes "
                        "for a block of 1125899906842624"));
  return absl::OkStatus();
}

}  // namespace
}  // namespace cgrt::testing
