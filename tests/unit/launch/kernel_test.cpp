#include "cgrt/launch/kernel.h"

#include <cstring>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/named_kernels.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

TEST_CASE("a kernel's name is known without a driver", "[launch]") {
  CHECK(std::string(scale_kernel().name()) == "cgrt::testing::scale");  // without its unnamed namespace
  CHECK(std::string(shift_kernel().name()) == "cgrt::testing::shift<float>");
}

TEST_CASE("messages name enumerators, and names are whole", "[launch]") {
  CHECK(std::string(norm_kernel().name()) == "cgrt::testing::norm<cgrt::testing::Op::kNorm>");
  CHECK(std::string(unnamed_kernel().name()) == "cgrt::testing::of_hidden<cgrt::testing::Hidden::kSecond>");
  CHECK(std::string(long_kernel().name()).ends_with("WouldDo<8> > >"));
}

TEST_CASE("kernels of one signature are told apart", "[launch]") {
  CHECK_FALSE(KernelRef(scale_kernel()) == KernelRef(shift_kernel()));
  CHECK(KernelRef(scale_kernel()) == KernelRef(scale_kernel()));
}

TEST_CASE("a template instance of two files has its host body in both", "[launch]") {
  Simulator simulator;
  Stream stream = *Stream::create(DeviceRef(0));
  DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 4);
  REQUIRE_OK(fill32(stream.ref(), x.data(), 0, 1));
  const LaunchConfig config{.grid = 1, .block = 1};

  CHECK_OK(launch(stream.ref(), config, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1));
  CHECK_OK(launch(stream.ref(), config, shift_kernel_of_another_file(), x.as<float>(), x.as<float>(), 1.0f, 1));
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(*x.as<float>() == 2.0f);
}

TEST_CASE("a handle that is 0 at run time is the default stream of the file that passes it", "[launch]") {
  CUstream zero = nullptr;

  CHECK(StreamRef(zero).get() == CU_STREAM_LEGACY);
  CHECK(LaunchTarget(zero).stream() == StreamRef::legacy_default());
}

}  // namespace
}  // namespace cgrt::testing
