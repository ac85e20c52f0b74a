// Examples of the runtime: from base/status_macros.h to dump/ and the simulator.
#include <cstdint>

#include "cgrt/bundle/bundle.h"
#include "cgrt/bundle/save.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "examples/examples.h"
#include "support/loaded_kernels.h"
#include "support/test_semaphore.h"

namespace cgrt::examples {
namespace {

constexpr int n = 1000;
constexpr std::size_t bytes = n * sizeof(float);
const LaunchConfig config{.grid = 4, .block = 256};

CGRT_EXAMPLE(base_status_macros) {
  constexpr DeviceRef device(0);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(device));
#include "heads/cgrt/base/status_macros.h.1.inc"
  return absl::OkStatus();
}

CGRT_EXAMPLE(device_context) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CUcontext my_context = nullptr;
  CGRT_RETURN_IF_ERROR(
      driver::to_status(driver::api().StreamGetCtx(stream.ref().get(), &my_context), "cuStreamGetCtx"));
#include "heads/cgrt/device/context.h.1.inc"
  return absl::OkStatus();
}

CGRT_EXAMPLE(device_device) {
#include "heads/cgrt/device/device.h.1.inc"
  CHECK(devices > 0 && !name.empty());
  return absl::OkStatus();
}

CGRT_EXAMPLE(driver_api) {
  CGRT_ASSIGN_OR_RETURN(Stream owner, Stream::create(DeviceRef(0)));
  const CUstream stream = owner.ref().get();
#include "heads/cgrt/driver/api.h.1.inc"
  return equal<int>(result, CUDA_SUCCESS);
}

CGRT_EXAMPLE(driver_instrument) {
#include "heads/cgrt/driver/instrument.h.1.inc"
  return equal<int>(cuda_result(status).value_or(CUDA_SUCCESS), CUDA_ERROR_OUT_OF_MEMORY);
}

CGRT_EXAMPLE(driver_status) {
  CGRT_ASSIGN_OR_RETURN(Stream owner, Stream::create(DeviceRef(0)));
  const CUstream stream = owner.ref().get();
#include "heads/cgrt/driver/status.h.1.inc"
}

CGRT_EXAMPLE(stream_stream) {
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const in, memory.make<float>(n));
#include "heads/cgrt/stream/stream.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(stream_event) {
  CGRT_ASSIGN_OR_RETURN(Stream owner, Stream::create(DeviceRef(0)));
  const StreamRef stream = owner;
#include "heads/cgrt/stream/event.h.1.inc"
  return absl::OkStatus();
}

CGRT_EXAMPLE(stream_completion) {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt/stream/completion.h.1.inc"
  return equal<std::string>(to_string(answer), "done");
}

CGRT_EXAMPLE(stream_keep) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer scratch, DeviceBuffer::create(DeviceRef(0), bytes));
  CGRT_RETURN_IF_ERROR(launch(graph.cursor(), config, count_kernel(), scratch.as<float>(), n));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
  collect_released();  // what the examples before this one left
#include "heads/cgrt/stream/keep.h.1.inc"
  return equal(freed, std::size_t{1});
}

CGRT_EXAMPLE(target_launch_attributes) {
  const auto kernel = count_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
#include "heads/cgrt/target/launch_attributes.h.1.inc"
  CGRT_RETURN_IF_ERROR(launch(graph.cursor(), config, kernel, x, n));
  return runs(graph, 1);
}

// As variables of a program are: the example is a function.
const auto kernel = copy_kernel();
float *out = nullptr, *in = nullptr;
#include "heads/cgrt/target/launch_target.h.1.inc"

