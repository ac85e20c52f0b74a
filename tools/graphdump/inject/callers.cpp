#include "inject/callers.h"

#include <cuda.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "cgrt/driver/api.h"
#include "cgrt/driver/capture_log.h"

namespace graphdump::callers {
namespace {

struct Caller {
  long thread = 0;
  char function[48] = {};
  std::uintptr_t address = 0;
};

constinit std::mutex mutex;
constinit std::array<Caller, 16> last{};  // the calls refused last, in turn
constinit std::size_t count = 0;

std::string_view file_of(const Dl_info& found) {
  const std::string_view path = found.dli_fname != nullptr ? found.dli_fname : "";
  return path.substr(path.rfind('/') + 1);
}

_Unwind_Reason_Code visit(_Unwind_Context* context, void* result) {
  int is_before = 0;
  const std::uintptr_t next = _Unwind_GetIPInfo(context, &is_before);
  const std::uintptr_t address = is_before != 0 ? next : next - 1;
  static const void* const own = [] {
    Dl_info here{};
    return dladdr(reinterpret_cast<const void*>(&visit), &here) != 0 ? here.dli_fbase : nullptr;
  }();
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(address), &found) == 0 || found.dli_fbase == own) return _URC_NO_REASON;
  for (const char* cudas : {"libcuda.so", "libcudart.so", "libgraphdump_preload.so"}) {
    if (file_of(found).starts_with(cudas)) return _URC_NO_REASON;
  }
  *static_cast<std::uintptr_t*>(result) = address;
  return _URC_NORMAL_STOP;
}

// "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemAlloc_v2"
void CUDA_CB on_line(void*, CUlogLevel level, char* text, std::size_t length) {
  std::string_view line(text, strnlen(text, length));
  constexpr std::string_view kBegin = "Returning ";
  if (level != CU_LOG_LEVEL_ERROR || !line.starts_with(kBegin)) return;
  line.remove_prefix(kBegin.size());
  int result = 0;
  const std::size_t from = line.rfind(' ');
  if (std::from_chars(line.data(), line.data() + line.size(), result).ec != std::errc() || from == line.npos) return;
  Caller caller{.thread = gettid()};
  line.substr(from + 1).copy(caller.function, sizeof(caller.function) - 1);
  if (!cgrt::driver::may_end_capture(static_cast<CUresult>(result), caller.function)) return;
  _Unwind_Backtrace(&visit, &caller.address);
  const std::lock_guard lock(mutex);
  last[count++ % last.size()] = caller;
}

}  // namespace

void listen() {
  static std::atomic<std::uint32_t> listening_to{0};  // a driver's table; 0: none yet
  const std::uint32_t table = cgrt::driver::table_number();
  if (listening_to.exchange(table) == table) return;
  CUlogsCallbackHandle for_ever = nullptr;
  cgrt::driver::api().LogsRegisterCallback(&on_line, nullptr, &for_ever);  // older drivers refuse: callers stay unknown
}

std::string of(long thread, std::string_view function) {
  std::uintptr_t address = 0;
  {
    const std::lock_guard lock(mutex);
    for (std::size_t i = count < last.size() ? 0 : count - last.size(); i < count; ++i) {
      const Caller& one = last[i % last.size()];
      if (one.thread == thread && one.function == function) address = one.address;
    }
  }
  Dl_info found{};
  if (address == 0 || dladdr(reinterpret_cast<const void*>(address), &found) == 0) return "";
  if (found.dli_sname == nullptr) return std::string(file_of(found));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status),
                                                    &std::free);
  return std::string(file_of(found)) + ", in " + (name != nullptr ? name.get() : found.dli_sname);
}

}  // namespace graphdump::callers
