// Streams, events, completion, contexts, memory.
#include "behaviour/behaviour.h"
#include "cgrt/driver/api.h"
#include "support/default_stream.h"

namespace cgrt::testing {
namespace {

constexpr int kCount = 64;
constexpr LaunchConfig kConfig{.grid = 1, .block = 64};

BEHAVIOUR("a stream and an event are pending until their work is done") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  notes.completion("idle stream", stream.ref().completion());
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().record(event.ref()));

  notes.completion("stream", stream.ref().completion());
  notes.completion("event", event.ref().completion());
  gate.open();
  notes.status("event synchronize", event.ref().synchronize());
  notes.status("stream synchronize", stream.ref().synchronize());
  notes.completion("stream after", stream.ref().completion());
  notes.completion("event after", event.ref().completion());
  return absl::OkStatus();
}

BEHAVIOUR("the legacy default stream is pending while a blocking stream of its context is") {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context));
  for (const StreamKind kind : {StreamKind::kBlocking, StreamKind::kNonBlocking}) {
    CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device(), {.kind = kind}));
    CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
    const char* name = kind == StreamKind::kBlocking ? "beside a blocking stream" : "beside a non-blocking stream";
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
    CGRT_RETURN_IF_ERROR(fill32(stream.ref(), buffer.data(), 0, 1));
    notes.completion(name, StreamRef::legacy_default().completion());
    gate.open();
    CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  }
  return StreamRef::legacy_default().synchronize();
}

BEHAVIOUR("handle 0 is the default stream of the file that passes it") {
  CGRT_ASSIGN_OR_RETURN(CUcontext context, ContextRef(world.device()).get());
  CGRT_ASSIGN_OR_RETURN(ScopedContext current, ScopedContext::enter(context));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer x, device_floats(world, kCount, 1.0f));
  const LaunchTarget targets[] = {zero_of_a_legacy_file(), zero_of_a_per_thread_file()};

  for (const LaunchTarget& target : targets) {
    const CUstream handle = target.stream().get();
    notes.line(handle == CU_STREAM_LEGACY       ? "legacy"
               : handle == CU_STREAM_PER_THREAD ? "per thread"
                                                : "something else");
    notes.status("launch", launch(target, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount));
    notes.status("synchronize", target.stream().synchronize());
    notes.status("capture", capture(target.stream(), [&](StreamRef s) {
                              return launch(s, kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, kCount);
                            }).status());
  }
  return absl::OkStatus();
}

BEHAVIOUR("a default stream cannot be adopted") {
  notes.status("0", Stream::adopt(nullptr).status());
  notes.status("legacy", Stream::adopt(CU_STREAM_LEGACY).status());
  notes.status("per thread", Stream::adopt(CU_STREAM_PER_THREAD).status());
  return absl::OkStatus();
}

BEHAVIOUR("an event that was never recorded is complete") {
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));

  notes.completion("event", event.ref().completion());
  notes.status("synchronize", event.ref().synchronize());

  return absl::OkStatus();
}

BEHAVIOUR("a stream waits for an event of another stream") {
  CGRT_ASSIGN_OR_RETURN(Stream a, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Stream b, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  float* x = buffer.as<float>();
  {
    CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, a.ref()));
    CGRT_RETURN_IF_ERROR(launch(a.ref(), kConfig, scale_kernel(), x, x, 3.0f, kCount));
    CGRT_RETURN_IF_ERROR(a.ref().record(event.ref()));
    CGRT_RETURN_IF_ERROR(b.ref().wait(event.ref()));
    CGRT_RETURN_IF_ERROR(launch(b.ref(), kConfig, shift_kernel(), x, x, 1.0f, kCount));
    notes.completion("waiting stream", b.ref().completion());
  }
  CGRT_RETURN_IF_ERROR(b.ref().synchronize());

  CGRT_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(world, buffer));
  EXPECT(values == std::vector<float>(kCount, 4.0f));
  return absl::OkStatus();
}