CGRT_EXAMPLE(target_launch_target) {
  CGRT_ASSIGN_OR_RETURN(out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(in, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
#include "heads/cgrt/target/launch_target.h.2.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return runs(graph, 1);
}

CGRT_EXAMPLE(memory_buffer) {
#include "heads/cgrt/memory/buffer.h.1.inc"
  CHECK(values != nullptr);
  return absl::OkStatus();
}

CGRT_EXAMPLE(target_fork_join) {
  const auto kernel = scale_kernel();
  const auto sum = testing::add_kernel();
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const z, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt/target/fork_join.h.1.inc"
  CGRT_RETURN_IF_ERROR(step(stream));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const Graph graph, capture(stream, step));
  return runs(graph, 3);
}

CGRT_EXAMPLE(memory_graph_pool) {
  const auto kernel = scale_kernel();
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt/memory/graph_pool.h.1.inc"
  CHECK(pool.used_bytes() == 0 && pool.reserved_bytes() == 64 << 20);
  CGRT_RETURN_IF_ERROR(runs(first, 2));
  return runs(second, 2);
}

CGRT_EXAMPLE(memory_copy) {
  constexpr std::size_t bytes = std::size_t{64} * 4096;
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer device, DeviceBuffer::create(DeviceRef(0), bytes));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer host, PinnedBuffer::create(DeviceRef(0), bytes));
  CGRT_ASSIGN_OR_RETURN(void* const tile, memory.make<char>(std::size_t{64} * 256));
  void* const image = device.data();
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  Cursor cursor = graph.cursor();
#include "heads/cgrt/memory/copy.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return runs(graph, 2);
}

CGRT_EXAMPLE(memory_stream_memory) {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  const LaunchTarget target(stream);
  const auto kernel = scale_kernel();
#include "heads/cgrt/memory/stream_memory.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(memory_memory_op) {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(const PinnedBuffer words, PinnedBuffer::create(DeviceRef(0), 8));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  std::uint32_t* const ready = words.as<std::uint32_t>();
  std::uint32_t* const done = ready + 1;
  *ready = 1;
  *done = 0;
  const LaunchTarget target(stream);
  const auto kernel = scale_kernel();
#include "heads/cgrt/memory/memory_op.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return equal(*done, 1u);
}

CGRT_EXAMPLE(memory_external_semaphore) {
  CGRT_ASSIGN_OR_RETURN(const testing::TestSemaphore made, testing::TestSemaphore::create(SemaphoreKind::kTimeline));
  CGRT_ASSIGN_OR_RETURN(const int fd, made.descriptor());
  CGRT_RETURN_IF_ERROR(made.signal(1));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  const LaunchTarget target(stream);
  const auto kernel = scale_kernel();
#include "heads/cgrt/memory/external_semaphore.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_ASSIGN_OR_RETURN(const std::uint64_t value, made.value());
  return equal(value, std::uint64_t{2});
}

CGRT_EXAMPLE(launch_library) {
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  const std::string_view image = testing::loaded_ptx();
  const auto example = [&]() -> absl::Status {
#include "heads/cgrt/launch/library.h.1.inc"
    return stream.ref().synchronize();
  };
  const absl::Status status = example();
  if (!is_simulated()) return status;
  CGRT_RETURN_IF_ERROR(launch(stream, config, scale_kernel(), y, x, 2.0f, n));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return contains(status.ToString(), "has no host body");
}

CGRT_EXAMPLE(launch_launch) {
  const auto kernel = scale_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const in, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  Cursor cursor = graph.cursor();
#include "heads/cgrt/launch/launch.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return runs(graph, 1);
}

CGRT_EXAMPLE(launch_host) {
  int batches = 0;
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  Cursor cursor = graph.cursor();
#include "heads/cgrt/launch/host.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  CGRT_RETURN_IF_ERROR(runs(graph, 1));
  return equal(batches, 2);
}

CGRT_EXAMPLE(launch_occupancy) {
  const auto kernel = scale_kernel();
  constexpr std::uint64_t count = n;
#include "heads/cgrt/launch/occupancy.h.1.inc"
  CHECK(o.ratio > 0 && o.ratio <= 1);
  return absl::OkStatus();
}

CGRT_EXAMPLE(graph_graph) {
  const auto kernel = scale_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer host, PinnedBuffer::create(DeviceRef(0), bytes));
  const void* const host_x = host.data();
