#include "cgrt/driver/capture_log.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace cgrt::driver {
namespace {

std::atomic<LoggedThread*> threads{nullptr};

// Guards what captures have noted. Never held during a call of the driver's.
constinit std::mutex noted_mutex;

// Guards the registration, which calls the driver.
struct Registration {
  std::mutex mutex;
  CUlogsCallbackHandle handle = nullptr;
  std::uint32_t table = 0;
};
Registration& registration() {
  static Registration& one = *new Registration();
  return one;
}

// Ends when the library is unloaded or the process ends, before the driver does.
struct Listening {
  ~Listening() { CaptureLog::stop_listening(); }
};

// The last line of the thread that was no "Returning".
thread_local constinit char last_sentence[sizeof(RefusedCall::sentence)] = {};

template <std::size_t kSize>
void assign(char (&out)[kSize], std::string_view text) {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

bool starts_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }

// "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemAlloc_v2"
bool read_result(std::string_view line, RefusedCall& call) {
  constexpr std::string_view kBegin = "Returning ", kFrom = " from ";
  if (!starts_with(line, kBegin)) return false;
  line.remove_prefix(kBegin.size());
  int result = 0;
  if (std::from_chars(line.data(), line.data() + line.size(), result).ec != std::errc()) return false;
  const std::size_t from = line.rfind(kFrom);
  if (from == std::string_view::npos) return false;
  call.result = static_cast<CUresult>(result);
  assign(call.function, line.substr(from + kFrom.size()));
  return true;
}

void read_thread(RefusedCall& call) {
  call.thread = gettid();
  char name[sizeof(call.thread_name)] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) != 0) return;
  // A thread has the program's name unless it was given one.
  if (std::string_view(name) != std::string_view(program_invocation_short_name).substr(0, sizeof(name) - 1)) {
    assign(call.thread_name, name);
  }
}

// Whose captures a refused call has ended, as far as the driver says it.
enum class Blame { kThisThreads, kGlobal, kUnknown };
Blame blame_of(const RefusedCall& call) {
  const std::string_view sentence = call.sentence;
  if (sentence.find("initiated from the calling thread") != std::string_view::npos) return Blame::kThisThreads;
  if (sentence.find("initiated from another thread") != std::string_view::npos) return Blame::kGlobal;
  return Blame::kUnknown;
}

// What to do about it, as a sentence.
const char* advice(const RefusedCall& call) {
  switch (call.result) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
      switch (blame_of(call)) {
        case Blame::kThisThreads:
          if (!call.is_own) break;
          return "Make that call before the capture, or capture in CaptureMode::kRelaxed";
        case Blame::kGlobal:
          return "Capture in CaptureMode::kThreadLocal, where other threads may make that call, or make it at another "
                 "time";
        case Blame::kUnknown:
          if (starts_with(call.function, "cuGraph")) {
            return "Put the graph in as a child (Graph::add_child), or launch it in a stream that is not captured";
          }
          return "A captured stream has nothing to wait for or to ask: do so after the graph's launch";
      }
      return "Capture in CaptureMode::kThreadLocal, where other threads may make that call";
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
      return "Two captures cannot become one, and both have ended: wait for events of the own capture";
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: return "A capture is ended in the stream that it began in";
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
      return "A stream joins a capture by waiting for an event that the captured stream recorded; to wait at each "
             "launch, use wait_event";
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return "Capture a stream of StreamKind::kNonBlocking, which the legacy default stream does not wait for, or keep "
             "work out of that one";
    case CUDA_ERROR_CAPTURED_EVENT:
      return "An event that a capture has recorded never completes: EventRef::completion says so, and ends no capture";
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return "The thread that began a capture ends it";
    default: return "Mend that call: a launch or a wait that is refused ends the capture that it is made in";
  }
}

const char* to_string(CUstreamCaptureMode mode) {
  switch (mode) {
    case CU_STREAM_CAPTURE_MODE_GLOBAL: return "global";
    case CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: return "thread-local";
    case CU_STREAM_CAPTURE_MODE_RELAXED: return "relaxed";
  }
  return "unknown";
}

}  // namespace

bool may_end_capture(CUresult result, const char* function) {
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) return false;
  if (result < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
    return starts_with(function, "cuLaunch") || starts_with(function, "cuStreamWaitEvent");
  }
  // Questions, and beginnings, are refused without harm.
  for (const char* harmless :
       {"cuEventElapsedTime", "cuStreamIsCapturing", "cuStreamGetCaptureInfo", "cuStreamBeginCapture"}) {
    if (starts_with(function, harmless)) return false;
  }
  return true;
}

std::atomic<std::uint32_t> CaptureLog::listening_to{0};

LoggedThread* CaptureLog::take_thread() {
  LoggedThread* head = threads.load(std::memory_order_acquire);
  for (LoggedThread* thread = head; thread != nullptr; thread = thread->next) {
    if (!thread->is_taken.exchange(true, std::memory_order_acquire)) return thread;
  }
  auto* const made = new LoggedThread();
  do {
    made->next = head;
  } while (!threads.compare_exchange_weak(head, made, std::memory_order_acq_rel));
  return made;
}

void CaptureLog::register_callback() {
  static Listening until_unloaded;
  Registration& one = registration();
  const std::lock_guard lock(one.mutex);
  const std::uint32_t table = table_number();
  if (one.table == table) return;
  one.table = table;
  one.handle = nullptr;
  // A driver that is listened to a second time, through another table, calls back twice: the first counts no more.
  api().LogsRegisterCallback(&on_line, reinterpret_cast<void*>(std::uintptr_t{table}), &one.handle);
  listening_to.store(table, std::memory_order_release);
}

