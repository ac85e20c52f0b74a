// What a capture that recorded nothing says in the log.
#include "cgrt/graph/capture.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

// What is written to stderr while `call` runs.
template <class Call>
std::string logged(Call call) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  call();
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST_CASE("memory operations are captured into a graph that has nodes", "[graph]") {
  Simulator simulator;
  const Stream stream = *Stream::create(DeviceRef(0));
  const PinnedBuffer words = *PinnedBuffer::create(DeviceRef(0), 64);
  auto* const word = words.as<std::uint32_t>();
  Graph graph = *Graph::create(DeviceRef(0));
  Cursor cursor = graph.cursor();
  REQUIRE_OK(write_value(cursor, word, 1u));
  REQUIRE_OK(capture_into(cursor, stream, [&](StreamRef s) {
    const MemoryOp both[] = {wait_op(word, 1u), write_op(word + 1, 2u)};
    return memory_ops(s, both);
  }));
  GraphExec exec = *instantiate(graph);
  REQUIRE_OK(exec.launch(stream));
  REQUIRE_OK(stream.ref().synchronize());
  CHECK(word[0] == 1);
  CHECK(word[1] == 2);
}

TEST_CASE("a capture that recorded nothing warns when its work went elsewhere", "[graph]") {
  Simulator simulator;
  const Stream stream = *Stream::create(DeviceRef(0)), side = *Stream::create(DeviceRef(0));
  const Event fork = *Event::create(DeviceRef(0)), join = *Event::create(DeviceRef(0));
  const PinnedBuffer x = *PinnedBuffer::create(DeviceRef(0), 64);
  const auto step = [&](LaunchTarget target) {
    return launch(target, LaunchConfig{.grid = 1, .block = 1}, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1);
  };
  const auto said = [&](auto record) { return logged([&] { REQUIRE_OK(capture(stream, record).status()); }); };

  CHECK(
      absl::StrContains(said([&](StreamRef) { return step(side); }), "recorded nothing. Work inside of it went into"));
  CHECK(absl::StrContains(said([&](StreamRef) { return fill8(side, x.data(), 0, 1); }), "recorded nothing."));

  CHECK(said([](StreamRef) { return absl::OkStatus(); }) == "");
  CHECK(said([&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(step(side));
          return step(s);
        }) == "");
  CHECK(said([&](StreamRef s) -> absl::Status {
          CGRT_RETURN_IF_ERROR(s.record(fork));
          CGRT_RETURN_IF_ERROR(side.ref().wait(fork));
          CGRT_RETURN_IF_ERROR(step(side));
          CGRT_RETURN_IF_ERROR(side.ref().record(join));
          return s.wait(join);
        }) == "");
  REQUIRE_OK(side.ref().synchronize());
}

}  // namespace
}  // namespace cgrt::testing