#include "heads/cgrt/graph/graph.h.1.inc"
  const auto count_down = count_down_kernel();
  const LaunchConfig one_thread{.grid = 1, .block = 1};
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer turns, DeviceBuffer::create(DeviceRef(0), sizeof(int)));
  int* const left = turns.as<int>();
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(fill32(stream, left, 3, 1));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
#include "heads/cgrt/graph/graph.h.2.inc"
  CGRT_RETURN_IF_ERROR(runs(graph, 4));
  int ended = -1;
  CGRT_RETURN_IF_ERROR(copy(stream, &ended, left, sizeof(int)));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return equal(ended, 0);
}

CGRT_EXAMPLE(graph_node) {
  const auto kernel = count_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
#include "heads/cgrt/graph/node.h.1.inc"
  return runs(graph, 3);
}

CGRT_EXAMPLE(graph_cursor) {
  const auto kernel = count_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const z, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
#include "heads/cgrt/graph/cursor.h.1.inc"
  CGRT_RETURN_IF_ERROR(equal(a.frontier().size(), std::size_t{2}));
  return runs(graph, 3);
}

CGRT_EXAMPLE(graph_capture) {
  const auto kernel = copy_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt/graph/capture.h.1.inc"
  return runs(graph, 1);
}

CGRT_EXAMPLE(graph_listing) {
  const auto kernel = copy_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  float* const y = out;
  CGRT_ASSIGN_OR_RETURN(Graph graph, capture(stream.ref(), [&](StreamRef s) {
                          Scope scope("layer1");
                          return launch(s, config, kernel, y, x, 1);
                        }));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
#include "heads/cgrt/graph/listing.h.1.inc"
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(graph_alternatives) {
  struct Plan {
    int first, count;
  };
  const std::vector<Plan> plans = {{0, 1}, {0, n}, {n / 2, 1}, {n / 2, n / 4}};
  CGRT_ASSIGN_OR_RETURN(float* const arrays, memory.make<float>(n));
  const auto mlp = [](LaunchTarget target, const Plan& plan, float* x) {
    return launch(target, config, count_kernel(), x + plan.first, plan.count);
  };
  const ContextRef device = DeviceRef(0);
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(device));
#include "heads/cgrt/graph/alternatives.h.1.inc"
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  float found[2] = {};
  CGRT_RETURN_IF_ERROR(copy(stream, found, arrays + n / 2 - 1, sizeof(found)));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return equal(found[0] == 0 && found[1] == 1, true);
}

