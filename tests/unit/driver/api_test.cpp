#include "cgrt/driver/api.h"

#include <cstring>

#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

TEST_CASE("no entry of any table is ever null", "[driver]") {
  Simulator simulator;
  driver::Instrument instrument;
  driver::Api stubs;

  for (const driver::Api* table : {static_cast<const driver::Api*>(&stubs), &driver::api()}) {
#define CGRT_ENTRY(name, version, need) CHECK(table->name != nullptr);
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
    CHECK(table->ResolveKernel != nullptr);
  }
}

TEST_CASE("without a driver every question is answered kUnavailable, with what to do", "[driver]") {
  const std::string reason = driver::load_error();
  const absl::StatusOr<int> devices = device_count();

  if (reason.empty()) {  // a machine with a driver: there it must answer
    CHECK_OK(devices);
  } else {
    CHECK_THAT(devices.status(), StatusIs(absl::StatusCode::kUnavailable, reason));
    CHECK_THAT(Stream::create(DeviceRef(0)).status(), StatusIs(absl::StatusCode::kUnavailable, "river"));
    CHECK_THAT(Graph::create(DeviceRef(0)).status(), StatusIs(absl::StatusCode::kUnavailable));
    CHECK_THAT(ContextRef(DeviceRef(0)).get().status(), StatusIs(absl::StatusCode::kUnavailable));
    CHECK_THAT(Graph::adopt(nullptr, DeviceRef(0)).status(), StatusIs(absl::StatusCode::kUnavailable));
    CHECK_THAT(launch(StreamRef::legacy_default(), LaunchConfig{}, bodiless_kernel(), nullptr),
               StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_CASE("an error keeps its CUresult, also under annotations", "[driver]") {
  const absl::Status status = driver::to_status(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "cuStreamEndCapture");

  CHECK_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, "cuStreamEndCapture returned 904"));
  CHECK(cuda_result(status) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  const absl::Status annotated = driver::annotate(status, "While capturing");
  CHECK_THAT(annotated, StatusIs(absl::StatusCode::kFailedPrecondition, "While capturing: cuStreamEndCapture"));
  CHECK(cuda_result(annotated) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK_FALSE(cuda_result(absl::OkStatus()).has_value());
  CHECK_THAT(driver::to_status(CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamQuery"),
             StatusIs(absl::StatusCode::kInternal, "sticky"));
}

TEST_CASE("what was remembered of a driver is asked again after forget_contexts", "[driver]") {
  Simulator simulator;
  driver::Instrument instrument;
  const ContextRef context{DeviceRef(0)};
  REQUIRE_OK(context.get());
  instrument.reset_counts();

  REQUIRE_OK(context.get());
  CHECK(instrument.total() == 0);
  forget_contexts();
  REQUIRE_OK(context.get());
  CHECK(instrument.count("cuDevicePrimaryCtxRetain") == 1);
}

TEST_CASE("an instrument counts, traces and fails calls, and puts the table back", "[driver]") {
  Simulator simulator;
  const driver::Api& before = driver::api();
  {
    driver::Instrument instrument;
    std::string traced;
    instrument.trace([&](const char* entry, CUresult result) { traced += entry + std::to_string(result) + " "; });
    CHECK_OK(device_count());
    instrument.fail_entry("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
    CHECK_THAT(device_count().status(), StatusIs(absl::StatusCode::kUnavailable));
    CHECK(instrument.count("cuDeviceGetCount") == 2);
    CHECK(traced.starts_with("cuDeviceGetCount0 cuDeviceGetCount100 "));
  }
  CHECK(&driver::api() == &before);
}

}  // namespace
}  // namespace cgrt::testing
