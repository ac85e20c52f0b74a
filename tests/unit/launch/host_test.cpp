// Where host functions of eager streams are destroyed.
#include "cgrt/launch/host.h"

#include <memory>
#include <utility>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

TEST_CASE("what an eager host function owns is destroyed where CUDA may be called", "[launch]") {
  const Simulator simulator;
  const Stream stream = *Stream::create(DeviceRef(0));
  int destroyed = 0;
  bool is_called = false;
  const auto launch_one = [&] {
    std::shared_ptr<DeviceBuffer> buffer(new DeviceBuffer(*DeviceBuffer::create(DeviceRef(0), 256)),
                                         [&](DeviceBuffer* owned) {
                                           delete owned;
                                           ++destroyed;
                                         });
    REQUIRE_OK(launch_host(stream, [&is_called, kept = std::move(buffer)] { is_called = true; }));
  };

  launch_one();
  REQUIRE_OK(stream.ref().synchronize());
  CHECK(is_called);
  CHECK(destroyed == 0);  // the thread was the driver's

  launch_one();
  CHECK(destroyed == 1);

  REQUIRE_OK(stream.ref().synchronize());
  CHECK(collect_released() == 1);
  CHECK(destroyed == 2);
}

}  // namespace
}  // namespace cgrt::testing