CGRT_EXAMPLE(graph_programmatic) {
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  const auto step = [&](StreamRef target) { return launch(target, config, count_kernel(), x, n); };
#include "heads/cgrt/graph/programmatic.h.1.inc"
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(graph_scope) {
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  Cursor target = graph.cursor();
  const auto step = [&](LaunchTarget place) { return launch(place, config, count_kernel(), x, n); };
  {
    Scope layer("layer0");
#include "heads/cgrt/graph/scope.h.1.inc"
  }
  CGRT_ASSIGN_OR_RETURN(const ir::GraphIr ir, snapshot(graph));
  return equal<std::string>(ir.nodes[0].scope, "layer0/attention");
}

CGRT_EXAMPLE(graph_snapshot) {
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(graph.cursor().add_empty());
#include "heads/cgrt/graph/snapshot.h.1.inc"
  CGRT_ASSIGN_OR_RETURN(const ir::GraphIr again, inspect::read_file("step.cgrt.json"));
  return equal(again == ir, true);
}

CGRT_EXAMPLE(exec_graph_exec) {
  const auto kernel = scale_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(const KernelNode scaled, graph.add_kernel({}, config, kernel, y, x, 2.0f, n));
  CGRT_ASSIGN_OR_RETURN(Graph other_graph, graph.clone());
#include "heads/cgrt/exec/graph_exec.h.1.inc"
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(exec_rebind) {
  const auto kernel = scale_kernel();
  CGRT_ASSIGN_OR_RETURN(float* const z, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
#include "heads/cgrt/exec/graph_exec.h.2.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(exec_binding) {
  CGRT_ASSIGN_OR_RETURN(float* const y, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(DeviceRef(0)));
  const auto step = [&](LaunchTarget target, int count) {
    return launch(target, config, scale_kernel(), y, x, 2.0f, count);
  };
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(step(graph.cursor(), 1));
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate_rebindable(graph));
  CGRT_ASSIGN_OR_RETURN(const KernelNode scaled, find_node<KernelNode>(graph, {.name = "scale"}));
#include "heads/cgrt/exec/binding.h.1.inc"
  return stream.ref().synchronize();
}

CGRT_EXAMPLE(exec_advisor) {
  CGRT_ASSIGN_OR_RETURN(float* const x, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  Cursor cursor = graph.cursor();
  for (int i = 0; i < 1000; ++i) CGRT_RETURN_IF_ERROR(launch(cursor, config, count_kernel(), x, n));
#include "heads/cgrt/exec/advisor.h.1.inc"
  return contains(advice.text, "Of 1000 kernels, 1000 change their arguments");
}

CGRT_EXAMPLE(simulator_simulator) {
#include "heads/cgrt/simulator/simulator.h.1.inc"
  return status;
}

// A graph that copies its input, the first 8 bytes of a block, to the 8 behind it.
absl::Status write_decode_step(const std::string& path) {
  CGRT_ASSIGN_OR_RETURN(saved::FolderWriter writer, saved::FolderWriter::create(path));
  ir::GraphIr graph;
  graph.allocations = {{ir::MemoryKind::kDevice, 0, 4096}};
  const ir::MemcpyParams to_behind{
      .destination = ir::Pointer{0, 8}, .source = ir::Pointer{0, 0}, .width_bytes = sizeof(std::int64_t)};
  graph.nodes.push_back({.kind = ir::NodeKind::kMemcpy, .device = 0, .params = to_behind});
  saved::SavedGraph decode{.name = "decode", .allocations = {{.block = 0, .bytes = 4096}}};
  decode.inputs = {{.name = "token", .range = {0, 0, sizeof(std::int64_t)}, .dtype = "int64", .shape = {1}}};
  CGRT_ASSIGN_OR_RETURN(decode.file, writer.add_graph(decode.name, graph));
  return writer.finish(
      {.machine = {.device = "any"}, .blocks = {{.address = 0x7ea000000000, .bytes = 4096}}, .graphs = {decode}});
}

absl::StatusOr<std::string_view> code_of(CUfunction, const std::string&) { return testing::loaded_cubin(); }

CGRT_EXAMPLE(bundle_save) {
  CGRT_ASSIGN_OR_RETURN(const Library library, Library::load(DeviceRef(0), testing::loaded_cubin()));
  CGRT_ASSIGN_OR_RETURN(const auto scale, library.kernel<testing::loaded_scale>("scale"));
  CGRT_ASSIGN_OR_RETURN(float* const out, memory.make_output<float>(n));
  CGRT_ASSIGN_OR_RETURN(const float* const in, memory.make<float>(n));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(DeviceRef(0)));
  CGRT_RETURN_IF_ERROR(graph.add_kernel({}, config, scale, out, in, 2.0f, n).status());
  CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(graph));
#include "heads/cgrt/bundle/save.h.1.inc"
  const auto address = reinterpret_cast<std::uintptr_t>(in);
#include "heads/cgrt/bundle/buffer_mark.h.1.inc"
  CGRT_ASSIGN_OR_RETURN(const saved::Folder folder, saved::Folder::open("step.bundle"));
  return equal<std::size_t>(folder.manifest().graphs.size(), 1);
}

CGRT_EXAMPLE(bundle_bundle) {
  CGRT_RETURN_IF_ERROR(write_decode_step("step.bundle"));
  CGRT_ASSIGN_OR_RETURN(const Stream stream, Stream::create(DeviceRef(0)));
  const std::int64_t id = 310;
#include "heads/cgrt/bundle/bundle.h.1.inc"
  std::int64_t behind = 0;
  CGRT_RETURN_IF_ERROR(copy(stream, &behind, static_cast<const std::int64_t*>(token.data) + 1, sizeof(behind)));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  return equal(behind, id);
}

}  // namespace
}  // namespace cgrt::examples
