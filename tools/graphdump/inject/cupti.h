// CUPTI, found and loaded at run time: graphdump links none of it, and a process that has one already uses that one.
#pragma once

#include <cupti.h>

#include <string>

namespace graphdump {

struct Cupti {
  decltype(&cuptiSubscribe) Subscribe = nullptr;
  decltype(&cuptiSubscribe_v2) Subscribe_v2 = nullptr;  // null: older than CUDA 12.8
  decltype(&cuptiEnableCallback) EnableCallback = nullptr;
  decltype(&cuptiGetResultString) GetResultString = nullptr;
  // For times. Null where it has none.
  decltype(&cuptiActivityRegisterCallbacks) ActivityRegisterCallbacks = nullptr;
  decltype(&cuptiActivityEnable) ActivityEnable = nullptr;
  decltype(&cuptiActivityFlushAll) ActivityFlushAll = nullptr;
  decltype(&cuptiActivityGetNextRecord) ActivityGetNextRecord = nullptr;
  decltype(&cuptiGetGraphNodeId) GetGraphNodeId = nullptr;
};

// The functions, or null with a sentence in `error`. Looks for a copy that the process has loaded, then by name, in
// CUDA's folders, and in those of the Python packages that the process has loaded libraries from.
const Cupti* load_cupti(std::string* error);

// Subscribes `callback`, which gets `cupti` as its first argument. False with a sentence in `error` that says who holds
// the place, where CUPTI tells.
bool subscribe(const Cupti& cupti, CUpti_CallbackFunc callback, CUpti_SubscriberHandle* subscriber, std::string* error);

}  // namespace graphdump
