// What is kept of the driver's log: lines of every form, of many threads and captures, and drivers that have none.
#include "cgrt/driver/capture_log.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

CUlogsCallback callback = nullptr;
void* callback_data = nullptr;

CUresult register_here(CUlogsCallback function, void* data, CUlogsCallbackHandle*) {
  callback = function;
  callback_data = data;
  return CUDA_SUCCESS;
}

// A simulator whose log is written by the test: `say` is a line of it.
struct WrittenLog {
  WrittenLog() {
    table = driver::api();
    table.LogsRegisterCallback = &register_here;
    simulated = &driver::install(table);
  }
  ~WrittenLog() { driver::restore(*simulated); }
  static void say(std::string line, CUlogLevel level = CU_LOG_LEVEL_ERROR) {
    callback(callback_data, level, line.data(), line.size());
  }

  Simulator simulator;
  driver::Api table;
  const driver::Api* simulated;
};

// What the capture says in which `inside` writes into the log, and a raw call ends it unheard.
template <class Inside>
std::string told(Inside inside) {
  const Stream stream = *Stream::create(DeviceRef(0));
  const absl::Status status = capture(stream, [&](StreamRef s) -> absl::Status {
                                inside();
                                driver::api().StreamSynchronize(s.get());
                                return absl::OkStatus();
                              }).status();
  CHECK(cuda_result(status) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  return std::string(status.message());
}

constexpr char kUnknown[] = "not made through cgrt in this thread";
constexpr char kFromCalling[] = "API call conflicts with a stream capture sequence initiated from the calling thread";
constexpr char kAllocation[] = "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemAlloc_v2";

TEST_CASE("the first refused call of the log is told, with its sentence", "[driver][capture]") {
  const WrittenLog log;

  const std::string message = told([&] {
    log.say(kFromCalling);
    log.say(kAllocation);
    log.say("Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuCtxSetLimit");
  });

  CHECK(absl::StrContains(message, "was ended by a call of the same thread: cuMemAlloc_v2 returned 900"));
  CHECK(absl::StrContains(message, kFromCalling));
  CHECK(absl::StrContains(message, "CaptureMode::kRelaxed"));
}

TEST_CASE("lines that end no capture, and lines of other forms, are passed over", "[driver][capture]") {
  const WrittenLog log;
  const char* const lines[] = {
      "",
      "Returning",
      "Returning ",
      "Returning nothing (CUDA_ERROR) from cuMemAlloc_v2",
      "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)",
      "Returning 99999999999999999999 (CUDA_ERROR) from cuMemAlloc_v2",
      "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemcpyAsync_v2",
      "Returning 901 (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) from cuLaunchKernelEx",
      "Returning 904 (CUDA_ERROR_STREAM_CAPTURE_UNJOINED) from cuStreamEndCapture",
      "Returning 907 (CUDA_ERROR_CAPTURED_EVENT) from cuEventElapsedTime_v2",
      "Returning 906 (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) from cuStreamIsCapturing",
      "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuStreamBeginCapture_v2",
  };
  for (const char* line : lines) {
    INFO(line);
    CHECK(absl::StrContains(told([&] { log.say(line); }), kUnknown));
  }
  CHECK(absl::StrContains(told([&] { log.say(kAllocation, CU_LOG_LEVEL_WARNING); }), kUnknown));
}

TEST_CASE("a thread that fails to end another one's capture has ended none of its own", "[driver][capture]") {
  const WrittenLog log;
  const auto fail_to_end = [&] {
    log.say("Returning 908 (CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) from cuStreamEndCapture");
  };

  const std::string own = told([&] {
    fail_to_end();
    log.say(kFromCalling);
    log.say(kAllocation);
  });
  CHECK(absl::StrContains(own, "was ended by a call of the same thread: cuMemAlloc_v2 returned 900"));
  CHECK(absl::StrContains(told(fail_to_end), kUnknown));

  const std::string of_another = told([&] { std::thread(fail_to_end).join(); });
  CHECK(absl::StrContains(of_another, ": cuStreamEndCapture returned 908"));
}

TEST_CASE("long lines are cut, and a sentence belongs to the result that follows it", "[driver][capture]") {
  const WrittenLog log;
  const std::string longer(5000, 'x');

  const std::string cut = told([&] {
    log.say(longer);
    log.say("Returning 900 (X) from cu" + longer);
  });
  CHECK(cut.size() < 1000);
  CHECK(absl::StrContains(cut, "cuxxx"));

  const std::string other = told([&] {
    log.say("a sentence of a copy");
    log.say("Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemcpyAsync_v2");
    log.say(kAllocation);
  });
  CHECK(absl::StrContains(other, "cuMemAlloc_v2 returned 900"));
  CHECK_FALSE(absl::StrContains(other, "a sentence of a copy"));
}

TEST_CASE("what failed before the capture, or before it was seen alive, is not told", "[driver][capture]") {
  const WrittenLog log;
  const Stream stream = *Stream::create(DeviceRef(0));
  REQUIRE_OK(capture(stream, [](StreamRef) { return absl::OkStatus(); }));  // listens from here on
  log.say(kAllocation);
  CHECK(absl::StrContains(told([] {}), kUnknown));
  CHECK(absl::StrContains(told([&] {
                            log.say(kAllocation);
                            // Refused, and asks the driver: the capture goes on.
                            static_cast<void>(fill8(stream, nullptr, 0, 4));
                          }),
                          kUnknown));
}

TEST_CASE("thousands of refused calls leave the first in its place", "[driver][capture]") {
  const WrittenLog log;

  const std::string message = told([&] {
    log.say("Returning 905 (CUDA_ERROR_STREAM_CAPTURE_ISOLATION) from cuStreamWaitEvent");
    for (int i = 0; i < 10000; ++i) log.say(kAllocation);
  });

  CHECK(absl::StrContains(message, "cuStreamWaitEvent returned 905"));
}

TEST_CASE("a driver without a log leaves captures as they are", "[driver][capture]") {
  Simulator simulator;
  driver::Api table = driver::api();
  table.LogsRegisterCallback = &driver::internal::Stub<PFN_cuLogsRegisterCallback_v12090>::not_in_driver;
  const driver::Api& simulated = driver::install(table);
  {
    const Stream stream = *Stream::create(DeviceRef(0));
    REQUIRE_OK(capture(stream, [](StreamRef) { return absl::OkStatus(); }));
    CHECK(absl::StrContains(told([] {}), kUnknown));
  }
  driver::restore(simulated);
}

TEST_CASE("the log is listened to once for each table, and no longer when told so", "[driver][capture]") {
  Simulator simulator;
  driver::Instrument instrument;
  const Stream stream = *Stream::create(DeviceRef(0));
  for (int i = 0; i < 3; ++i) {
    REQUIRE_OK(capture(stream, [](StreamRef) { return absl::OkStatus(); }));
    forget_contexts();
  }
  CHECK(instrument.count("cuLogsRegisterCallback") == 1);
  CHECK(absl::StrContains(told([] {}), "cuStreamSynchronize returned 900"));

  driver::CaptureLog::stop_listening();
  driver::CaptureLog::stop_listening();
  CHECK(instrument.count("cuLogsUnregisterCallback") == 1);
  CHECK(absl::StrContains(told([] {}), kUnknown));
}

TEST_CASE("captures of many threads fail beside each other, each by its own call", "[driver][capture]") {
  Simulator simulator;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const Stream stream = *Stream::create(DeviceRef(0));
      const Event outside = *Event::create(DeviceRef(0));
      const CUcontext context = *ContextRef(DeviceRef(0)).get();
      for (int turn = 0; turn < 50; ++turn) {
        const absl::Status status = capture(stream, [&](StreamRef) -> absl::Status {
                                      const absl::StatusOr<ScopedContext> current = ScopedContext::enter(context);
                                      CUdeviceptr address = 0;
                                      if (i % 2 == 0) {
                                        driver::api().MemAlloc(&address, 64);
                                      } else {
                                        driver::api().EventQuery(outside.ref().get());
                                      }
                                      return current.status();
                                    }).status();
        const char* const call = i % 2 == 0 ? "a call of the same thread: cuMemAlloc_v2 returned 900"
                                            : "a call of the same thread: cuEventQuery returned 900";
        if (!absl::StrContains(status.message(), call)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace cgrt::testing
