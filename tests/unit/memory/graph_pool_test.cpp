// Which blocks a GraphPool gives out. What graphs do with them is in the behaviour suite.
#include "cgrt/memory/graph_pool.h"

#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);

struct Pool {
  char* take(std::size_t bytes) { return static_cast<char*>(*pool.allocate(stream, bytes)); }

  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  GraphPool pool = *GraphPool::create(kDevice, 4096);
};

TEST_CASE("a pool takes nothing from the device before it must", "[memory]") {
  Pool w;
  CHECK(w.pool.reserved_bytes() == 0);
  CHECK(w.take(0) == nullptr);
  CHECK(w.pool.reserved_bytes() == 0);
  CHECK_OK(w.pool.free(nullptr));

  char* const block = w.take(1);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
  CHECK(w.pool.used_bytes() == 256);
  CHECK(w.pool.reserved_bytes() == 4096);
}

TEST_CASE("blocks are the first that fit, and those freed beside each other are one", "[memory]") {
  Pool w;
  char* const a = w.take(1024);
  char* const b = w.take(1024);
  char* const c = w.take(1024);
  CHECK((b == a + 1024 && c == b + 1024));

  REQUIRE_OK(w.pool.free(b));
  CHECK(w.take(256) == b);
  CHECK(w.take(512) == b + 256);
  CHECK(w.take(1024) == c + 1024);  // the gap behind these is too small
  CHECK(w.take(256) == b + 768);
  CHECK(w.pool.used_bytes() == 4096);

  REQUIRE_OK(w.pool.free(b + 256));
  REQUIRE_OK(w.pool.free(b));
  REQUIRE_OK(w.pool.free(b + 768));
  CHECK(w.take(1024) == b);
  REQUIRE_OK(w.pool.free(a));
  REQUIRE_OK(w.pool.free(c));
  REQUIRE_OK(w.pool.free(b));
  CHECK(w.take(3072) == a);
  CHECK(w.pool.reserved_bytes() == 4096);
}

TEST_CASE("a full pool takes another chunk, as large as the block needs", "[memory]") {
  Pool w;
  char* const all = w.take(4096);
  char* const large = w.take(10000);
  CHECK(w.pool.reserved_bytes() == 4096 + 10240);
  REQUIRE_OK(w.pool.free(large));
  REQUIRE_OK(w.pool.free(all));
  CHECK(w.take(8192) == large);
  CHECK(w.pool.reserved_bytes() == 4096 + 10240);
}

TEST_CASE("what is no block of the pool is not freed", "[memory]") {
  Pool w;
  char* const block = w.take(512);
  for (void* wrong : {static_cast<void*>(block + 256), static_cast<void*>(&w)}) {
    const absl::Status refused = w.pool.free(wrong);
    CHECK_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument));
    CHECK(absl::StrContains(refused.message(), "which has 1 block of 512 bytes in use"));
  }
  REQUIRE_OK(w.pool.free(block));
  CHECK_THAT(w.pool.free(block), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_CASE("a block that no address space holds is refused before it is rounded", "[memory]") {
  Pool w;
  CHECK_THAT(w.pool.allocate(w.stream, SIZE_MAX).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_CASE("an empty pool refuses every call", "[memory]") {
  Pool w;
  const GraphPool other = std::move(w.pool);
  GraphPool unset;
  for (GraphPool* empty : {&w.pool, &unset}) {
    CHECK_THAT(empty->allocate(w.stream, 64).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
    CHECK_THAT(empty->free(&w), StatusIs(absl::StatusCode::kFailedPrecondition));
    CHECK(empty->used_bytes() == 0);
    CHECK(empty->reserved_bytes() == 0);
  }

  const Stream nothing;
  GraphPool pool = *GraphPool::create(kDevice, 64);
  CHECK_THAT(pool.allocate(nothing, 64).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_CASE("a captured graph keeps its pool once, however many blocks it has", "[memory]") {
  Pool w;
  driver::Instrument instrument;
  REQUIRE_OK(capture(w.stream, [&](StreamRef s) -> absl::Status {
    for (int i = 0; i < 10; ++i) CGRT_RETURN_IF_ERROR(w.pool.allocate(s, 64).status());
    return absl::OkStatus();
  }));
  CHECK(instrument.count("cuGraphRetainUserObject") == 1);
  CHECK(instrument.count("cuMemAlloc") == 1);
}

TEST_CASE("an executable keeps what the step that it was rebound to allocates", "[memory]") {
  Pool w;
  Graph graph = *Graph::create(kDevice);
  const PinnedBuffer x = *PinnedBuffer::create(kDevice, 64);
  REQUIRE_OK(fill8(graph.cursor(), x.data(), 0, 64));
  GraphExec exec = *instantiate_rebindable(graph);
  void* block = nullptr;
  REQUIRE_OK(exec.rebind([&](LaunchTarget target) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(block, w.pool.allocate(target, 64));
    return fill8(target, block, 7, 64);
  }));

  w.pool = GraphPool();

  REQUIRE_OK(exec.launch(w.stream));
  REQUIRE_OK(w.stream.ref().synchronize());
  std::uint8_t byte = 0;
  REQUIRE_OK(copy(w.stream, &byte, block, 1));
  REQUIRE_OK(w.stream.ref().synchronize());
  CHECK(byte == 7);
}

TEST_CASE("threads take and free blocks of one pool", "[memory]") {
  Pool w;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Stream own = *Stream::create(kDevice);
      for (int turn = 0; turn < 100; ++turn) {
        std::set<void*> blocks;
        for (std::size_t bytes : {100u, 1000u, 5000u}) {
          const absl::StatusOr<void*> block = w.pool.allocate(own, bytes);
          if (block.ok()) blocks.insert(*block);
        }
        for (void* block : blocks) static_cast<void>(w.pool.free(block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(w.pool.used_bytes() == 0);
}

}  // namespace
}  // namespace cgrt::testing