BEHAVIOUR("elapsed time is refused for events without timing, unrecorded or pending") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event plain, Event::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event start, Event::create(world.device(), EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(Event end, Event::create(world.device(), EventTiming::kEnabled));

  notes.status("unrecorded", elapsed_time(start.ref(), end.ref()).status());
  CGRT_RETURN_IF_ERROR(stream.ref().record(start.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().record(plain.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  notes.status("without timing", elapsed_time(start.ref(), plain.ref()).status());
  CGRT_ASSIGN_OR_RETURN(Gate gate, Gate::close(world, stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().record(end.ref()));
  notes.status("pending", elapsed_time(start.ref(), end.ref()).status());
  gate.open();
  return stream.ref().synchronize();
}

BEHAVIOUR("elapsed time is device time") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(Event start, Event::create(world.device(), EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(Event end, Event::create(world.device(), EventTiming::kEnabled));
  CGRT_RETURN_IF_ERROR(stream.ref().record(start.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().record(end.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  const absl::StatusOr<absl::Duration> elapsed = elapsed_time(start.ref(), end.ref());

  if (world.simulator() != nullptr) {
    EXPECT(elapsed.status().code() == absl::StatusCode::kUnimplemented);
  } else {
    EXPECT(elapsed.ok() && *elapsed > absl::ZeroDuration() && *elapsed < absl::Seconds(1));
  }
  return absl::OkStatus();
}

BEHAVIOUR("no call leaves a context current or takes one away") {
  const ContextRef primary(world.device());
  CGRT_ASSIGN_OR_RETURN(CUcontext context, primary.get());
  for (bool with_current : {false, true}) {
    if (with_current)
      CGRT_RETURN_IF_ERROR(driver::to_status(driver::api().CtxPushCurrent(context), "cuCtxPushCurrent"));
    {
      CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
      CGRT_ASSIGN_OR_RETURN(Event event, Event::create(world.device()));
      CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(world.device(), 256));
      CGRT_ASSIGN_OR_RETURN(PinnedBuffer pinned, PinnedBuffer::create(world.device(), 256));
      CGRT_RETURN_IF_ERROR(copy(stream.ref(), buffer.data(), pinned.data(), 256));
      CGRT_RETURN_IF_ERROR(fill8(stream.ref(), buffer.data(), 1, 256));
      CGRT_ASSIGN_OR_RETURN(LaunchConfig config, suggest_config(scale_kernel(), stream.ref(), kCount));
      const auto step = [&](LaunchTarget t) {
        return launch(t, config, scale_kernel(), buffer.as<float>(), buffer.as<float>(), 1.0f, kCount);
      };
      CGRT_RETURN_IF_ERROR(step(stream.ref()));
      CGRT_RETURN_IF_ERROR(stream.ref().record(event.ref()));
      CGRT_RETURN_IF_ERROR(stream.ref().completion().status());
      CGRT_RETURN_IF_ERROR(event.ref().completion().status());
      CGRT_ASSIGN_OR_RETURN(Graph captured, capture(stream.ref(), step));
      CGRT_ASSIGN_OR_RETURN(Graph built, Graph::create(world.device()));
      Cursor cursor = built.cursor();
      CGRT_RETURN_IF_ERROR(step(cursor));
      CGRT_RETURN_IF_ERROR(copy(cursor, buffer.data(), pinned.data(), 256));
      CGRT_ASSIGN_OR_RETURN(GraphExec exec, instantiate(built));
      CGRT_ASSIGN_OR_RETURN(GraphExec other, instantiate(captured));
      CGRT_RETURN_IF_ERROR(exec.upload(stream.ref()));
      CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
      notes.status("update", other.update(captured));
      CGRT_RETURN_IF_ERROR(snapshot(built).status());
      CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
    }
    CUcontext popped = nullptr;
    const CUresult result = driver::api().CtxPopCurrent(&popped);
    notes.line(std::string(with_current ? "with" : "without") + " a current context: pop gives " +
               (result != CUDA_SUCCESS ? std::to_string(static_cast<int>(result))
                : popped == context    ? "it"
                                       : "another"));
  }
  return absl::OkStatus();
}

BEHAVIOUR("bad requests for devices and memory are refused") {
  notes.status("device 99", DeviceRef(99).name().status());
  notes.status("stream on device 99", Stream::create(DeviceRef(99)).status());
  notes.status("0 bytes", DeviceBuffer::create(world.device(), 0).status());
  notes.status("too many bytes", DeviceBuffer::create(world.device(), std::size_t{1} << 50).status());
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::create(world.device(), 256));
  notes.status("copy of 0 bytes", copy(stream.ref(), buffer.data(), buffer.data(), 0));
  notes.status("memset of 0 elements", fill32(stream.ref(), buffer.data(), 1, 0));
  notes.status("programmatic copy", copy(LaunchTarget(stream.ref()).programmatic(), buffer.data(), buffer.data(), 16));
  return stream.ref().synchronize();
}

BEHAVIOUR("memory goes there and back through pinned and pageable buffers") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer device, DeviceBuffer::create(world.device(), 4096));
  CGRT_ASSIGN_OR_RETURN(PinnedBuffer pinned, PinnedBuffer::create(world.device(), 4096));
  std::vector<unsigned char> pageable(4096);
  for (std::size_t i = 0; i < pageable.size(); ++i) pageable[i] = static_cast<unsigned char>(i * 7);

  CGRT_RETURN_IF_ERROR(copy(stream.ref(), device.data(), pageable.data(), 4096));
  CGRT_RETURN_IF_ERROR(fill8(stream.ref(), device.as<char>() + 100, 0xab, 3));
  CGRT_RETURN_IF_ERROR(fill16(stream.ref(), device.as<char>() + 200, 0x1234, 2));
  CGRT_RETURN_IF_ERROR(fill32(stream.ref(), device.as<char>() + 300, 0xdeadbeef, 1));
  CGRT_RETURN_IF_ERROR(copy(stream.ref(), pinned.data(), device.data(), 4096));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());

  const auto* got = pinned.as<unsigned char>();
  EXPECT(got[99] == pageable[99] && got[100] == 0xab && got[102] == 0xab && got[103] == pageable[103]);
  EXPECT(got[200] == 0x34 && got[201] == 0x12 && got[203] == 0x12 && got[204] == pageable[204]);
  EXPECT(got[300] == 0xef && got[303] == 0xde && got[4095] == pageable[4095]);
  return absl::OkStatus();
}

BEHAVIOUR("occupancy names its limiter and refuses what cannot run") {
  for (std::uint32_t block : {32u, 64u, 256u, 1024u}) {
    for (std::uint32_t shared : {0u, 40000u}) {
      CGRT_ASSIGN_OR_RETURN(Occupancy o, occupancy(scale_kernel(), world.device(), Dim3(block), shared));
      notes.line("block " + std::to_string(block) + " shared " + std::to_string(shared) + ": blocks " +
                 std::to_string(o.blocks_per_sm) + " warps " + std::to_string(o.active_warps) + "/" +
                 std::to_string(o.max_warps) + " " + to_string(o.limiter));
    }
  }
  CGRT_ASSIGN_OR_RETURN(LaunchConfig config, suggest_config(scale_kernel(), world.device(), 1000000));
  notes.line("suggested grid " + std::to_string(config.grid.x) + " block " + std::to_string(config.block.x));
  notes.status("block of 0", occupancy(scale_kernel(), world.device(), Dim3(0), 0).status());
  notes.status("block of 1025", occupancy(scale_kernel(), world.device(), Dim3(1025), 0).status());
  notes.status("300000 bytes", occupancy(scale_kernel(), world.device(), Dim3(32), 300000).status());
  notes.status("0 elements", suggest_config(scale_kernel(), world.device(), 0).status());
  notes.status("2^45 elements", suggest_config(scale_kernel(), world.device(), std::uint64_t{1} << 45).status());
  notes.status("100 KiB allowed", set_max_shared_bytes(scale_kernel(), world.device(), 100 << 10));
  notes.status("300 KiB not", set_max_shared_bytes(scale_kernel(), world.device(), 300 << 10));
  return absl::OkStatus();
}

BEHAVIOUR("launches that no device can run are refused on every target") {
  CGRT_ASSIGN_OR_RETURN(Stream stream, Stream::create(world.device()));
  CGRT_ASSIGN_OR_RETURN(DeviceBuffer buffer, device_floats(world, kCount, 1.0f));
  struct Case {
    const char* name;
    LaunchConfig config;
  };
  const Case cases[] = {{"grid 0", {Dim3(0), Dim3(64)}},
                        {"block 0", {Dim3(1), Dim3(0)}},
                        {"block 2048", {Dim3(1), Dim3(2048)}},
                        {"block z 65", {Dim3(1), Dim3(1, 1, 65)}},
                        {"grid y 65536", {Dim3(1, 65536), Dim3(1)}},
                        {"shared 60000", {Dim3(1), Dim3(64), 60000}},
                        {"shared 300000", {Dim3(1), Dim3(64), 300000}}};
  for (const Case& one : cases) {
    const auto step = [&](LaunchTarget target) {
      return launch(target, one.config, add_kernel(), buffer.as<float>(), buffer.as<float>(), buffer.as<float>(),
                    kCount);
    };
    notes.status(std::string(one.name) + " eager", step(stream.ref()));
    CGRT_ASSIGN_OR_RETURN(Graph graph, Graph::create(world.device()));
    notes.status(std::string(one.name) + " explicit", step(graph.cursor()));
  }
  return stream.ref().synchronize();
}

}  // namespace
}  // namespace cgrt::testing
