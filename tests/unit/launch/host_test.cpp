// Where host functions of eager streams are destroyed.
#include "cgrt/launch/host.h"

#include <memory>
#include <thread>

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
  std::thread::id called, where;
  const auto launch_one = [&] {
    std::shared_ptr<DeviceBuffer> buffer(new DeviceBuffer(*DeviceBuffer::create(DeviceRef(0), 256)),
                                         [&](DeviceBuffer* owned) {
                                           delete owned;
                                           where = std::this_thread::get_id();
                                           ++destroyed;
                                         });
    REQUIRE_OK(launch_host(stream, [&called, kept = std::move(buffer)] { called = std::this_thread::get_id(); }));
  };

  launch_one();
  REQUIRE_OK(stream.ref().synchronize());
  CHECK(called != std::thread::id());
  CHECK(destroyed == 0);

  launch_one();
  CHECK(destroyed == 1);
  CHECK(where == std::this_thread::get_id());

  REQUIRE_OK(stream.ref().synchronize());
  CHECK(collect_released() == 1);
  CHECK(destroyed == 2);
}

}  // namespace
}  // namespace cgrt::testing
