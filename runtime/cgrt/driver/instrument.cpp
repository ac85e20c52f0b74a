#include "cgrt/driver/instrument.h"

#include <cstdlib>

#include "cgrt/base/log.h"

namespace cgrt::driver {
namespace {

// Function pointers carry no state: the wrappers find theirs here.
Instrument* instance = nullptr;

std::size_t index_of(std::string_view entry) {
  for (std::size_t i = 0; i < kEntryCount; ++i) {
    if (entry == kEntryNames[i]) return i;
  }
  log_error("driver::Instrument: no such entry point in entry_points.def.");
  std::abort();  // a typo in a test, not an error of a user's program
}

bool gives_back(std::size_t entry) {
  constexpr std::string_view kGiveBack[] = {
      "cuCtxPopCurrent",  "cuStreamDestroy", "cuStreamEndCapture",         "cuEventDestroy",      "cuMemFree",
      "cuMemFreeHost",    "cuGraphDestroy",  "cuGraphExecDestroy",         "cuUserObjectRelease", "cuLibraryUnload",
      "cuMemFreeAsync",   "cuLinkDestroy",   "cuDestroyExternalSemaphore", "cuMemHostUnregister", "cuMemUnmap",
      "cuMemAddressFree", "cuMemRelease",
  };
  for (std::string_view name : kGiveBack) {
    if (name == kEntryNames[entry]) return true;
  }
  return false;
}

}  // namespace

template <std::size_t kIndex, class Call>
CUresult Instrument::around(Call call) {
  counts_[kIndex].fetch_add(1, std::memory_order_relaxed);
  static const bool call_first = gives_back(kIndex);
  CUresult result = static_cast<CUresult>(forced_[kIndex].load(std::memory_order_relaxed));
  const bool is_nth = until_failure_.load(std::memory_order_relaxed) >= 0 && until_failure_.fetch_sub(1) == 0;
  if (is_nth) failed_entry_.store(static_cast<int>(kIndex));
  if (is_nth || (keeps_failing_ && failed())) {
    failures_[kIndex].fetch_add(1, std::memory_order_relaxed);
    result = failure_;
  }
  if (result == CUDA_SUCCESS) {
    result = call();
  } else if (call_first) {
    call();
  }
  if (observer_) observer_(kEntryNames[kIndex], result);
  return result;
}

template <std::size_t kIndex, class... Args>
struct Instrument::Wrapper<kIndex, CUresult (*)(Args...)> {
  template <auto kMember>
  static CUresult call(Args... args) {
    return instance->around<kIndex>([&] { return (instance->inner_->*kMember)(args...); });
  }
};

namespace {

enum EntryIndex : std::size_t {
#define CGRT_ENTRY(name, version, need) k##name##Index,
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  kResolveKernelIndex,
};

}  // namespace

Instrument::Instrument() {
  if (instance != nullptr) {
    log_error("driver::Instrument: one is in force already.");
    std::abort();
  }
  table_ = api();
#define CGRT_ENTRY(name, version, need) \
  table_.name = &Wrapper<k##name##Index, PFN_cu##name##_v##version>::template call<&Api::name>;
#include "cgrt/driver/entry_points.def"
#undef CGRT_ENTRY
  table_.ResolveKernel = &Wrapper<kResolveKernelIndex, PFN_ResolveKernel>::template call<&Api::ResolveKernel>;
  instance = this;
  inner_ = &install(table_);
}

Instrument::~Instrument() {
  restore(*inner_);
  instance = nullptr;
}

void Instrument::fail_from(std::int64_t nth, CUresult result) {
  fail_call(nth, result);
  keeps_failing_ = true;
}

void Instrument::fail_call(std::int64_t nth, CUresult result) {
  keeps_failing_ = false;
  failure_ = result;
  failed_entry_.store(-1);
  until_failure_.store(nth);
}

void Instrument::fail_entry(std::string_view entry, CUresult result) {
  forced_[index_of(entry)].store(static_cast<int>(result));
}

std::uint64_t Instrument::count(std::string_view entry) const { return counts_[index_of(entry)].load(); }

std::uint64_t Instrument::total() const {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) sum += count.load();
  return sum;
}

void Instrument::reset_counts() {
  for (auto& count : counts_) count.store(0);
}

void Instrument::trace(std::function<void(const char*, CUresult)> observer) { observer_ = std::move(observer); }

}  // namespace cgrt::driver
