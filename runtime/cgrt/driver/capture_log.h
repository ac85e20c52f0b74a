// What the driver's log says of the calls that it refused while captures were live. Internal: LiveCapture
// (driver/live_capture.h) asks it what ended a capture.
//
// The driver calls back for each call that fails, on the thread that made it, whoever made it (cuLogsRegisterCallback,
// driver 575 and newer): with a sentence, where it has one, and then with "Returning 900 (CUDA_ERROR_...) from
// cuMemAlloc_v2". It does not say which stream or capture the call was about. Nothing is kept while no capture is live,
// and a fixed number of calls for each that is. Calls that succeed cost nothing, failing ones 1.4 us (H200, driver
// 580).
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cgrt/driver/api.h"

namespace cgrt::driver {

// A call that may have ended a capture.
struct RefusedCall {
  CUresult result = CUDA_SUCCESS;
  char function[48] = {};     // as the driver exports it: "cuMemAlloc_v2"
  char sentence[200] = {};    // the driver's; empty: it has none
  long thread = 0;            // that made it, by the kernel's number
  char thread_name[16] = {};  // empty: that of the program
  bool is_own = false;        // the thread is the capture's
  int captures = 0;           // that it may have ended; 1: this one
  // A launch or a wait, of which the driver does not say whether it was in a captured stream.
  bool may_be_elsewhere = false;

  bool is_certain() const { return captures == 1 && !may_be_elsewhere; }
};

// A live capture, as the log sees it. Only its own thread begins and ends it.
class LoggedCapture {
 public:
  void begin(CUstreamCaptureMode mode) {
    mode_.store(mode, std::memory_order_relaxed);
    number_.store(++last_number_, std::memory_order_release);
  }
  void end() { number_.store(0, std::memory_order_release); }

  // Of the calls noted, the one to name; nullopt: none was. `is_latest`: no later one is noted.
  std::optional<RefusedCall> first_refused(bool* is_latest = nullptr) const;
  // Those noted so far did not end it: it has been seen alive.
  void clear();

 private:
  friend class CaptureLog;
  static constexpr std::size_t kMaxNoted = 4;

  std::atomic<std::uint64_t> number_{0};  // 0: not live
  std::atomic<CUstreamCaptureMode> mode_{CU_STREAM_CAPTURE_MODE_RELAXED};
  std::uint64_t last_number_ = 0;

  // Of the capture `noted_in_`; under the log's lock.
  std::uint64_t noted_in_ = 0;
  std::size_t noted_count_ = 0;
  std::array<RefusedCall, kMaxNoted> noted_;
};

// The captures of a thread, from the outermost on. Never freed; another thread takes it when the thread has ended.
struct LoggedThread {
  static constexpr std::size_t kMaxNested = 4;  // what is nested deeper is not logged

  std::array<LoggedCapture, kMaxNested> captures;
  std::atomic<bool> is_taken{true};
  LoggedThread* next = nullptr;
};

namespace internal {

inline thread_local constinit LoggedThread* this_logged_thread = nullptr;  // null: it has not captured yet

}  // namespace internal

class CaptureLog {
 public:
  // Before a capture begins: listens to the driver in force, if it can be listened to. One call, once for each table.
  static void listen() {
    if (__builtin_expect(listening_to.load(std::memory_order_acquire) != table_number(), false)) register_callback();
  }
  // As the library does before it is unloaded.
  static void stop_listening();

  static LoggedThread* take_thread();

 private:
  static void register_callback();
  static void CUDA_CB on_line(void* registration, CUlogLevel level, char* text, std::size_t length);
  static void note(const RefusedCall& call);

  static std::atomic<std::uint32_t> listening_to;  // a table's number; 0: none yet
};

// Whether a call that fails so may end a capture. 901 says that an earlier one did. Of calls that fail with a code that
// is none of captures', launches and waits end them, copies and memsets do not (driver 580).
bool may_end_capture(CUresult result, const char* function);

// "The capture of stream 0x7f.. (thread-local mode, begun by thread 485)". For the thread that began it.
[[gnu::cold]] std::string name_capture(CUstream origin, CUstreamCaptureMode mode);
// name_capture(), then " was ended by a call of thread 507: cuMemAlloc_v2 returned 900 (...): ...", and what to do
// about it.
[[gnu::cold]] std::string tell(const RefusedCall& call, CUstream origin, CUstreamCaptureMode mode);

}  // namespace cgrt::driver
