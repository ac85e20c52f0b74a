// Counts, traces or fails driver calls, for tests and for looking into a program.
//
//   driver::Instrument instrument;
//   instrument.fail_call(3, CUDA_ERROR_OUT_OF_MEMORY);
//   absl::Status status = build_and_launch();
//   CHECK(instrument.count("cuGraphCreate") == instrument.count("cuGraphDestroy"));
//
// While one lives, a table of wrappers is in force around the one before it. One at a time; not
// thread-safe to create or destroy beside other calls into cgrt, thread-safe in between.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "cgrt/driver/api.h"

namespace cgrt::driver {

class Instrument {
 public:
  Instrument();
  ~Instrument();
  Instrument(const Instrument&) = delete;
  Instrument& operator=(const Instrument&) = delete;

  // The call with that number from now on (0 is the next) returns `result` and reaches nothing,
  // except where it gives something back (destroy, free, pop, end of capture, release): there the
  // call is made first, as a driver does that reports the error of earlier work.
  void fail_call(std::int64_t nth, CUresult result);
  // The same for that call and all after it.
  void fail_from(std::int64_t nth, CUresult result);

  // Every call to `entry` ("cuStreamQuery") returns `result` until reset with CUDA_SUCCESS.
  void fail_entry(std::string_view entry, CUresult result);

  // True once the call asked for by fail_call or fail_from has been failed.
  bool failed() const { return failed_entry_.load() >= 0; }
  // Index into kEntryNames of the first call that was failed; -1 if none was.
  int failed_entry() const { return failed_entry_.load(); }

  // Calls made since construction or the last reset.
  std::uint64_t count(std::string_view entry) const;
  std::uint64_t total() const;
  // Calls failed by fail_call and fail_from since construction; an index into kEntryNames.
  std::uint64_t failures(std::size_t entry) const { return failures_[entry].load(); }
  void reset_counts();

  // Called after each call, from the thread that made it.
  void trace(std::function<void(const char* entry, CUresult result)> observer);

 private:
  template <std::size_t kIndex, class Pfn>
  struct Wrapper;
  template <std::size_t kIndex, class Call>
  CUresult around(Call call);

  Api table_;
  const Api* inner_;
  std::array<std::atomic<std::uint64_t>, kEntryCount> counts_{};
  std::array<std::atomic<int>, kEntryCount> forced_{};
  std::array<std::atomic<std::uint64_t>, kEntryCount> failures_{};
  std::atomic<std::int64_t> until_failure_{-1};
  bool keeps_failing_ = false;
  CUresult failure_ = CUDA_SUCCESS;
  std::atomic<int> failed_entry_{-1};
  std::function<void(const char*, CUresult)> observer_;
};

}  // namespace cgrt::driver
