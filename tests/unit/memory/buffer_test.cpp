#include "cgrt/memory/buffer.h"

#include <utility>

#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

TEMPLATE_TEST_CASE("a buffer of 0 bytes, a default one and one that was moved from are empty", "[memory]", DeviceBuffer,
                   PinnedBuffer) {
  Simulator simulator;
  TestType full = *TestType::create(DeviceRef(0), 256);
  const TestType moved = std::move(full);
  const TestType none = *TestType::create(DeviceRef(0), 0);
  const TestType unset;

  for (const TestType* empty : std::initializer_list<const TestType*>{&full, &none, &unset}) {
    CHECK(empty->data() == nullptr);
    CHECK(empty->size_bytes() == 0);
  }
  CHECK(moved.size_bytes() == 256);
  CHECK(simulator.live_handles() == 1);
}

TEMPLATE_TEST_CASE("a buffer is given up and taken over", "[memory]", DeviceBuffer, PinnedBuffer) {
  Simulator simulator;
  TestType buffer = *TestType::create(DeviceRef(0), 64);
  void* const data = buffer.data();

  const auto raw = std::move(buffer).release();
  CHECK(buffer.size_bytes() == 0);
  CHECK(simulator.live_handles() == 1);
  {
    const TestType again = TestType::adopt(raw, 64);
    CHECK(again.data() == data);
    CHECK(again.size_bytes() == 64);
  }
  CHECK(simulator.live_handles() == 0);
}

TEST_CASE("buffers are made by assignment in a struct", "[memory]") {
  Simulator simulator;
  struct Arrays {
    DeviceBuffer x, y;
    PinnedBuffer host;
  } arrays;

  arrays.x = *DeviceBuffer::create(DeviceRef(0), 64);
  arrays.y = *DeviceBuffer::create(DeviceRef(0), 64);
  arrays.x = std::move(arrays.y);

  CHECK(arrays.x.size_bytes() == 64);
  CHECK(arrays.y.size_bytes() == 0);
  CHECK(simulator.live_handles() == 1);
}

}  // namespace
}  // namespace cgrt::testing
