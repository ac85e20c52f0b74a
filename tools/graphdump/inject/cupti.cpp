#include "inject/cupti.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace graphdump {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

// The folders "nvidia" of Python packages: ".../site-packages/nvidia".
int add_package_folder(dl_phdr_info* info, std::size_t, void* folders) {
  constexpr std::string_view kFolder = "/nvidia/";
  const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::size_t at = path.rfind(kFolder);
  if (at == std::string_view::npos) return 0;
  std::string folder(path.substr(0, at + kFolder.size()));
  auto& all = *static_cast<std::vector<std::string>*>(folders);
  if (all.empty() || all.back() != folder) all.push_back(std::move(folder));
  return 0;
}

void* open_cupti() {
  for (const char* name : kNames) {
    if (void* const found = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return found;
  }
  std::vector<std::string> packages;
  dl_iterate_phdr(&add_package_folder, &packages);
  std::vector<std::string> folders;
  for (const std::string& package : packages) {
    for (const char* inside : {"cu13/lib/", "cuda_cupti/lib/"}) folders.push_back(package + inside);
  }
  folders.emplace_back();  // where the loader looks
  const char* home = std::getenv("CUDA_HOME");
  for (const char* root : {home != nullptr ? home : "/usr/local/cuda", "/usr/local/cuda"}) {
    for (const char* inside : {"/lib64/", "/extras/CUPTI/lib64/", "/targets/x86_64-linux/lib/"}) {
      folders.push_back(std::string(root) + inside);
    }
  }
  for (const std::string& folder : folders) {
    for (const char* name : kNames) {
      if (void* const found = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    }
  }
  return nullptr;
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

const Cupti* load_cupti(std::string* error) {
  static Cupti cupti;
  void* const library = open_cupti();
  if (library == nullptr) {
    *error =
        "CUPTI was not found: install the toolkit's package cuda-cupti-13-0 or the Python "
        "package nvidia-cuda-cupti, or put the folder of libcupti.so.13 on LD_LIBRARY_PATH.";
    return nullptr;
  }
  find(library, "cuptiSubscribe", cupti.Subscribe);
  find(library, "cuptiSubscribe_v2", cupti.Subscribe_v2);
  find(library, "cuptiEnableCallback", cupti.EnableCallback);
  find(library, "cuptiGetResultString", cupti.GetResultString);
  find(library, "cuptiActivityRegisterCallbacks", cupti.ActivityRegisterCallbacks);
  find(library, "cuptiActivityEnable", cupti.ActivityEnable);
  find(library, "cuptiActivityFlushAll", cupti.ActivityFlushAll);
  find(library, "cuptiActivityGetNextRecord", cupti.ActivityGetNextRecord);
  find(library, "cuptiGetGraphNodeId", cupti.GetGraphNodeId);
  if (cupti.Subscribe == nullptr || cupti.EnableCallback == nullptr || cupti.GetResultString == nullptr) {
    *error = "The CUPTI of this process lacks functions of CUDA 12.";
    return nullptr;
  }
  return &cupti;
}

bool subscribe(const Cupti& cupti, CUpti_CallbackFunc callback, CUpti_SubscriberHandle* subscriber,
               std::string* error) {
  char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (cupti.Subscribe_v2 != nullptr) {
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "graphdump";
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN;
    result = cupti.Subscribe_v2(subscriber, callback, const_cast<Cupti*>(&cupti), &params);
  } else {
    result = cupti.Subscribe(subscriber, callback, const_cast<Cupti*>(&cupti));
  }
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cupti.GetResultString(result, &text);
  *error = absl::StrCat("CUPTI refused another subscriber: ", text != nullptr ? text : "unknown error", ".");
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    absl::StrAppend(error, " One tool at a time can hold CUPTI; here it is ",
                    holder[0] != '\0' ? holder : "a profiler or debugger that CUPTI does not name",
                    ". Run the program without it.");
  }
  return false;
}

}  // namespace graphdump