void CaptureLog::stop_listening() {
  Registration& one = registration();
  const std::lock_guard lock(one.mutex);
  if (one.handle == nullptr || one.table != table_number()) return;
  api().LogsUnregisterCallback(one.handle);
  one.handle = nullptr;
}

void CUDA_CB CaptureLog::on_line(void* table, CUlogLevel level, char* text, std::size_t length) {
  if (level != CU_LOG_LEVEL_ERROR) return;
  if (reinterpret_cast<std::uintptr_t>(table) != listening_to.load(std::memory_order_acquire)) return;
  bool any = false;
  for (const LoggedThread* thread = threads.load(std::memory_order_acquire); thread != nullptr && !any;
       thread = thread->next) {
    any = thread->captures[0].number_.load(std::memory_order_acquire) != 0;
  }
  if (!any) return;
  const std::string_view line(text, strnlen(text, length));
  RefusedCall call;
  if (!read_result(line, call)) return assign(last_sentence, line);
  assign(call.sentence, last_sentence);
  last_sentence[0] = '\0';
  if (!may_end_capture(call.result, call.function)) return;
  read_thread(call);
  note(call);
}

void CaptureLog::note(const RefusedCall& call) {
  const Blame blame = blame_of(call);
  const auto for_each_candidate = [&](auto visit) {
    for (LoggedThread* thread = threads.load(std::memory_order_acquire); thread != nullptr; thread = thread->next) {
      const bool is_own = thread == internal::this_logged_thread;
      for (LoggedCapture& capture : thread->captures) {
        const std::uint64_t number = capture.number_.load(std::memory_order_acquire);
        if (number == 0) break;
        const CUstreamCaptureMode mode = capture.mode_.load(std::memory_order_relaxed);
        const bool is_global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        const bool is_named = blame == Blame::kThisThreads ? is_own && mode != CU_STREAM_CAPTURE_MODE_RELAXED
                                                           : blame == Blame::kGlobal && !is_own && is_global;
        const bool is_possible = blame == Blame::kUnknown || (blame == Blame::kThisThreads && is_global);
        // The wrong thread to end a capture is neither the one that began it nor, of a relaxed one, any.
        const bool is_right_thread = is_own || mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        if (call.result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && is_right_thread) continue;
        if (is_named || is_possible) visit(capture, number, is_own, is_named);
      }
    }
  };
  const std::lock_guard lock(noted_mutex);
  int count = 0;
  for_each_candidate([&](const LoggedCapture&, std::uint64_t, bool, bool) { ++count; });
  if (call.result == CUDA_ERROR_STREAM_CAPTURE_MERGE) count = std::max(count - 1, 1);  // it has ended two of them
  const bool is_of_captures =
      call.result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && call.result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  for_each_candidate([&](LoggedCapture& capture, std::uint64_t number, bool is_own, bool is_named) {
    if (capture.noted_in_ != number) capture.noted_count_ = 0;
    capture.noted_in_ = number;
    if (capture.noted_count_ == LoggedCapture::kMaxNoted) return;
    RefusedCall& noted = capture.noted_[capture.noted_count_++];
    noted = call;
    noted.is_own = is_own;
    noted.captures = is_named ? 1 : count;
    noted.may_be_elsewhere = !is_of_captures;
  });
}

std::optional<RefusedCall> LoggedCapture::first_refused(bool* is_latest) const {
  const std::lock_guard lock(noted_mutex);
  if (noted_in_ != number_.load(std::memory_order_relaxed) || noted_count_ == 0) return std::nullopt;
  const auto end = noted_.begin() + noted_count_;
  // A launch that another thread is refused is more likely one that runs at once.
  auto first =
      std::find_if(noted_.begin(), end, [](const RefusedCall& one) { return one.is_own || !one.may_be_elsewhere; });
  if (first == end) first = noted_.begin();
  if (is_latest != nullptr) *is_latest = first + 1 == end && noted_count_ < kMaxNoted;
  return *first;
}

void LoggedCapture::clear() {
  const std::lock_guard lock(noted_mutex);
  noted_count_ = 0;
}

std::string name_capture(CUstream origin, CUstreamCaptureMode mode) {
  return absl::StrCat("The capture of stream 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(origin)), " (",
                      to_string(mode), " mode, begun by thread ", gettid(), ")");
}

std::string tell(const RefusedCall& call, CUstream origin, CUstreamCaptureMode mode) {
  std::string text =
      absl::StrCat(name_capture(origin, mode), " was ended by ",
                   call.is_certain() ? "a call of " : "one of the calls that failed meanwhile; the first is of ");
  if (call.is_own) {
    absl::StrAppend(&text, "the same thread");
  } else {
    absl::StrAppend(&text, "thread ", call.thread);
    if (call.thread_name[0] != '\0') absl::StrAppend(&text, " \"", call.thread_name, "\"");
  }
  const char* name = nullptr;
  api().GetErrorName(call.result, &name);
  absl::StrAppend(&text, ": ", call.function, " returned ", static_cast<int>(call.result));
  if (name != nullptr) absl::StrAppend(&text, " (", name, ")");
  if (call.sentence[0] != '\0') absl::StrAppend(&text, ": ", call.sentence);
  absl::StrAppend(&text, ". ");
  if (call.captures > 1) absl::StrAppend(&text, "Several captures were live, and it may have ended another one. ");
  if (call.may_be_elsewhere && !call.is_own) absl::StrAppend(&text, "It may have been in a stream outside. ");
  absl::StrAppend(&text, advice(call));
  return text;
}

}  // namespace cgrt::driver
