#include "inject/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "inject/recorder.h"
#include "inject/saving.h"

namespace graphdump {
namespace {

struct Range {
  nvtxDomainHandle_t domain;  // null: the default one
  std::string name;
};

thread_local std::vector<Range> ranges;

std::string to_text(const wchar_t* name) {
  std::string text;
  for (; *name != 0; ++name) text += *name < 0x80 ? static_cast<char>(*name) : '?';
  return text;
}

// Registered strings and domains are known by what these return; null would say that no tool listens.
struct Registered {
  std::mutex mutex;
  std::set<std::string> names;

  const std::string* add(std::string name) {
    const std::lock_guard lock(mutex);
    return &*names.insert(std::move(name)).first;
  }
};
Registered& registered() {
  static Registered& value = *new Registered();
  return value;
}

std::string message_of(const nvtxEventAttributes_t* event) {
  if (event == nullptr) return "?";
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return event->message.ascii != nullptr ? event->message.ascii : "?";
    case NVTX_MESSAGE_TYPE_UNICODE: return event->message.unicode != nullptr ? to_text(event->message.unicode) : "?";
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return event->message.registered != nullptr ? *reinterpret_cast<const std::string*>(event->message.registered)
                                                  : "?";
    default: return "?";
  }
}

// The depth of the new range in its domain, from 0.
int push(nvtxDomainHandle_t domain, std::string name) {
  const auto depth =
      std::count_if(ranges.begin(), ranges.end(), [&](const Range& one) { return one.domain == domain; });
  std::replace(name.begin(), name.end(), '/', '|');
  ranges.push_back({domain, std::move(name)});
  recorder::on_scope_change();
  return static_cast<int>(depth);
}

int pop(nvtxDomainHandle_t domain) {
  const auto last =
      std::find_if(ranges.rbegin(), ranges.rend(), [&](const Range& one) { return one.domain == domain; });
  if (last == ranges.rend()) return NVTX_NO_PUSH_POP_TRACKING;
  ranges.erase(std::next(last).base());
  recorder::on_scope_change();
  return static_cast<int>(
      std::count_if(ranges.begin(), ranges.end(), [&](const Range& one) { return one.domain == domain; }));
}

int NVTX_API range_push(const char* name) { return push(nullptr, name != nullptr ? name : "?"); }
int NVTX_API range_push_wide(const wchar_t* name) { return push(nullptr, name != nullptr ? to_text(name) : "?"); }
int NVTX_API range_push_event(const nvtxEventAttributes_t* event) { return push(nullptr, message_of(event)); }
int NVTX_API range_pop() { return pop(nullptr); }
int NVTX_API domain_range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push(domain, message_of(event));
}
int NVTX_API domain_range_pop(nvtxDomainHandle_t domain) { return pop(domain); }

void on_mark(const std::string& text) {
  if (saving::is_on()) saving::on_mark(text);
}
void NVTX_API mark(const char* text) { on_mark(text != nullptr ? text : "?"); }
void NVTX_API mark_wide(const wchar_t* text) { on_mark(text != nullptr ? to_text(text) : "?"); }
void NVTX_API mark_event(const nvtxEventAttributes_t* event) { on_mark(message_of(event)); }
void NVTX_API domain_mark(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { on_mark(message_of(event)); }

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string*>(registered().add(text != nullptr ? text : "?")));
}
nvtxStringHandle_t NVTX_API register_wide_string(nvtxDomainHandle_t, const wchar_t* text) {
  return reinterpret_cast<nvtxStringHandle_t>(
      const_cast<std::string*>(registered().add(text != nullptr ? to_text(text) : "?")));
}
nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<std::string*>(registered().add(name != nullptr ? name : "?")));
}
nvtxDomainHandle_t NVTX_API create_wide_domain(const wchar_t* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(
      const_cast<std::string*>(registered().add(name != nullptr ? to_text(name) : "?")));
}

template <class Function>
void put(NvtxFunctionTable table, unsigned size, unsigned id, Function* function) {
  if (id < size && table[id] != nullptr) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

bool has_scope() { return !ranges.empty(); }

std::string current_scope() {
  std::string scope;
  for (const Range& range : ranges) {
    if (!scope.empty()) scope += '/';
    scope += range.name;
  }
  return scope;
}

}  // namespace graphdump

// NVTX calls it in each library of the process that has NVTX, before the first of its functions does something.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  using namespace graphdump;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) != 0) {
    put(table, size, NVTX_CBID_CORE_RangePushA, &range_push);
    put(table, size, NVTX_CBID_CORE_RangePushW, &range_push_wide);
    put(table, size, NVTX_CBID_CORE_RangePushEx, &range_push_event);
    put(table, size, NVTX_CBID_CORE_RangePop, &range_pop);
    put(table, size, NVTX_CBID_CORE_MarkA, &mark);
    put(table, size, NVTX_CBID_CORE_MarkW, &mark_wide);
    put(table, size, NVTX_CBID_CORE_MarkEx, &mark_event);
  }
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) != 0) {
    put(table, size, NVTX_CBID_CORE2_DomainRangePushEx, &domain_range_push);
    put(table, size, NVTX_CBID_CORE2_DomainRangePop, &domain_range_pop);
    put(table, size, NVTX_CBID_CORE2_DomainMarkEx, &domain_mark);
    put(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
    put(table, size, NVTX_CBID_CORE2_DomainRegisterStringW, &register_wide_string);
    put(table, size, NVTX_CBID_CORE2_DomainCreateA, &create_domain);
    put(table, size, NVTX_CBID_CORE2_DomainCreateW, &create_wide_domain);
  }
  return 1;
}
